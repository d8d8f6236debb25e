"""What an administrator does with the packages, on a machine of Debian with systemd: each test goes on from where the one before
ended."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import packages
import progress
from guests import system
from guests.system import SERVES_ITSELF, Installed, System
from upgrades import APT, APT_SECONDS, NEXT_BUILD_ID, RUN, SETTING, changed, next_module, works

pytestmark = [pytest.mark.xdist_group("packages"), pytest.mark.one_after_the_other]
# Writes until it is stopped, and ends with the first error.
WRITER = ("systemd-run --unit=writer sh -ec 'exec 3> /mnt/written; while :; do head -c 1000000 /dev/urandom >&3; "
          "sync /mnt/written; touch /run/writes; done'")
WRITES = "for try in $(seq 300); do test -e /run/writes && exit 0; sleep 0.2; done; systemctl status writer >&2; exit 1"
STOP_WRITER = "systemctl is-active writer && systemctl stop writer && rm /mnt/written"
# With what rpcrdma-tools suggests.
MACHINE = Installed("administrator", ("python3-drgn",))
DRGN = ("drgn -q --no-default-symbols /usr/share/rpcrdma/rpcrdma.py "
        "/usr/lib/debug/lib/modules/$(uname -r)/updates/rpcrdma.ko | grep '^client to .192.0.2.1'")
# The directory of the packages, as one that apt knows.
LIST = "/etc/apt/sources.list.d/rpcrdma.list"
KNOWN = (f"echo 'deb [trusted=yes] file:/lab ./' > {LIST} && "
         f"apt-get update -o Dir::Etc::sourcelist={LIST} -o Dir::Etc::sourceparts=-")
# As node_exporter would have it.
COLLECTED = "/var/lib/prometheus/node-exporter"
STATUS = ("rpcrdma-status | grep -A9 '^client *192.0.2.1:20049 *rdma *1 *rxe0/1' | grep 'continuation: off' && "
          f"mkdir -p {COLLECTED} && systemctl start rpcrdma-status && grep '^rpcrdma_connected.* 1$' {COLLECTED}/rpcrdma.prom && "
          "! systemctl is-enabled rpcrdma-status.timer")
BUILD_ID = "/sys/module/rpcrdma/notes/.note.gnu.build-id"


@pytest.fixture(scope="module")
def machine(built: list[Path]) -> Iterator[System]:
    """A machine with Debian's own packages alone, and the others beside."""
    with system.just_installed(RUN / "machine", MACHINE) as made:
        made.offer(*built, packages.DIRECTORY / "Packages", packages.TREE / "debian/tests/tools")
        yield made


def test_installed(machine: System) -> None:
    """apt finds the module in the directory that was built and installs it, nfsd listens and /etc/fstab is mounted when the machine
    starts, and it is this module."""
    machine.must(KNOWN, APT_SECONDS)
    machine.must(APT.format(f"install -y rpcrdma-modules-{machine.kernel}"), APT_SECONDS)
    machine.must(f"{SETTING} && {SERVES_ITSELF}")
    machine.restart()
    works(machine, ours=True)


def test_tools(machine: System) -> None:
    """apt installs the programs and the documentation; one knows a message, two the mount's connection, and one tests the mount,
    as if its ends were two machines. Debian runs debian/tests by autopkgtest; here this machine is the testbed, with the packages
    installed already, and its runner would come down to the one line with `/lab/tools`."""
    machine.must(APT.format(f"install -y rpcrdma-tools rpcrdma-dbg-{machine.kernel} rpcrdma-doc"), APT_SECONDS)
    machine.must("sh -e /lab/tools")
    # The same that the module has said.
    machine.must("test $(rpcrdma-decode --version) = $(cat /sys/module/rpcrdma/version) && "
                 "dmesg | grep \"rpcrdma: version $(cat /sys/module/rpcrdma/version), \"")
    machine.must(DRGN)
    machine.must(STATUS)
    machine.must("cd /tmp && echo 'shift; exec sh -c \"$*\"' > /run/here && "
                 "SSH='sh /run/here' rpcrdma-on-device root@client root@server /mnt /srv", APT_SECONDS)
    report = machine.must("cat /tmp/rpcrdma-on-device.txt")
    if "FAILED" in report or "READ of 1 MiB" not in report:
        raise progress.Failure(f"the report on the mount says: {report}", log=machine.console)


def test_outage(machine: System) -> None:
    """While nfsd has no threads the status says so, with the reason, and afterwards the log has how long it was."""
    server = "192.0.2.1:20049"
    # The unit would take the mount along.
    machine.must("rpc.nfsd 0 && { setsid stat -f /mnt > /dev/null 2>&1 < /dev/null & }")
    for said in (f"rpcrdma-status | grep -A1 '^client *{server}' | grep 'no connection for .* s, it is refused'",
                 f"rpc.nfsd --rdma=20049 8 && dmesg | grep 'connection to {server} is up again after .* on rxe0/1'"):
        machine.must(f"for try in $(seq 300); do {said} && exit 0; sleep 0.5; done; rpcrdma-status >&2; exit 1", APT_SECONDS)


def test_beside(machine: System) -> None:
    """The package for another kernel is installed and purged, and takes nothing of this one along."""
    this, other = machine.kernel, f"{machine.kernel}-other"
    package = next(machine.share.glob("rpcrdma-modules-*"))
    changed(package, f"grep -rlF {this} next | grep -v '[.]ko$' | xargs sed -i '/^Depends:/d; s/{this}/{other}/g'; "
                   f"find next -depth -name '*{this}*' | while read -r path; do mv $path ${{path%{this}*}}{other}${{path##*{this}}}; done")
    machine.must(APT.format("install -y /lab/next.deb"), APT_SECONDS)
    machine.must(f"test -e /usr/lib/modules/{other}/updates/rpcrdma.ko")
    machine.must(APT.format(f"purge -y rpcrdma-modules-{other}"), APT_SECONDS)
    machine.must(f"test ! -e /usr/lib/modules/{other}/updates && dpkg --verify rpcrdma-modules-{this}")


def test_upgraded(machine: System) -> None:
    """apt brings the next version under a mount that is written to, which goes on; it is used from the next start on."""
    before = machine.must(f"od -An -tx1 {BUILD_ID}")
    next_module(next(machine.share.glob("rpcrdma-modules-*")))
    machine.must(f"{WRITER} && {{ {WRITES}; }}")
    machine.must(APT.format("install -y /lab/next.deb"), APT_SECONDS)
    machine.must(f"rm /run/writes && ({WRITES}) && {STOP_WRITER}")
    works(machine, ours=True)
    if machine.must(f"od -An -tx1 {BUILD_ID}") != before:
        raise progress.Failure("the next version has come into a running machine", log=machine.console)
    machine.restart()
    works(machine, ours=True)
    found = bytes.fromhex(machine.must(f"od -An -v -tx1 {BUILD_ID}"))
    if found != NEXT_BUILD_ID:
        raise progress.Failure(f"the next version does not run: {found!r}", log=machine.console)


def test_removed(machine: System) -> None:
    """apt removes it, nothing of it is left, and the kernel's own module does the same at the next start."""
    machine.must("dpkg -L $(dpkg-query -W -f '${Package}' 'rpcrdma-modules-*') > /tmp/files")
    machine.must(APT.format("purge -y 'rpcrdma-modules-*'"), APT_SECONDS)
    machine.must("while read -r file; do test -d $file || ! test -e $file || { echo $file >&2; exit 1; }; done < /tmp/files")
    works(machine, ours=True)
    machine.must(f"test ! -e /usr/lib/modules/{machine.kernel}/updates && modinfo -n rpcrdma | grep -q /xprtrdma/")
    machine.restart()
    works(machine, ours=False)
