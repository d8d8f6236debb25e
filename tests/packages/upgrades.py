"""Packages as if they were of a later version, and what a machine has to do with any of them."""

from pathlib import Path

import packages
import progress
import repository
from guests import roots
from guests.system import System

RUN = repository.BUILD / "run/packages"
APT, APT_SECONDS = "DEBIAN_FRONTEND=noninteractive apt-get {}", 900
# RPCs under way that sysctl.d allows; another number than the module's own.
SLOTS = 64
SETTING = f"echo sunrpc.rdma_slot_table_entries={SLOTS} > /etc/sysctl.d/rpcrdma.conf"
# An ELF note: lengths of name and content, NT_GNU_BUILD_ID, "GNU".
NEXT_BUILD_ID = bytes.fromhex("04000000 14000000 03000000 474e5500") + b"of the next version!"


def works(machine: System, ours: bool) -> None:
    """Fail unless files cross RDMA, by our module or by the kernel's own."""
    machine.must(f"test $(uname -r) = {machine.kernel} && ls /mnt > /dev/null && systemctl is-active mnt.mount nfs-server && "
                 "dd if=/dev/urandom of=/mnt/file bs=1M count=4 conv=fsync status=none && "
                 "echo 3 > /proc/sys/vm/drop_caches && dd if=/mnt/file iflag=direct bs=1M status=none | cmp - /srv/file && "
                 "rm /mnt/file")
    mounted, listens, taint = (machine.must(command).strip() for command in (
        "grep ' /mnt nfs' /proc/mounts", "cat /proc/fs/nfsd/portlist", "cat /sys/module/rpcrdma/taint"))
    if ours:
        machine.must(f"test $(cat /proc/sys/sunrpc/rdma_slot_table_entries) = {SLOTS}")
    progress.line(f"  {machine.kernel}: {mounted.split(' ')[3]}")
    if "proto=rdma" not in mounted or "rdma 20049" not in listens or ("O" in taint) != ours:
        raise progress.Failure(f"mounted: {mounted}; nfsd listens to: {listens}; the module's taint is \"{taint}\"",
                               log=machine.console)


def next_module(package: Path) -> None:
    """The package of the module as if it were of a later version, built otherwise."""
    note = package.parent / "note"
    note.write_bytes(NEXT_BUILD_ID)
    changed(package, "find next -name rpcrdma.ko -exec objcopy --update-section .note.gnu.build-id=note {} ';'; "
                   "sed -i 's/^Version: .*/&+1/' next/DEBIAN/control")


def next_source(package: Path, version: str) -> None:
    """The package for DKMS as if it were of a later version."""
    changed(package, f"grep -rlF {version} next | xargs sed -i 's/{version}/&+1/g'; "
                   f"mv next/usr/src/rpcrdma-{version} next/usr/src/rpcrdma-{version}+1")


def changed(package: Path, change: str) -> None:
    """Put the package as next.deb beside itself, changed a little."""
    script = f"set -e; dpkg-deb -R {package.name} next; {change}; rm next/DEBIAN/md5sums; " \
             "dpkg-deb --root-owner-group -b next next.deb; rm -r next"
    roots.tool_root().run(["sh", "-c", script], packages.LOG, "no package of a later version", directory=package.parent)


def named(built: list[Path], prefix: str) -> Path:
    return next(path for path in built if path.name.startswith(prefix))
