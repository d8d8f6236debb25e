"""`make in-tree-check`: the module inside a kernel's tree, beside the one in C: chosen by Kconfig, built as a module and
into the kernel, and mounted with."""

import functools
import re
import shutil
from pathlib import Path

import progress
import repository
import try_mount
from guests import devices, kernels, roots
from guests.kernels import JOBS, Kernel
from guests.pair import End, Setup, alone, running
from judges import kernel_tools
from results import Results

HERE = repository.BUILD / "in-tree"
# Where the module is in the tree, and what of the repository that is.
SUNRPC = "net/sunrpc"
NAME = "xprtrdma-rust"
PARTS = ("rust", "kunit", "xdr/src")
FILES = ("Kbuild", "Kconfig")
# What is added to the Makefile and the Kconfig of net/sunrpc.
GOES_TO_C = "obj-$(CONFIG_SUNRPC_XPRT_RDMA) += xprtrdma/\n"
GOES_TO_EITHER = "obj-$(CONFIG_SUNRPC_XPRT_RDMA) += xprtrdma$(if $(CONFIG_SUNRPC_XPRT_RDMA_RUST),-rust)/\n"
SOURCE = f'\nsource "{SUNRPC}/{NAME}/Kconfig"\n'
OURS = f"{SUNRPC}/{NAME}/rpcrdma"
# Symbols of Rust have the name of their crate in theirs.
PROVE = "grep -q rpcrdma_main /proc/kallsyms && ! test -e /sys/module/rpcrdma/taint"
WARNING = re.compile(r"\bwarning\b", re.IGNORECASE)


def run() -> int:
    """All of it, and the last line."""
    results = Results()
    kernel = kernels.light()
    _copy_into(kernel)
    results.test("in tree: left alone unless it is chosen", functools.partial(_leave_alone, kernel))
    results.test("in tree: builds as a module without a warning", functools.partial(_build_module, kernel))
    if results.test("in tree: builds into the kernel without a warning", functools.partial(_build_in, kernel)):
        results.test("in tree: a kernel that has it built in mounts", functools.partial(_mount, kernel))
    results.test("in tree: the kernel's rustfmt", functools.partial(_rustfmt, kernel))
    results.test("host: checkpatch", kernel_tools.checkpatch)
    results.test("host: rustdoc", kernel_tools.rustdoc)
    return results.finish()


def _copy_into(kernel: Kernel) -> None:
    """Lay the module and what is added to the tree over the tree, which stays as it is."""
    shutil.rmtree(HERE, ignore_errors=True)
    (HERE / "work").mkdir(parents=True)
    sunrpc = HERE / "upper" / SUNRPC
    for part in PARTS:
        shutil.copytree(repository.ROOT / part, sunrpc / NAME / part)
    for name in FILES:
        shutil.copy(repository.ROOT / name, sunrpc / NAME)
    makefile, kconfig = ((kernel.kdir / SUNRPC / name).read_text() for name in ("Makefile", "Kconfig"))
    if makefile.count(GOES_TO_C) != 1:
        raise progress.Failure(f"{SUNRPC}/Makefile of this kernel does not build xprtrdma in the way known here")
    (sunrpc / "Makefile").write_text(makefile.replace(GOES_TO_C, GOES_TO_EITHER))
    (sunrpc / "Kconfig").write_text(kconfig + SOURCE)


def _leave_alone(kernel: Kernel) -> None:
    """By default the one in C is built, as if ours were not there."""
    (HERE / "obj-m").write_text(f"include .config\ninclude {SUNRPC}/Makefile\nall:\n\t@printf '%s\\n' $(obj-m)\n")
    log = _in_tree(kernel, "leave-alone", "without a choice", f"""make LLVM=1 olddefconfig
grep -qx CONFIG_SUNRPC_XPRT_RDMA=m .config
make -sf {HERE}/obj-m | grep -qx xprtrdma/
""")
    no_warning(log)


def _build_module(kernel: Kernel) -> None:
    log = _in_tree(kernel, "module", "as a module", f"""scripts/config -e SUNRPC_XPRT_RDMA_RUST -d SUNRPC_XPRT_RDMA_C
make LLVM=1 olddefconfig
grep -qx CONFIG_SUNRPC_XPRT_RDMA=m .config
grep -qx CONFIG_SUNRPC_XPRT_RDMA_RUST=y .config
make LLVM=1 -j{JOBS} {OURS}.ko
""")
    no_warning(log)


def _build_in(kernel: Kernel) -> None:
    """The kernel is of its own, in the surroundings of the one whose tree it was built in."""
    image = HERE / "bzImage"
    log = _in_tree(kernel, "built-in", "into the kernel", f"""scripts/config -e SUNRPC_XPRT_RDMA
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


def _rustfmt(kernel: Kernel) -> None:
    _in_tree(kernel, "rustfmt", "with the kernel's rustfmt",
             f"find {SUNRPC}/{NAME} -name '*.rs' ! -name '*generated*' | xargs rustfmt --check --color never\n")


def _in_tree(kernel: Kernel, name: str, how: str, script: str) -> Path:
    """Run a script in the tree with the module; its log."""
    log = repository.fresh_log(f"in-tree-{name}")
    lay = (f"mount -t overlay overlay -o lowerdir={kernel.kdir},upperdir={HERE}/upper,workdir={HERE}/work {kernel.kdir} && "
           f"cd {kernel.kdir}")
    with progress.step(f"in tree: {how}", log):
        roots.tool_root().run(["sh", "-ec", f"{lay}\n{script}"], log, f"{how}: something failed", kernels.IDENTITY)
    return log


def no_warning(log: Path) -> None:
    found = [line for line in log.read_text(errors="replace").splitlines() if WARNING.search(line)]
    if found:
        raise progress.Failure(f"{len(found)} warnings, such as {found[0].strip()}", log=log)
