"""Which kernels Debian's archive has, and which of their packages are gone."""

import re
from dataclasses import dataclass, field

import cache
import progress
from guests import roots
from guests.arch import AMD64, Arch

BACKPORTS = f"{roots.SUITE}-backports"
# The suites that the package lists of a root are of.
ARCHIVES = {roots.SUITE: (BACKPORTS,), "testing": ("testing",), "unstable": ("unstable", "experimental")}
# Without those that are the same with other options.
RELEASE = re.compile(r"linux-image-(\d(?!.*-(?:rt|cloud)-).*-(?:amd64|arm64))")


@dataclass(frozen=True)
class Packages:
    """One version of Debian's kernel packages."""

    version: str
    release: str
    # Whose tools it was built with; which packages they are the version says.
    suite: str = field(default=roots.SUITE, repr=False)
    # Named in the release.
    arch: Arch = field(default=AMD64, repr=False)

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

    @property
    def qualified(self) -> list[str]:
        """The packages as apt tells them from those of the host's architecture; the source is for all."""
        source, *built = self.names.values()
        return [source, *(name if self.arch == AMD64 else f"{name}:{self.arch.debian}" for name in built)]


@dataclass(frozen=True)
class Listed:
    """A kernel that the archive has at least the image package of."""

    archive: str
    packages: Packages
    missing: tuple[str, ...]


def listed() -> list[Listed]:
    """Every kernel of the suites, newest first in each."""
    return [kernel for suite, archives in ARCHIVES.items() for archive in archives for kernel in kernels(suite, archive)]


def update(root: roots.Root) -> None:
    """Have a root read the lists of its suites again."""
    log = cache.logs() / "apt-update.log"
    with progress.step("looking for newer kernel packages", log), cache.lock(f"lists-{root.path.name}", "reads the archive's lists"):
        root.run(["apt-get", "update"], log, f"apt-get update failed in {root.path.name}")


def kernels(suite: str, archive: str, arch: Arch = AMD64) -> list[Listed]:
    """Those of one suite, newest first, as the package lists of a root have them."""
    have = _packages(roots.builder(suite), archive, arch)
    found = []
    for name, version in have:
        release = RELEASE.fullmatch(name)
        if release:
            packages = Packages(version, release[1], suite, arch)
            missing = [part for part in packages.names.values() if (part, version) not in have]
            found.append(Listed(archive, packages, tuple(missing)))
    return sorted(found, key=lambda kernel: age(kernel.packages.version), reverse=True)


def age(version: str) -> list[int]:
    """What versions are sorted by: a part after a tilde is before the end."""
    return [-1 if part == "~" else int(part) if part.isdecimal() else 0
            for part in re.findall(r"~|\d+|[a-z]+", version)] + [0]


def _packages(root: roots.Root, archive: str, arch: Arch) -> set[tuple[str, str]]:
    """Name and version of every package of kernels in a suite."""
    names = root.output(["apt-cache", "pkgnames", "linux-"]).split()
    wanted = [name for name in names if re.search(rf"^linux-source-\d|-{arch.debian}$", name)]
    # Those of another architecture than the root's have its name behind theirs.
    asked = [name if arch == AMD64 or name.startswith("linux-source-") else f"{name}:{arch.debian}" for name in wanted]
    rows = (row.split("|") for row in root.output(["apt-cache", "madison", *asked]).splitlines())
    return {(name.strip().partition(":")[0], version.strip()) for name, version, place in rows if f" {archive}/" in place}
