"""A kernel of our own configuration without our patches: as it is released, which Debian's archive has for its source package, or
where a mirror has not, with the patches of Debian."""

from pathlib import Path

import cache
import progress
from guests import kernels, roots
from guests.archive import Packages
from guests.kernels import Kernel

FRAGMENTS = [kernels.FRAGMENTS / "guest.config", kernels.FRAGMENTS / "light.config"]


class Missing(progress.Failure):
    """A mirror lists a source, and does not have it."""


def version(package: str) -> str:
    """The release, or candidate for one, that a version of the source package is of."""
    return package.partition("-")[0]


def source(package: str, archive: str) -> Path:
    """The source that a version of the package in a suite is made of; or Missing."""
    name = f"linux_{version(package)}.orig.tar.xz"
    script = f"""set -e
mkdir -p lists/partial
sed -n 's/^deb \\(.*\\) {roots.SUITE} main$/deb-src \\1 {archive} main/p' /etc/apt/sources.list > sources
set -- -o Dir::Etc::sourcelist=$PWD/sources -o Dir::Etc::sourceparts=- -o Dir::State::lists=$PWD/lists \\
	-o Acquire::Check-Valid-Until=false
apt-get "$@" update
apt-get "$@" source --download-only linux={package}
rm -r lists sources
"""

    def make(path: Path) -> None:
        log = cache.logs() / "kernel-source.log"
        log.unlink(missing_ok=True)
        with progress.step(f"downloading {name} (about 170 MB)", log):
            try:
                kernels.shell(script, path, log, f"{name} could not be downloaded")
            except progress.Failure:
                if " 404 " in log.read_text(errors="replace"):
                    raise Missing(f"{name} is listed, and not there", log=log) from None
                raise

    return cache.entry("kernel-source", f"{package} 1", make) / name


def debians_source(packages: Packages) -> Path:
    """The source as Debian has it."""
    name = packages.names["source"]
    deb = kernels.downloaded(packages) / f"{name}.deb"

    def make(path: Path) -> None:
        log = cache.logs() / "kernel-source.log"
        kernels.shell(f"dpkg -x {deb} . && mv usr/src/{name}.tar.xz . && rm -r usr", path, log, f"{deb} could not be unpacked")

    return cache.entry("kernel-source", f"{packages.version} of Debian", make) / f"{name}.tar.xz"


def kernel(package: str, tarball: Path) -> Kernel:
    """The kernel of a version whose source is there, with few debugging options."""
    name = f"plain-{kernels.plain(version(package))}"

    def make(path: Path) -> None:
        log = cache.logs() / f"kernel-{name}.log"
        log.unlink(missing_ok=True)
        with progress.step(f"unpacking Linux {version(package)}", log):
            kernels.shell(f"mkdir tree && tar -xf {tarball} -C tree --strip-components=1", path, log, "it could not be unpacked")
        kernels.build_own(Kernel(name, path), f"Linux {version(package)}", FRAGMENTS, log)

    recipe = "\n".join([package, tarball.name, *(file.read_text() for file in FRAGMENTS), kernels.OWN_RECIPE])
    return Kernel(name, cache.entry(f"kernel-{name}", recipe, make))
