"""Building our module for the test machines."""

import functools
import shutil
import subprocess
from contextlib import AbstractContextManager
from pathlib import Path

import cache
import progress
import repository
from guests import kernels, roots
from guests.arch import AMD64
from guests.kernels import JOBS, Kernel


# What is built otherwise, and the option of the Kbuild file for it.
KUNIT, NEAR_WRAP = "kunit", "near-wrap"
# Messages of version 2 that the last of these counts before the first: xdr/src/v2/credits.rs says so.
COUNTED_BEFORE = 0xffffffff - 100
OPTIONS: dict[str, list[str]] = {"": [], KUNIT: ["RPCRDMA_KUNIT=1"], NEAR_WRAP: ["RPCRDMA_NEAR_WRAP=1"]}


@functools.cache
def build(kernel: Kernel, variant: str = "") -> Path:
    """Build rpcrdma.ko for a kernel with the tools of the tool root, once; objects stay between runs."""
    out = objects(kernel, variant)
    log = build_log(kernel, variant)
    log.parent.mkdir(parents=True, exist_ok=True)
    options = [f"RPCRDMA_VERSION={repository.version()}", *OPTIONS[variant]]
    if kernel.flavour in kernels.OWN:
        options.append("RPCRDMA_DEBUG=1")
    if kernel.arch != AMD64:
        options.append(f"ARCH={kernel.arch.name}")
    with lock(kernel, variant):
        # What was said of an object is there as long as that.
        if not out.exists():
            log.unlink(missing_ok=True)
        with progress.step(f"building rpcrdma.ko ({out.name})", log):
            argv = ["make", f"-j{JOBS}", "module", f"KDIR={kernel.kdir}", f"OUT={out}", *options]
            roots.builder(kernel.suite).run(argv, log, "rpcrdma.ko does not build", kernels.IDENTITY)
    return out / "rpcrdma.ko"


def remove(kernel: Kernel) -> None:
    """Have the next build begin with nothing."""
    with lock(kernel):
        shutil.rmtree(objects(kernel), ignore_errors=True)
    build.cache_clear()


def lock(kernel: Kernel, variant: str = "") -> AbstractContextManager[None]:
    """Whoever builds it, or removes what was built, has this meanwhile."""
    name = objects(kernel, variant).name
    return cache.lock(f"module-{name}", f"builds rpcrdma.ko ({name})")


def objects(kernel: Kernel, variant: str = "") -> Path:
    """Where it is built."""
    return repository.BUILD / "-".join(filter(None, (kernel.name, variant)))


def build_log(kernel: Kernel, variant: str = "") -> Path:
    """What the builds have said of what is there."""
    return repository.BUILD / "logs" / f"module-{objects(kernel, variant).name}.log"


def in_tool_root(argv: list[str]) -> int:
    """Run a developer's command in the tool root, on this terminal."""
    return subprocess.run(roots.tool_root().command(argv, directory=Path.cwd()), check=False).returncode
