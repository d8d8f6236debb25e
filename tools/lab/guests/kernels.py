"""The kernels: Debian's stock one, and two of our own, with our patches, and many debugging options or few."""

import os
import lzma
import re
from dataclasses import dataclass
from pathlib import Path

import cache
import progress
import repository
from guests import archive, roots
from guests.arch import AMD64, Arch
from guests.archive import Packages

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
TYPES = repository.ROOT / "tools/kernel-types"
# A fixed user, host and version, so that the same recipe is the same kernel.
IDENTITY = {"KBUILD_BUILD_USER": "rpcrdma", "KBUILD_BUILD_HOST": "lab", "KBUILD_BUILD_VERSION": "1"}


@dataclass(frozen=True)
class Kernel:
    """A kernel to build the module for and to boot guests with."""

    flavour: str
    path: Path
    # Of Debian, whose tools build for it.
    suite: str = roots.SUITE
    arch: Arch = AMD64

    @property
    def name(self) -> str:
        """What it is called in the cache."""
        return self.flavour + self.arch.suffix

    @property
    def kdir(self) -> Path:
        """The prepared tree that external modules are built against."""
        return self.path / "tree"

    @property
    def image(self) -> Path:
        return self.path / self.arch.image

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


def by_name(flavour: str, arch: Arch = AMD64) -> Kernel:
    """The kernel that `make try KERNEL=` names."""
    makers = {"stock": stock, "debug": debug}
    if flavour not in makers:
        raise progress.Failure(f"no kernel is called {flavour}", f"use one of: {', '.join(makers)}")
    return makers[flavour](arch)


def stock(arch: Arch = AMD64) -> Kernel:
    """Debian's stock kernel, with a tree that Rust modules can be built against."""
    return of_packages(_packages(arch), "stock")


def of_packages(packages: Packages, flavour: str) -> Kernel:
    """A kernel of Debian's as it is, with such a tree."""
    name = f"kernel-{flavour}{packages.arch.suffix}"

    def at(path: Path) -> Kernel:
        return Kernel(flavour, path, packages.suite, packages.arch)

    def make(path: Path) -> None:
        log = cache.logs() / f"{name}.log"
        log.unlink(missing_ok=True)
        debs = downloaded(packages)
        with progress.step(f"preparing the tree of Debian's kernel {packages.release} for Rust modules", log):
            _unpack_source(packages, debs, path, log)
            _prepare_stock_tree(at(path), packages, debs, log)
        with progress.step(f"building siw, which Debian leaves out, for {packages.release}", log):
            tree_make(at(path), [f"M={SIW}", "CONFIG_RDMA_SIW=m", f"-j{JOBS}", "modules"], log)
        with progress.step(f"unpacking the image and modules of {packages.release}", log):
            _install_stock(at(path), packages, debs, log)
        if flavour != "stock":
            # There may be many; of the stock one's source drivers are built, and other kernels.
            shell(f"rm -r {debs} tree/Documentation tree/drivers tree/fs tree/sound", path, log, "what is no longer needed stays")

    recipe = "\n".join([repr(packages), STOCK_RECIPE])
    kernel = at(cache.entry(f"{name}-{plain(packages.version)}", recipe, make))
    _provide_types(kernel)
    return kernel


def stock_version() -> str:
    """The version of the packages of the stock kernel."""
    return _packages(AMD64).version


def debug(arch: Arch = AMD64) -> Kernel:
    """The kernel that the tests run on: small, with KUnit, KASAN, lockdep and the rest."""
    return _own("debug", arch)


def light(arch: Arch = AMD64) -> Kernel:
    """The same without what takes most of the time."""
    return _own("light", arch)


def _own(flavour: str, arch: Arch) -> Kernel:
    """A small kernel with the options of that name."""
    packages = _packages(arch)
    fragments = [FRAGMENTS / "guest.config", FRAGMENTS / f"{flavour}.config"]
    if arch != AMD64:
        fragments.append(FRAGMENTS / f"{arch.name}.config")
    patches = sorted(PATCHES.glob("*.patch"))
    name = flavour + arch.suffix

    def make(path: Path) -> None:
        log = cache.logs() / f"kernel-{name}.log"
        log.unlink(missing_ok=True)
        debs = downloaded(packages)
        with progress.step(f"unpacking the source of the {name} kernel ({packages.version})", log):
            _unpack_source(packages, debs, path, log)
            _patch_source(patches, path, log)
        build_own(Kernel(flavour, path, arch=arch), f"the {name} kernel", fragments, log)

    texts = [file.read_text() for file in (*fragments, *patches)]
    recipe = "\n".join([repr(packages), *texts, OWN_RECIPE])
    return Kernel(flavour, cache.entry(f"kernel-{name}-{plain(packages.version)}", recipe, make), arch=arch)


def driver(kernel: Kernel, device: str) -> Path:
    """The driver of a software RDMA device, from the kernel's own source with corrections, which can play adapters."""
    source, name = DRIVERS[device]
    patches = sorted((FRAGMENTS / device).glob("*.patch"))
    adapter = sorted((FRAGMENTS / "adapter").glob("*.[ch]"))

    def make(path: Path) -> None:
        log = cache.logs() / f"{device}-{kernel.name}.log"
        compiler = [] if kernel.flavour == "stock" else ["LLVM=1"]
        options = [f"M={path}/{device}", f"CONFIG_RDMA_{device.upper()}=m", *compiler, f"-j{JOBS}"]
        script = f"""set -e
mkdir {device}
cp {kernel.kdir}/{source}/*.[ch] {kernel.kdir}/{source}/Makefile {device}
rm -f {device}/*.mod.c
cat {" ".join(map(str, patches))} | patch -d {device} -p1
cp {" ".join(map(str, adapter))} {device}
"""
        with progress.step(f"building {device} for the {kernel.name} kernel", log):
            shell(script, path, log, f"the source of {device} could not be corrected")
            tree_make(kernel, [*options, "modules"], log)
            shell(f"mv {device}/{name} . && rm -r {device}", path, log, f"there is no {name}")

    recipe = "\n".join([kernel.path.name, *(file.read_text() for file in (*patches, *adapter))])
    return cache.entry(f"{device}-{kernel.name}", recipe, make) / name


def plain(version: str) -> str:
    """A Debian version as part of a path that make and shells take as one plain word."""
    return re.sub(r"[^0-9A-Za-z.-]", "_", version)


def _packages(arch: Arch) -> Packages:
    """The newest 7.3 of which every package exists; what the tool root knows, asked again only when that is gone."""
    for ask in (False, True):
        if ask:
            archive.update(roots.tool_root())
        seen = [each for each in archive.kernels(roots.SUITE, archive.BACKPORTS, arch) if each.packages.series == SERIES]
        for each in seen:
            if not each.missing:
                return each.packages
    tried = ", ".join(each.packages.version for each in seen) or "none in the archive"
    raise progress.Failure(f"no complete set of packages of a {SERIES} kernel for {arch.debian} in {archive.BACKPORTS} "
                      f"(versions seen: {tried})", "try again later if the archive is being updated; otherwise it has no "
                      f"{SERIES} any more, and only an existing cache still works")


def downloaded(packages: Packages) -> Path:
    """Where the kernel packages are, each as NAME.deb."""

    def make(path: Path) -> None:
        log = cache.logs() / f"kernel-packages{packages.arch.suffix}.log"
        names = [f"{name}={packages.version}" for name in packages.qualified]
        with progress.step(f"downloading the kernel packages {packages.version} (about 300 MB)", log):
            root = roots.builder(packages.suite)
            try:
                root.run(["apt-get", "download", *names], log, "download failed", directory=path)
            except progress.Failure:
                # The lists in the root may be older than what the archive still has.
                archive.update(root)
                root.run(["apt-get", "download", *names], log, "the kernel packages could not be downloaded",
                         directory=path, todo="run the same again; if that fails, remove root-tools-* from the "
                         f"cache directory {cache.directory()}, which has the old package lists")
            for name in packages.names.values():
                deb = next(path.glob(f"{name}_*.deb"))
                deb.rename(path / f"{name}.deb")

    return cache.entry(f"kernel-packages{packages.arch.suffix}", repr(packages), make)


def _unpack_source(packages: Packages, debs: Path, path: Path, log: Path) -> None:
    source = packages.names["source"]
    script = (f"dpkg -x {debs}/{source}.deb s && mkdir tree && "
              f"tar -xf s/usr/src/{source}.tar.xz -C tree --strip-components=1 && rm -r s")
    shell(script, path, log, "the kernel source could not be unpacked")


def _patch_source(patches: list[Path], path: Path, log: Path) -> None:
    for patch in patches:
        shell(f"patch -d tree -p1 < {patch}", path, log, f"{patch.name} does not apply to the kernel's source")


def _prepare_stock_tree(kernel: Kernel, packages: Packages, debs: Path, log: Path) -> None:
    script = f"""set -e
dpkg -x {debs}/{packages.names['headers']}.deb h
cp h/usr/src/linux-headers-{packages.release}/.config h/usr/src/linux-headers-{packages.release}/Module.symvers tree/
rm -r h
"""
    shell(script, kernel.path, log, "the kernel's configuration and symbols could not be taken from its headers package")
    # That of a candidate does not follow from its version.
    release = f"KERNELRELEASE={packages.release}"
    tree_make(kernel, [release, "olddefconfig"], log)
    tree_make(kernel, [release, f"-j{JOBS}", "modules_prepare"], log)


def _install_stock(kernel: Kernel, packages: Packages, debs: Path, log: Path) -> None:
    names = packages.names
    script = f"""set -e
dpkg -x {debs}/{names['image']}.deb i
cp i/usr/lib/modules/{packages.release}/vmlinuz.unsigned {kernel.arch.image}
rm -r i
dpkg -x {debs}/{names['modules']}.deb m
dpkg -x {debs}/{names['base']}.deb m
mkdir -p modules-c/lib
mv m/usr/lib/modules modules-c/lib/
rm -r m
install -D -m 644 -t modules-c/lib/modules/{packages.release}/kernel/{SIW} tree/{SIW}/siw.ko
"""
    shell(script, kernel.path, log, "the stock kernel's packages could not be unpacked")
    (kernel.path / "release").write_text(packages.release + "\n")
    _split_modules(kernel, log)


def _provide_types(kernel: Kernel) -> None:
    """The types of a kernel (BTF) where Kbuild looks for them to give modules theirs; a tree that was only prepared has
    none."""
    if (kernel.kdir / "vmlinux").exists():
        return
    log = cache.logs() / f"types-{kernel.name}.log"
    with cache.lock(f"types-{kernel.name}", f"unpacks the types of the {kernel.name} kernel"):
        image = "tree/scripts/extract-vmlinux bzImage > image" if kernel.arch == AMD64 else f"cp {kernel.image} image"
        shell(f"set -e\n{image}\n{TYPES} image > types\nrm image\n", kernel.path, log, "the kernel's image has no types")
        (kernel.path / "types").rename(kernel.kdir / "vmlinux")


def build_own(kernel: Kernel, what: str, fragments: list[Path], log: Path) -> None:
    """Configure, build and install a kernel whose source is unpacked."""
    with progress.step(f"configuring {what}", log):
        _configure(kernel, fragments, log)
    with progress.step(f"building {what} (about ten minutes on two cores)", log):
        tree_make(kernel, ["LLVM=1", f"-j{JOBS}", kernel.arch.image, "modules"], log)
    with progress.step(f"installing {what}", log):
        _install_own(kernel, log)


def _configure(kernel: Kernel, fragments: list[Path], log: Path) -> None:
    """allnoconfig and the fragments, each of which may take back what another wants; an option that does not survive
    olddefconfig is a mistake in a fragment."""
    entries = [entry for fragment in fragments for entry in fragment.read_text().splitlines()]
    unset = {match[1] for entry in entries if (match := re.fullmatch(r"# (CONFIG_\w+) is not set", entry))}
    wanted = [entry for entry in entries if entry.startswith("CONFIG_") and entry.partition("=")[0] not in unset]
    tree_make(kernel, ["LLVM=1", "allnoconfig"], log)
    config = kernel.kdir / ".config"
    with config.open("a") as file:
        file.write("\n".join(wanted) + "\n")
    tree_make(kernel, ["LLVM=1", "olddefconfig"], log)
    have = set(config.read_text().splitlines())
    lost = [entry for entry in wanted if entry not in have]
    if lost:
        raise progress.Failure(f"the kernel's configuration dropped {', '.join(lost)}",
                          f"mend the fragments in {FRAGMENTS}", log)


def _install_own(kernel: Kernel, log: Path) -> None:
    script = f"""set -e
cp tree/{kernel.arch.boot} .
cp tree/include/config/kernel.release release
"""
    shell(script, kernel.path, log, "the kernel's image could not be copied")
    modules = kernel.path / "modules-c"
    tree_make(kernel, ["LLVM=1", f"INSTALL_MOD_PATH={modules}", "modules_install"], log)
    for link in ("build", "source"):
        (modules / "lib/modules" / kernel.release / link).unlink(missing_ok=True)
    _split_modules(kernel, log)


def _split_modules(kernel: Kernel, log: Path) -> None:
    """Make modules-ours, which has every module but the in-tree rpcrdma.ko, and index both."""
    script = f"""set -e
cp -al modules-c modules-ours
find modules-ours -path '*/xprtrdma/rpcrdma.ko*' -print -delete | grep -q .
depmod -b modules-c {kernel.release}
depmod -b modules-ours {kernel.release}
"""
    shell(script, kernel.path, log, "the modules for the guests could not be set up")


def shell(script: str, directory: Path, log: Path, what: str) -> None:
    roots.tool_root().run(["sh", "-c", script], log, what, directory=directory)


def tree_make(kernel: Kernel, arguments: list[str], log: Path) -> None:
    argv = ["make", *kernel.arch.cross, *arguments]
    what = f"`{' '.join(argv)}` failed in the kernel tree"
    roots.builder(kernel.suite).run(argv, log, what, IDENTITY, kernel.kdir)
