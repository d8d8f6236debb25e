"""`make deb`: Debian packages of the module, for the stock kernel and to be built by DKMS, and of its documentation."""

import functools
import shutil
import subprocess
from pathlib import Path

import progress
import repository
from guests import kernels, roots
from guests.kernels import Kernel
from guests.system import System
from results import Results

DIRECTORY = repository.BUILD / "deb"
TREE = DIRECTORY / "rpcrdma"
LOG = repository.BUILD / "logs/deb.log"
# lintian's tags that fail the build.
FAILING = "error,warning"
RUN = repository.BUILD / "run/packages"
APT, APT_SECONDS = "DEBIAN_FRONTEND=noninteractive apt-get {}", 900
# An RDMA device on a link of the machine's own; nfsd and a mount, as an administrator has them.
CONFIGURE = """cat > /etc/systemd/system/rxe.service <<'E'
[Unit]
Description=software RDMA device
Before=nfs-server.service remote-fs-pre.target
Wants=remote-fs-pre.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/sbin/ip link add dummy0 mtu 4200 type dummy
ExecStart=/usr/sbin/ip addr add 192.0.2.1/24 dev dummy0
ExecStart=/usr/sbin/ip link set dummy0 up
ExecStart=/usr/bin/rdma link add rxe0 type rxe netdev dummy0
[Install]
WantedBy=multi-user.target
E
systemctl enable rxe nfs-server && mkdir -p /etc/nfs.conf.d && cat > /etc/nfs.conf.d/rdma.conf <<'E' &&
[nfsd]
rdma=y
rdma-port=20049
grace-time=10
lease-time=10
E
echo '/srv *(rw,no_root_squash,insecure,fsid=0,no_subtree_check)' > /etc/exports && chmod 777 /srv &&
echo '192.0.2.1:/ /mnt nfs vers=4.2,proto=rdma,_netdev,x-systemd.requires=nfs-server.service 0 0' >> /etc/fstab"""


def run() -> int:
    """Build the packages, have lintian look at them, and print where they are."""
    for package in build():
        progress.line(str(package))
    return 0


def build() -> list[Path]:
    """The packages of the tree as it is."""
    kernel = kernels.stock()
    LOG.parent.mkdir(parents=True, exist_ok=True)
    LOG.unlink(missing_ok=True)
    shutil.rmtree(DIRECTORY, ignore_errors=True)
    repository.copy(TREE)
    _fill_in(kernel)
    root = roots.tool_root()
    with progress.step("building the packages", LOG):
        root.run(["dpkg-buildpackage", "-us", "-uc", "-b", f"-j{kernels.JOBS}"], LOG, "the packages could not be built",
                 kernels.IDENTITY, TREE)
    with progress.step("lintian", LOG):
        changes = [str(path) for path in DIRECTORY.glob("*.changes")]
        root.run(["lintian", "--allow-root", "--info", f"--fail-on={FAILING}", *changes], LOG, "lintian found something")
    return sorted(DIRECTORY.glob("*.deb"))


def _fill_in(kernel: Kernel) -> None:
    """Say in the packaging which version it is, and which kernel it is for."""
    debian = TREE / "debian"
    said = {"MAINTAINER": "The rpcrdma developers <" + _git("log", "-1", "--format=%ae") + ">",
            "RELEASE": kernel.release, "KERNEL_VERSION": kernels.stock_version(), "SERIES": kernels.SERIES}
    modules = f"rpcrdma-modules-{kernel.release}"
    for template, file in (("control", "control"), ("modules.postinst", f"{modules}.postinst"), ("modules.postrm", f"{modules}.postrm")):
        text = (debian / f"{template}.in").read_text()
        for name, value in said.items():
            text = text.replace(f"@{name}@", value)
        (debian / file).write_text(text)
    (debian / "kernel.mk").write_text(f"KDIR = {kernel.kdir}\nRELEASE = {kernel.release}\n")
    version = "0.1." + _git("rev-list", "--count", "HEAD")
    commit = _git("log", "-1", "--format=%h")
    (debian / "changelog").write_text(f"rpcrdma ({version}) unstable; urgency=medium\n\n  * Of commit {commit}.\n\n"
                                      f" -- {said['MAINTAINER']}  {_git('log', '-1', '--format=%cD')}\n")


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=repository.ROOT, check=True, capture_output=True, text=True).stdout.strip()


def check() -> int:
    """Build them, and try on a machine what people do with them."""
    results = Results()
    built: list[Path] = []
    results.test("packages built, and nothing for lintian", lambda: built.extend(build()))
    if built:
        shutil.rmtree(RUN, ignore_errors=True)
        RUN.mkdir(parents=True)
        results.test("built by DKMS", functools.partial(built_by_dkms, built))
        machine = System(RUN, [*built, _next(built)])
        try:
            for name, test in TESTS.items():
                results.test(name, functools.partial(test, machine))
        finally:
            machine.stop()
    return results.finish()


def built_by_dkms(packages: list[Path]) -> None:
    """apt installs the source where the kernel's headers and source are, and DKMS builds the module of it; what is missing is
    said in one line."""
    kernel = kernels.stock()
    place = RUN / "builder"
    subprocess.run(["cp", "-a", _builder(kernel).path, place], check=True)
    package = next(path for path in packages if path.name.startswith("rpcrdma-dkms"))
    shutil.copy(package, place / "srv")
    root = roots.Root(place)
    log = repository.fresh_log("dkms")
    with progress.step("DKMS builds the module", log):
        root.run(["sh", "-c", APT.format(f"install -y --no-install-recommends /srv/{package.name}")], log,
                 "the module was not built", directory=Path("/srv"))
    found = root.output(["modinfo", "-k", kernel.release, "-F", "filename", "rpcrdma"], Path("/srv")).strip()
    if "/updates/dkms/" not in found:
        raise progress.Failure(f"modprobe would take {found}", log=log)
    # For the machine.
    (RUN / "share").mkdir(exist_ok=True)
    shutil.copy(place / found.lstrip("/"), RUN / "share")
    source = f"linux-source-{kernels.SERIES}"
    script = (f"set -e; dpkg --force-depends --remove {source}; rm -r /var/cache/rpcrdma-dkms; dkms remove rpcrdma --all; "
              "dpkg-reconfigure rpcrdma-dkms 2>&1 | grep 'rpcrdma cannot be built'")
    said = root.output(["sh", "-c", script], Path("/srv")).strip().splitlines()
    if len(set(said)) != 1 or not said[0].endswith(f"install {source}={kernels.stock_version()}"):
        raise progress.Failure(f"without the kernel's source DKMS says: {said}")
    progress.line(f"  {said[0]}")


def _builder(kernel: Kernel) -> roots.Root:
    """Debian with the kernel and its headers, and no compiler for Rust yet."""
    needed = [f"linux-base/{roots.SUITE}-backports", f"linux-image-{kernel.release}", f"linux-headers-{kernel.release}",
              "initramfs-tools", "apt-utils"]
    return roots.made("builder", needed, [f"--setup-hook={roots.BACKPORTS}", "--skip=cleanup/apt/lists"])


def _next(packages: list[Path]) -> Path:
    """The package of the module as if it were of a later version."""
    package = next(path for path in packages if path.name.startswith("rpcrdma-modules"))
    script = ("set -e; cd $2; dpkg-deb -R \"$1\" next; sed -i 's/^\\(Version: .*\\)/\\1+1/' next/DEBIAN/control; "
              "dpkg-deb --root-owner-group -b next next.deb")
    roots.tool_root().run(["sh", "-c", script, "sh", str(package), str(RUN)], LOG, "no package of a later version")
    return RUN / "next.deb"


def installed(machine: System) -> None:
    """apt installs the module, nfsd listens and /etc/fstab is mounted when the machine starts, and it is this module."""
    machine.must(APT.format("install -y /lab/rpcrdma-modules-*.deb"), APT_SECONDS)
    machine.must(CONFIGURE)
    machine.restart()
    works(machine, ours=True)


def upgraded(machine: System) -> None:
    """apt brings the next version under a mount, which goes on; it is used from the next start on."""
    machine.must(APT.format("install -y /lab/next.deb"), APT_SECONDS)
    works(machine, ours=True)
    machine.restart()
    works(machine, ours=True)
    if "+1" not in machine.must("dpkg-query -W -f '${Version}' 'rpcrdma-modules-*'"):
        raise progress.Failure("the next version is not installed")


def removed(machine: System) -> None:
    """apt removes it, and the kernel's own module does the same at the next start."""
    machine.must(APT.format("purge -y 'rpcrdma-modules-*'"), APT_SECONDS)
    works(machine, ours=True)
    machine.restart()
    works(machine, ours=False)


def of_dkms(machine: System) -> None:
    """What DKMS has built serves and mounts, too."""
    machine.must(f"mkdir -p /lib/modules/{machine.kernel}/updates/dkms && cp /lab/rpcrdma.ko* "
                 f"/lib/modules/{machine.kernel}/updates/dkms && depmod")
    machine.restart()
    works(machine, ours=True)


def works(machine: System, ours: bool) -> None:
    """Fail unless files cross RDMA, by our module or by the kernel's own."""
    machine.must("systemctl is-active mnt.mount nfs-server && dd if=/dev/urandom of=/mnt/file bs=1M count=4 conv=fsync status=none && "
                 "echo 3 > /proc/sys/vm/drop_caches && dd if=/mnt/file iflag=direct bs=1M status=none | cmp - /srv/file && rm /mnt/file")
    mounted, listens, taint = (machine.must(command).strip() for command in (
        "grep ' /mnt ' /proc/mounts", "cat /proc/fs/nfsd/portlist", "cat /sys/module/rpcrdma/taint"))
    progress.line(f"  {mounted.split(' ')[3]}")
    if "proto=rdma" not in mounted or "rdma 20049" not in listens or ("O" in taint) != ours:
        raise progress.Failure(f"mounted: {mounted}; nfsd listens to: {listens}; the module's taint is \"{taint}\"",
                               log=machine.console)


TESTS = {"installed, and the machine started again": installed, "upgraded under a mount": upgraded,
         "removed": removed, "the one that DKMS has built": of_dkms}
