"""The kernels: Debian's stock one, and two of our own, with our patches, and many debugging options or few."""

import os
import lzma
import re
from dataclasses import dataclass, field
from pathlib import Path

import cache
import progress
import repository
from guests import roots

SERIES = "7.3"
# The flavours of our own, for tests.
OWN = ("debug", "light")
FRAGMENTS = repository.TESTS / "kernel"
# What the RPC layer lacks, and what is wrong in ib_core. Both kernels of our own have these, since one stands in for the
# other; the stock one has not, and so tests the module without them.
PATCHES = repository.ROOT / "Documentation/patches"
JOBS = os.cpu_count() or 1
SIW = "drivers/infiniband/sw/siw"
# Where the drivers of software RDMA devices are, and what they are called.
DRIVERS = {"rxe": ("drivers/infiniband/sw/rxe", "rdma_rxe.ko"), "siw": (SIW, "siw.ko")}

# Changed by hand when the way a kernel is made changes so that older cache entries must not be used.
STOCK_RECIPE = "3"
OWN_RECIPE = "1"
# A fixed user, host and version, so that the same recipe is the same kernel.
IDENTITY = {"KBUILD_BUILD_USER": "rpcrdma", "KBUILD_BUILD_HOST": "lab", "KBUILD_BUILD_VERSION": "1"}


@dataclass(frozen=True)
class Kernel:
    """A kernel to build the module for and to boot guests with."""

    flavour: str
    path: Path
    # Of Debian, whose tools build for it.
    suite: str = roots.SUITE

    @property
    def kdir(self) -> Path:
        """The prepared tree that external modules are built against."""
        return self.path / "tree"

    @property
    def image(self) -> Path:
        return self.path / "bzImage"

    @property
    def release(self) -> str:
        return (self.path / "release").read_text().strip()

    @property
    def modules(self) -> Path:
        """The /lib/modules for a guest, without the in-tree rpcrdma.ko: the kernel would load it silently."""
        return self.path / "modules-ours"

    def in_tree_module(self) -> bytes:
        """The in-tree rpcrdma.ko."""
        found = next((self.path / "modules-c").glob("lib/modules/*/kernel/net/sunrpc/xprtrdma/rpcrdma.ko*"))
        packed = found.read_bytes()
        return lzma.decompress(packed) if found.suffix == ".xz" else packed


@dataclass(frozen=True)
class Packages:
    """One version of Debian's kernel packages, all of which exist."""

    version: str
    release: str
    # Whose tools it was built with; which packages they are the version says.
    suite: str = field(default=roots.SUITE, repr=False)

    @property
    def series(self) -> str:
        """The first two numbers of the version."""
        return ".".join(re.findall(r"\d+", self.version)[:2])

    @property
    def names(self) -> dict[str, str]:
        """Package by part."""
        return {"source": f"linux-source-{self.series}", "headers": f"linux-headers-{self.release}",
                "image": f"linux-binary-unsigned-{self.release}", "modules": f"linux-modules-{self.release}",
                "base": f"linux-base-{self.release}"}


def by_name(flavour: str) -> Kernel:
    """The kernel that `make try KERNEL=` names."""
    makers = {"stock": stock, "debug": debug}
    if flavour not in makers:
        raise progress.Failure(f"no kernel is called {flavour}", f"use one of: {', '.join(makers)}")
    return makers[flavour]()


def stock() -> Kernel:
    """Debian's stock kernel, with a tree that Rust modules can be built against."""
    return of_packages(_packages(), "stock")


def of_packages(packages: Packages, flavour: str) -> Kernel:
    """A kernel of Debian's as it is, with such a tree."""

    def make(path: Path) -> None:
        log = cache.logs() / f"kernel-{flavour}.log"
        log.unlink(missing_ok=True)
        debs = _debs(packages)
        with progress.step(f"preparing the tree of Debian's kernel {packages.release} for Rust modules", log):
            _unpack_source(packages, debs, path, log)
            _prepare_stock_tree(packages, debs, path, log)
        with progress.step(f"building siw, which Debian leaves out, for {packages.release}", log):
            tree_make(path, [f"M={SIW}", "CONFIG_RDMA_SIW=m", f"-j{JOBS}", "modules"], log, packages.suite)
        with progress.step(f"unpacking the image and modules of {packages.release}", log):
            _install_stock(packages, debs, path, log)
        if flavour != "stock":
            # There may be many; of the stock one's source drivers are built, and other kernels.
            shell(f"rm -r {debs} tree/Documentation tree/drivers tree/fs tree/sound", path, log, "what is no longer needed stays")

    recipe = "\n".join([repr(packages), STOCK_RECIPE])
    kernel = Kernel(flavour, cache.entry(f"kernel-{flavour}-{plain(packages.version)}", recipe, make), packages.suite)
    _provide_types(kernel)
    return kernel


def stock_version() -> str:
    """The version of the packages of the stock kernel."""
    return _packages().version


def debug() -> Kernel:
    """The kernel that the tests run on: small, with KUnit, KASAN, lockdep and the rest."""
    return _own("debug")


def light() -> Kernel:
    """The same without what takes most of the time."""
    return _own("light")


def _own(flavour: str) -> Kernel:
    """A small kernel with the options of that name."""
    packages = _packages()
    fragments = [FRAGMENTS / "guest.config", FRAGMENTS / f"{flavour}.config"]
    patches = sorted(PATCHES.glob("*.patch"))

    def make(path: Path) -> None:
        log = cache.logs() / f"kernel-{flavour}.log"
        log.unlink(missing_ok=True)
        debs = _debs(packages)
        with progress.step(f"unpacking the source of the {flavour} kernel ({packages.version})", log):
            _unpack_source(packages, debs, path, log)
            _patch_source(patches, path, log)
        with progress.step(f"configuring the {flavour} kernel", log):
            configure(path, fragments, log)
        with progress.step(f"building the {flavour} kernel (about ten minutes on two cores)", log):
            tree_make(path, ["LLVM=1", f"-j{JOBS}", "bzImage", "modules"], log)
        with progress.step(f"installing the {flavour} kernel", log):
            install_own(path, log)

    texts = [file.read_text() for file in (*fragments, *patches)]
    recipe = "\n".join([repr(packages), *texts, OWN_RECIPE])
    return Kernel(flavour, cache.entry(f"kernel-{flavour}-{plain(packages.version)}", recipe, make))


def driver(kernel: Kernel, device: str) -> Path:
    """The driver of a software RDMA device, from the kernel's own source with corrections, which can play adapters."""
    source, name = DRIVERS[device]
    patches = sorted((FRAGMENTS / device).glob("*.patch"))
    adapter = sorted((FRAGMENTS / "adapter").glob("*.[ch]"))

    def make(path: Path) -> None:
        log = cache.logs() / f"{device}-{kernel.flavour}.log"
        compiler = "" if kernel.flavour == "stock" else "LLVM=1"
        script = f"""set -e
mkdir {device}
cp {kernel.kdir}/{source}/*.[ch] {kernel.kdir}/{source}/Makefile {device}
rm -f {device}/*.mod.c
cat {" ".join(map(str, patches))} | patch -d {device} -p1
cp {" ".join(map(str, adapter))} {device}
make -C {kernel.kdir} M={path}/{device} CONFIG_RDMA_{device.upper()}=m {compiler} -j{JOBS} modules
mv {device}/{name} .
rm -r {device}
"""
        with progress.step(f"building {device} for the {kernel.flavour} kernel", log):
            shell(script, path, log, f"{device} could not be built")

    recipe = "\n".join([kernel.path.name, *(file.read_text() for file in (*patches, *adapter))])
    return cache.entry(f"{device}-{kernel.flavour}", recipe, make) / name


def plain(version: str) -> str:
    """A Debian version as part of a path that make and shells take as one plain word."""
    return re.sub(r"[^0-9A-Za-z.-]", "_", version)


def _packages() -> Packages:
    """The newest 7.3 of which every package exists; what the tool root knows, asked again only when that is gone."""
    root = roots.tool_root()
    known = _newest(root)
    if known is None:
        log = cache.logs() / "apt-update.log"
        with progress.step("looking for newer kernel packages", log):
            root.run(["apt-get", "update"], log, "apt-get update failed in the tool root")
        known = _newest(root)
    if known is None:
        tried = ", ".join(version for version, _ in _candidates(root)) or "none in the archive"
        raise progress.Failure(f"no complete set of packages of a {SERIES} kernel in {roots.SUITE}-backports "
                          f"(versions seen: {tried})", "try again later if the archive is being updated; otherwise it has no "
                          f"{SERIES} any more, and only an existing cache still works")
    return known


def _candidates(root: roots.Root) -> list[tuple[str, str]]:
    """Version and kernel release of each 7.3 that the package lists have, newest first."""
    found = []
    for entry in root.output(["apt-cache", "madison", f"linux-source-{SERIES}"]).splitlines():
        version = entry.split("|")[1].strip()
        upstream = re.match(r"(?:\d+:)?([0-9.]+)", version)
        if upstream:
            pattern = f"^linux-headers-{re.escape(upstream[1])}.*-amd64$"
            names = root.output(["apt-cache", "search", "--names-only", pattern]).split("\n")
            releases = [name.split(" ")[0].removeprefix("linux-headers-") for name in names if name]
            found += [(version, release) for release in releases if not re.search(r"-(rt|cloud)-", release)]
    return found


def _newest(root: roots.Root) -> Packages | None:
    for version, release in _candidates(root):
        packages = Packages(version, release)
        listed = root.output(["apt-cache", "madison", *packages.names.values()])
        have = {tuple(part.strip() for part in entry.split("|")[:2]) for entry in listed.splitlines()}
        if all((name, version) in have for name in packages.names.values()):
            return packages
    return None


def _debs(packages: Packages) -> Path:
    """The downloaded kernel packages."""

    def make(path: Path) -> None:
        log = cache.logs() / "kernel-packages.log"
        names = [f"{name}={packages.version}" for name in packages.names.values()]
        with progress.step(f"downloading the kernel packages {packages.version} (about 300 MB)", log):
            root = roots.builder(packages.suite)
            try:
                root.run(["apt-get", "download", *names], log, "download failed", directory=path)
            except progress.Failure:
                # The lists in the root may be older than what the archive still has.
                root.run(["apt-get", "update"], log, "apt-get update failed in the tool root")
                root.run(["apt-get", "download", *names], log, "the kernel packages could not be downloaded",
                         directory=path, todo="run the same again; if that fails, remove root-tools-* from the "
                         f"cache directory {cache.directory()}, which has the old package lists")
            for name in packages.names.values():
                deb = next(path.glob(f"{name}_*.deb"))
                deb.rename(path / f"{name}.deb")

    return cache.entry("kernel-packages", repr(packages), make)


def _unpack_source(packages: Packages, debs: Path, path: Path, log: Path) -> None:
    source = packages.names["source"]
    script = (f"dpkg -x {debs}/{source}.deb s && mkdir tree && "
              f"tar -xf s/usr/src/{source}.tar.xz -C tree --strip-components=1 && rm -r s")
    shell(script, path, log, "the kernel source could not be unpacked")


def _patch_source(patches: list[Path], path: Path, log: Path) -> None:
    for patch in patches:
        shell(f"patch -d tree -p1 < {patch}", path, log, f"{patch.name} does not apply to the kernel's source")


def _prepare_stock_tree(packages: Packages, debs: Path, path: Path, log: Path) -> None:
    script = f"""set -e
dpkg -x {debs}/{packages.names['headers']}.deb h
cp h/usr/src/linux-headers-{packages.release}/.config h/usr/src/linux-headers-{packages.release}/Module.symvers tree/
rm -r h
"""
    shell(script, path, log, "the kernel's configuration and symbols could not be taken from its headers package")
    # That of a candidate does not follow from its version.
    release = f"KERNELRELEASE={packages.release}"
    tree_make(path, [release, "olddefconfig"], log, packages.suite)
    tree_make(path, [release, f"-j{JOBS}", "modules_prepare"], log, packages.suite)


def _install_stock(packages: Packages, debs: Path, path: Path, log: Path) -> None:
    names = packages.names
    script = f"""set -e
dpkg -x {debs}/{names['image']}.deb i
cp i/usr/lib/modules/{packages.release}/vmlinuz.unsigned bzImage
rm -r i
dpkg -x {debs}/{names['modules']}.deb m
dpkg -x {debs}/{names['base']}.deb m
mkdir -p modules-c/lib
mv m/usr/lib/modules modules-c/lib/
rm -r m
install -D -m 644 -t modules-c/lib/modules/{packages.release}/kernel/{SIW} tree/{SIW}/siw.ko
"""
    shell(script, path, log, "the stock kernel's packages could not be unpacked")
    (path / "release").write_text(packages.release + "\n")
    _split_modules(path, packages.release, log)


def _provide_types(kernel: Kernel) -> None:
    """The types of a kernel (BTF) where Kbuild looks for them to give modules theirs; a tree that was only prepared has
    none."""
    if (kernel.kdir / "vmlinux").exists():
        return
    log = cache.logs() / f"types-{kernel.flavour}.log"
    with cache.lock(f"types-{kernel.flavour}", f"unpacks the types of the {kernel.flavour} kernel"):
        shell("set -e\ntree/scripts/extract-vmlinux bzImage > vmlinux.elf\n"
               "objcopy --dump-section .BTF=types vmlinux.elf /dev/null\nrm vmlinux.elf\nmv types tree/vmlinux\n",
               kernel.path, log, "the kernel's image has no types")


def configure(path: Path, fragments: list[Path], log: Path) -> None:
    """allnoconfig and the fragments; an option that does not survive olddefconfig is a mistake in a fragment."""
    wanted = [entry for fragment in fragments for entry in fragment.read_text().splitlines()
              if entry.startswith("CONFIG_")]
    tree_make(path, ["LLVM=1", "allnoconfig"], log)
    config = path / "tree/.config"
    with config.open("a") as file:
        file.write("\n".join(wanted) + "\n")
    tree_make(path, ["LLVM=1", "olddefconfig"], log)
    have = set(config.read_text().splitlines())
    lost = [entry for entry in wanted if entry not in have]
    if lost:
        raise progress.Failure(f"the kernel's configuration dropped {', '.join(lost)}",
                          f"mend the fragments in {FRAGMENTS}", log)


def install_own(path: Path, log: Path) -> None:
    script = """set -e
cp tree/arch/x86/boot/bzImage bzImage
cp tree/include/config/kernel.release release
"""
    shell(script, path, log, "the kernel's image could not be copied")
    tree_make(path, ["LLVM=1", f"INSTALL_MOD_PATH={path}/modules-c", "modules_install"], log)
    release = (path / "release").read_text().strip()
    for link in ("build", "source"):
        (path / "modules-c/lib/modules" / release / link).unlink(missing_ok=True)
    _split_modules(path, release, log)


def _split_modules(path: Path, release: str, log: Path) -> None:
    """Make modules-ours, which has every module but the in-tree rpcrdma.ko, and index both."""
    script = f"""set -e
cp -al modules-c modules-ours
find modules-ours -path '*/xprtrdma/rpcrdma.ko*' -print -delete | grep -q .
depmod -b modules-c {release}
depmod -b modules-ours {release}
"""
    shell(script, path, log, "the modules for the guests could not be set up")


def shell(script: str, directory: Path, log: Path, what: str) -> None:
    roots.tool_root().run(["sh", "-c", script], log, what, directory=directory)


def tree_make(path: Path, arguments: list[str], log: Path, suite: str = roots.SUITE) -> None:
    roots.builder(suite).run(["make", *arguments], log, f"`make {' '.join(arguments)}` failed in the kernel tree",
                             IDENTITY, path / "tree")
