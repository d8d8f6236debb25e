"""`make deb`: Debian packages of the module, for the stock kernel and to be built by DKMS, and of its documentation."""

import shutil
from pathlib import Path

import progress
import repository
from guests import kernels, roots
from guests.kernels import Kernel

DIRECTORY = repository.BUILD / "deb"
TREE = DIRECTORY / "rpcrdma"
LOG = repository.BUILD / "logs/deb.log"
# lintian's tags that fail the build, and one that no medium of today makes a mistake: names have the versions of module and kernel.
FAILING, SUPPRESSED = "error,warning", "package-has-long-file-name"


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
        root.run(["lintian", "--allow-root", "--info", f"--fail-on={FAILING}",
                  f"--suppress-tags={SUPPRESSED}", *changes], LOG, "lintian found something")
    return sorted(DIRECTORY.glob("*.deb"))


def _fill_in(kernel: Kernel) -> None:
    """Say in the packaging which version it is, and which kernel it is for."""
    debian = TREE / "debian"
    said = {"MAINTAINER": f"The rpcrdma developers <{repository.author()[1]}>",
            "OWN_STACK": (repository.ROOT / "tools/own-stack").read_text().rstrip(), "RELEASE": kernel.release, "KERNEL_VERSION": kernels.stock_version(), "SERIES": kernels.SERIES}
    for template in debian.glob("*.in"):
        text = template.read_text()
        for name, value in said.items():
            text = text.replace(f"@{name}@", value)
        name = template.stem.replace("modules.", f"rpcrdma-modules-{kernel.release}.")
        (debian / name).write_text(text)
    (debian / "kernel.mk").write_text(f"KDIR = {kernel.kdir}\nRELEASE = {kernel.release}\n"
                                    f"KERNEL_VERSION = {kernels.stock_version()}\n")
    commit = repository.git("log", "-1", "--format=%h")
    (debian / "changelog").write_text(f"rpcrdma ({repository.version()}) unstable; urgency=medium\n\n  * Of commit {commit}.\n\n"
                                      f" -- {said['MAINTAINER']}  {repository.git('log', '-1', '--format=%cD')}\n")
