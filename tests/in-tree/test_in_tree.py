"""The module inside a kernel's tree, beside the one in C: chosen by Kconfig, built as a module and into the kernel, and mounted
with."""


import pytest

import repository
import room
import try_mount
from guests import devices, kernels
from guests.kernels import JOBS, Kernel
from guests.pair import End, Setup, running
from series import tree
from series.overlay import Overlay, no_warning

pytestmark = pytest.mark.xdist_group("in-tree")
in_turn = pytest.mark.one_after_the_other
HERE = repository.BUILD / "in-tree"
OURS = f"{tree.HOME}/rpcrdma"
# Symbols of Rust have the name of their crate in theirs.
PROVE = "grep -q rpcrdma_main /proc/kallsyms && ! test -e /sys/module/rpcrdma/taint"


@pytest.fixture(scope="module")
def overlay() -> Overlay:
    """The tree of a kernel, with the module laid into it."""
    made = Overlay(kernels.light(), HERE)
    made.begin()
    made.lay(tree.whole(kernels.light().kdir))
    return made


@in_turn
def test_left_alone_unless_it_is_chosen(overlay: Overlay) -> None:
    """By default the one in C is built, as if ours were not there."""
    (HERE / "obj-m").write_text(f"include .config\ninclude {tree.SUNRPC}/Makefile\nall:\n\t@printf '%s\\n' $(obj-m)\n")
    log = overlay.run("in-tree-leave-alone", "in tree: without a choice", f"""make LLVM=1 olddefconfig
grep -qx CONFIG_SUNRPC_XPRT_RDMA=m .config
make -sf {HERE}/obj-m | grep -qx xprtrdma/
""")
    no_warning(log)


@in_turn
def test_builds_as_a_module_without_a_warning(overlay: Overlay) -> None:
    """Of compilers, objtool or modpost."""
    log = overlay.run("in-tree-module", "in tree: as a module", f"""
scripts/config -e SUNRPC_XPRT_RDMA_RUST -d SUNRPC_XPRT_RDMA_C
make LLVM=1 olddefconfig
grep -qx CONFIG_SUNRPC_XPRT_RDMA=m .config
grep -qx CONFIG_SUNRPC_XPRT_RDMA_RUST=y .config
make LLVM=1 -j{JOBS} {OURS}.ko
""")
    no_warning(log)


@in_turn
def test_builds_into_the_kernel_without_a_warning(overlay: Overlay) -> None:
    """The kernel is of its own, in the surroundings of the one whose tree it was built in."""
    image = HERE / "bzImage"
    log = overlay.run("in-tree-built-in", "in tree: into the kernel", f"""scripts/config -e SUNRPC_XPRT_RDMA
make LLVM=1 olddefconfig
grep -qx CONFIG_SUNRPC_XPRT_RDMA=y .config
grep -qx CONFIG_SUNRPC_XPRT_RDMA_RUST=y .config
make LLVM=1 -j{JOBS} bzImage
cp arch/x86/boot/bzImage {image}
""")
    no_warning(log)


def test_kernels_rustfmt(overlay: Overlay) -> None:
    """The kernel's own settings would change no line."""
    overlay.run("in-tree-rustfmt", "in tree: with the kernel's rustfmt", tree.RUSTFMT)


@in_turn
def test_kernel_that_has_it_built_in_mounts(overlay: Overlay) -> None:
    """Two guests whose kernel has it built in: a file each way."""
    end = End(_built_in(overlay.kernel), None)
    with room.place(), running(Setup("in-tree", end, end)) as guests:
        guests.both(devices.named("rxe").command)
        guests.both(PROVE)
        guests.server.must("/lab/nfs-server", 120)
        guests.client.must(try_mount.mount("4.2"))
        try_mount.copy(guests)
        guests.client.must("umount /mnt")
        guests.server.must("rpc.nfsd 0")
        guests.must_be_quiet()


def _built_in(kernel: Kernel) -> Kernel:
    """A kernel as that one but for its image. The name of the directory stays, by which its drivers are known."""
    path = HERE / kernel.path.name
    path.mkdir()
    for part in kernel.path.iterdir():
        (path / part.name).symlink_to(HERE / "bzImage" if part == kernel.image else part)
    return Kernel(kernel.flavour, path)
