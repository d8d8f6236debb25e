"""`make in-tree-check`: the module inside a kernel's tree, beside the one in C: chosen by Kconfig, built as a module
and into the kernel, and mounted with."""

import functools
from pathlib import Path

import repository
import try_mount
from guests import devices, kernels
from guests.kernels import JOBS, Kernel
from guests.pair import End, Setup, alone, running
from judges import kernel_tools
from results import Results
from series import tree
from series.overlay import Overlay, no_warning

HERE = repository.BUILD / "in-tree"
OURS = f"{tree.HOME}/rpcrdma"
# Symbols of Rust have the name of their crate in theirs.
PROVE = "grep -q rpcrdma_main /proc/kallsyms && ! test -e /sys/module/rpcrdma/taint"


def run() -> int:
    """All of it, and the last line."""
    results = Results()
    kernel = kernels.light()
    overlay = Overlay(kernel, HERE)
    overlay.begin()
    overlay.lay(tree.whole(kernel.kdir))
    results.test("in tree: left alone unless it is chosen", functools.partial(_leave_alone, overlay))
    results.test("in tree: builds as a module without a warning", functools.partial(_build_module, overlay))
    if results.test("in tree: builds into the kernel without a warning", functools.partial(_build_in, overlay)):
        results.test("in tree: a kernel that has it built in mounts", functools.partial(_mount, kernel))
    results.test("in tree: the kernel's rustfmt", functools.partial(_rustfmt, overlay))
    results.test("host: checkpatch", kernel_tools.checkpatch)
    results.test("host: rustdoc", kernel_tools.rustdoc)
    return results.finish()


def _leave_alone(overlay: Overlay) -> None:
    """By default the one in C is built, as if ours were not there."""
    (HERE / "obj-m").write_text(f"include .config\ninclude {tree.SUNRPC}/Makefile\nall:\n\t@printf '%s\\n' $(obj-m)\n")
    log = overlay.run("in-tree-leave-alone", "in tree: without a choice", f"""make LLVM=1 olddefconfig
grep -qx CONFIG_SUNRPC_XPRT_RDMA=m .config
make -sf {HERE}/obj-m | grep -qx xprtrdma/
""")
    no_warning(log)


def _build_module(overlay: Overlay) -> None:
    log = overlay.run("in-tree-module", "in tree: as a module", f"""
scripts/config -e SUNRPC_XPRT_RDMA_RUST -d SUNRPC_XPRT_RDMA_C
make LLVM=1 olddefconfig
grep -qx CONFIG_SUNRPC_XPRT_RDMA=m .config
grep -qx CONFIG_SUNRPC_XPRT_RDMA_RUST=y .config
make LLVM=1 -j{JOBS} {OURS}.ko
""")
    no_warning(log)


def _build_in(overlay: Overlay) -> None:
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


def _mount(kernel: Kernel) -> None:
    """Two guests whose kernel has it built in: a file each way."""
    end = End(_built_in(kernel), None)
    with alone(), running(Setup("in-tree", end, end)) as guests:
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


def _rustfmt(overlay: Overlay) -> None:
    overlay.run("in-tree-rustfmt", "in tree: with the kernel's rustfmt", tree.RUSTFMT)
