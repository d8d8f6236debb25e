"""A kernel as it is released, without the patches of Debian or of ours, which Debian's archive has for its source package."""

from pathlib import Path

import cache
import progress
from guests import kernels, roots
from guests.kernels import JOBS, Kernel

FRAGMENTS = [kernels.FRAGMENTS / "guest.config", kernels.FRAGMENTS / "light.config"]


def version(package: str) -> str:
    """The release, or candidate for one, that a version of the source package is of."""
    return package.partition("-")[0]


def kernel(package: str, archive: str) -> Kernel:
    """That of a version of the source package in a suite, with few debugging options."""
    name = f"plain-{kernels.plain(version(package))}"

    def make(path: Path) -> None:
        log = cache.logs() / f"kernel-{name}.log"
        log.unlink(missing_ok=True)
        with progress.step(f"downloading the source of Linux {version(package)} (about 170 MB)", log):
            kernels.shell(_download(package, archive), path, log, "the source could not be had")
        with progress.step(f"configuring Linux {version(package)}", log):
            kernels.configure(path, FRAGMENTS, log)
        with progress.step(f"building Linux {version(package)} (about ten minutes on two cores)", log):
            kernels.tree_make(path, ["LLVM=1", f"-j{JOBS}", "bzImage", "modules"], log)
        with progress.step(f"installing Linux {version(package)}", log):
            kernels.install_own(path, log)

    recipe = "\n".join([package, *(file.read_text() for file in FRAGMENTS), kernels.OWN_RECIPE])
    return Kernel(name, cache.entry(f"kernel-{name}", recipe, make))


def _download(package: str, archive: str) -> str:
    return f"""set -e
mkdir -p apt/lists/partial tree
sed -n 's/^deb \\(.*\\) {roots.SUITE} main$/deb-src \\1 {archive} main/p' /etc/apt/sources.list > apt/sources
set -- -o Dir::Etc::sourcelist=$PWD/apt/sources -o Dir::Etc::sourceparts=- -o Dir::State::lists=$PWD/apt/lists \\
	-o Acquire::Check-Valid-Until=false
apt-get "$@" update
cd apt
apt-get "$@" source --download-only linux={package}
cd ..
tar -xf apt/linux_*.orig.tar.xz -C tree --strip-components=1
rm -r apt
"""
