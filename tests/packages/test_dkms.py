"""The package for DKMS: each test goes on from where the one before ended."""

import shutil
import subprocess
from pathlib import Path

import pytest

import progress
import repository
from guests import kernels, roots, system
from guests.system import SERVES_ITSELF
from upgrades import APT, RUN, SETTING, named, next_source, works

pytestmark = [pytest.mark.xdist_group("packages"), pytest.mark.one_after_the_other]
# That of the package of the module is not signed.
REFUSES_UNSIGNED = ("dpkg-deb --fsys-tarfile /srv/rpcrdma-modules-*.deb | tar -xOf - --wildcards '*/rpcrdma.ko' > /run/rpcrdma.ko && "
                    "! insmod /run/rpcrdma.ko && dmesg | grep 'Loading of unsigned module is rejected'")


class Dkms:
    """A root in which apt works at the host's own speed, and what it has made as a machine."""

    def __init__(self, built: list[Path]) -> None:
        self.release = kernels.stock().release
        # Another one that the archive has headers of.
        self.other = self.release.replace("-amd64", "-rt-amd64")
        place = RUN / "dkms"
        subprocess.run(["cp", "-a", system.root().path, place], check=True)
        self.root = roots.Root(place)
        for package in built:
            shutil.copy(package, place / "srv")
        self.package = named(built, "rpcrdma-dkms").name

    def apt(self, command: str) -> None:
        """Have apt do something."""
        log = repository.fresh_log("dkms")
        with progress.step(f"apt-get {command}", log):
            self.root.run(["sh", "-c", APT.format(command)], log, "apt failed", directory=Path("/srv"))

    def output(self, script: str) -> str:
        """What a script prints."""
        return self.root.output(["sh", "-ec", script], Path("/srv")).strip()

    def must_have(self, kernel: str) -> None:
        """Fail unless modprobe takes what DKMS has built and signed."""
        found, signer = self.filename(kernel), self.output(f"modinfo -k {kernel} -F signer rpcrdma")
        if "/updates/dkms/" not in found or "DKMS" not in signer:
            raise progress.Failure(f"modprobe would take {found} for {kernel}, signed by \"{signer}\"")

    def filename(self, kernel: str) -> str:
        """What modprobe would take."""
        return self.output(f"modinfo -k {kernel} -F filename rpcrdma")


@pytest.fixture(scope="module")
def dkms(built: list[Path]) -> Dkms:
    return Dkms(built)


def test_built_for_the_kernel_that_is_there(dkms: Dkms) -> None:
    """apt installs the source beside the kernel's headers, and DKMS builds the module of it and signs it."""
    dkms.apt(f"install -y --no-install-recommends ./{dkms.package} linux-headers-{dkms.release}")
    dkms.must_have(dkms.release)
    # Of the kernel's packages nothing has gone.
    dkms.output(f"dpkg --verify linux-modules-{dkms.release}")


def test_built_for_a_kernel_that_comes(dkms: Dkms) -> None:
    """Another kernel comes with its headers, and has the module at once."""
    dkms.apt(f"install -y linux-image-{dkms.other} linux-headers-{dkms.other}")
    dkms.must_have(dkms.release)
    dkms.must_have(dkms.other)
    dkms.output(f"dpkg --verify linux-modules-{dkms.other}")


def test_refuses_the_modules_of_another_stack(dkms: Dkms) -> None:
    """Neither package comes to a kernel whose ib_core is another one, as MLNX_OFED puts it there; each says so in one line."""
    place = f"/lib/modules/{dkms.release}/updates/dkms"
    said = dkms.output(f"mkdir -p {place} && cp $(modinfo -k {dkms.release} -n ib_core) {place} && depmod {dkms.release}; "
                        f"/usr/src/rpcrdma-*/tools/prepare-tree --check {dkms.release} /var/tmp/none 2>&1 || true; "
                        "dpkg-deb --ctrl-tarfile rpcrdma-modules-*.deb | tar -xOf - ./preinst > /tmp/preinst && "
                        f"! sh /tmp/preinst install 2>&1 && rm {place}/ib_core.* && depmod {dkms.release}")
    lines = [line for line in said.splitlines() if f"{place}/ib_core" in line and "not the kernel's own ib_core" in line]
    if len(lines) != 2:
        raise progress.Failure(f"with another ib_core the packages say: {said}")


def test_built_of_headers_alone(dkms: Dkms) -> None:
    """Where a kernel's headers have the metadata of Rust, as those of Arch and Ubuntu, none of its source is used."""
    kernel = f"{kernels.SERIES}.99-headers"
    place, source = f"/usr/lib/modules/{kernel}", f"/usr/src/linux-source-{kernels.SERIES}.tar.xz"
    ours = "rpcrdma/$(dpkg-query -W -f '${Version}' rpcrdma-dkms)"
    found = dkms.output(f"mkdir {place} && cp -a /var/cache/rpcrdma-dkms/{dkms.release} {place}/build && cd {place}/build && "
                         f"sed -i s/{dkms.release}/{kernel}/ include/config/kernel.release include/generated/utsrelease.h && "
                         "find rust -name '*.rs' -delete && rm vmlinux && "
                         f"mv {source} /var/tmp && dkms build {ours} -k {kernel} > /dev/null && "
                         f"test ! -e /var/cache/rpcrdma-dkms/{kernel} && modinfo -F vermagic /var/lib/dkms/{ours}/{kernel}/*/module/*; "
                         f"dkms remove {ours} -k {kernel} > /dev/null; mv /var/tmp/linux-source-* /usr/src; rm -r {place}")
    if not found.startswith(f"{kernel} "):
        raise progress.Failure(f"what DKMS has built of headers alone is for {found}")


def test_both_kernels_start_and_with_secure_boot(dkms: Dkms) -> None:
    """Both kernels start, serve and mount with it; so does one with Secure Boot once DKMS's key is enrolled."""
    with system.from_root(RUN / "dkms-machine", dkms.root) as machine:
        machine.must(f"{SETTING} && {SERVES_ITSELF}")
        machine.restart()
        works(machine, ours=True)
        machine.restart(dkms.other)
        works(machine, ours=True)
        machine.restart(dkms.release, trusted=dkms.root.path / "var/lib/dkms/mok.pub")
        works(machine, ours=True)
        machine.must(REFUSES_UNSIGNED)


def test_upgraded(dkms: Dkms) -> None:
    """The next version takes the place of the one before, for both kernels."""
    version = dkms.output("dpkg-query -W -f '${Version}' rpcrdma-dkms")
    next_source(dkms.root.path / "srv" / dkms.package, version)
    dkms.apt("install -y --no-install-recommends ./next.deb")
    status = dkms.output("dkms status rpcrdma")
    if f"/{version}," in status or any(f"/{version}+1, {kernel}, x86_64: installed" not in status
                                       for kernel in (dkms.release, dkms.other)):
        raise progress.Failure(f"DKMS has: {status}")


def test_gives_way_to_the_package_of_the_module(dkms: Dkms) -> None:
    """The package of the module takes its place, and the other kernel has its own module again, with which it mounts."""
    dkms.apt("install -y --no-install-recommends ./rpcrdma-modules-*.deb")
    in_tree = "/kernel/net/sunrpc/xprtrdma/rpcrdma.ko.xz"
    for kernel, place in ((dkms.release, "/updates/rpcrdma.ko"), (dkms.other, in_tree)):
        found = dkms.filename(kernel)
        if not found.endswith(place):
            raise progress.Failure(f"modprobe would take {found} for {kernel}")
    dkms.apt("purge -y rpcrdma-dkms")
    dkms.output(f"test -e /usr/lib/modules/{dkms.release}{in_tree}; test ! -e /var/lib/dkms/rpcrdma; "
                 "test ! -e /var/cache/rpcrdma-dkms; test ! -e /usr/lib/modules/*/updates/dkms")
    with system.from_root(RUN / "dkms-gone", dkms.root) as machine:
        machine.must(SERVES_ITSELF)
        machine.restart(dkms.other)
        works(machine, ours=False)


def test_says_what_is_missing(dkms: Dkms) -> None:
    """Where the kernel's source is missing, one line says so, and the package is installed all the same; once it comes, the
    module is built."""
    source = f"linux-source-{kernels.SERIES}"
    said = dkms.output(f"dpkg --purge rpcrdma-modules-{dkms.release} {source} > /dev/null; "
                        f"dpkg --force-depends --install ./{dkms.package} > /tmp/said 2>&1; grep -o 'cannot be built.*' /tmp/said; "
                        "dpkg-query -W -f '${db:Status-Status}' rpcrdma-dkms")
    *missing, status = said.splitlines()
    # For each kernel, once when it is registered, and once when it would be built.
    wanted = {f"cannot be built for {kernel}: install {source}={kernels.stock_version()}" for kernel in (dkms.release, dkms.other)}
    if set(missing) != wanted or status != "installed":
        raise progress.Failure(f"without the kernel's source DKMS says: {said}")
    progress.line(f"  {missing[0]}")
    dkms.apt(f"install -y {source}={kernels.stock_version()}")
    dkms.must_have(dkms.release)
    dkms.must_have(dkms.other)
