"""Which kernels Debian's archive has, and which of their packages are gone."""

import re
from dataclasses import dataclass

from guests import roots
from guests.kernels import Packages

# The suites that the package lists of a root are of.
ARCHIVES = {roots.SUITE: (f"{roots.SUITE}-backports",), "testing": ("testing",), "unstable": ("unstable", "experimental")}
# Without those that are the same with other options.
RELEASE = re.compile(r"linux-image-(\d(?!.*-(?:rt|cloud)-).*-amd64)")


@dataclass(frozen=True)
class Listed:
    """A kernel that the archive has at least the image package of."""

    archive: str
    packages: Packages
    missing: tuple[str, ...]


def listed() -> list[Listed]:
    """Every kernel of the suites, newest first in each."""
    return [kernel for suite, archives in ARCHIVES.items() for archive in archives for kernel in _of(suite, archive)]


def age(version: str) -> list[int]:
    """What versions are sorted by: a part after a tilde is before the end."""
    return [-1 if part == "~" else int(part) if part.isdecimal() else 0
            for part in re.findall(r"~|\d+|[a-z]+", version)] + [0]


def _of(suite: str, archive: str) -> list[Listed]:
    have = _packages(roots.builder(suite), archive)
    kernels = []
    for name, version in have:
        release = RELEASE.fullmatch(name)
        if release:
            packages = Packages(version, release[1], suite)
            missing = [part for part in packages.names.values() if (part, version) not in have]
            kernels.append(Listed(archive, packages, tuple(missing)))
    return sorted(kernels, key=lambda kernel: age(kernel.packages.version), reverse=True)


def _packages(root: roots.Root, archive: str) -> set[tuple[str, str]]:
    """Name and version of every package of kernels in a suite."""
    names = root.output(["apt-cache", "pkgnames", "linux-"]).split()
    wanted = [name for name in names if re.search(r"^linux-source-\d|-amd64$", name)]
    rows = (row.split("|") for row in root.output(["apt-cache", "madison", *wanted]).splitlines())
    return {(name.strip(), version.strip()) for name, version, place in rows if f" {archive}/" in place}
