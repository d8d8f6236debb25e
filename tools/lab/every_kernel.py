"""`make kernels`: the module on every kernel that Debian's archive has the source of, and on plain ones: built, loaded,
mounted with."""

import functools
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field

import kunits
import progress
import repository
import table
import try_mount
from guests import archive, devices, kernels, module, pair, plain
from guests.archive import Listed
from guests.kernels import Kernel
from guests.machine import Build
from guests.pair import OURS, End, Pair, Setup
from judges import quiet_build
from results import Results

TABLE = repository.BUILD / "kernels.txt"
HEADS = ("kernel", "version", "suite", "rustc", "builds", "loads", "mounts", "KUnit", "why not")
MOUNTS = (("rxe", "4.2"), ("rxe", "3"), ("siw", "4.2"))
# That is what is looked at, not what ours change.
BUILD = Build(plain_drivers=True)


@dataclass
class Row:
    """What was seen of a kernel."""

    kernel: str
    version: str
    suite: str
    rustc: str = "-"
    builds: bool = False
    loads: bool = False
    mounts: list[str] = field(default_factory=list)
    kunit: str = "-"
    reason: str = ""

    @property
    def values(self) -> tuple[str, ...]:
        said = ("yes" if self.builds else "no", "yes" if self.loads else "no", ", ".join(self.mounts) or "no")
        return self.kernel, self.version, self.suite, self.rustc, *said, self.kunit, self.reason


def run() -> int:
    """Every kernel, or those whose names have KERNELS in them; the table, and the last line."""
    wanted = os.environ.get("KERNELS", "")
    results = Results()
    listed = archive.listed()
    rows = [_debian(each, results) for each in listed if wanted in f"{each.packages.release} of {each.archive}"]
    rows += [_plain(each, results) for each in _newest(listed) if wanted in f"plain {each.packages.version} of {each.archive}"]
    text = table.text([HEADS, *(row.values for row in rows)])
    TABLE.write_text(text)
    progress.line(text.rstrip())
    progress.line(f"the table is in {TABLE}")
    return results.finish()


def _newest(listed: list[Listed]) -> list[Listed]:
    """The newest of all, and the newest of the series that the module is made for."""
    whole = sorted((each for each in listed if not each.missing), key=lambda each: archive.age(each.packages.version))
    series = [each for each in whole if each.packages.series == kernels.SERIES]
    return list({each.packages.version: each for each in whole[-1:] + series[-1:]}.values())


def _debian(listed: Listed, results: Results) -> Row:
    """One of Debian's, as it is."""
    packages = listed.packages
    row = Row(packages.release, packages.version, listed.archive)
    if listed.missing:
        row.reason = f"the archive has no {listed.missing[0]} of it any more"
        return row
    made: list[Kernel] = []

    def make() -> None:
        ours = packages.version == kernels.stock_version()
        made.append(kernels.stock() if ours else kernels.of_packages(packages, kernels.plain(packages.release)))

    if _seen(row, results, "its tree can be prepared", make):
        _try(row, made[0], results)
    return row


def _plain(listed: Listed, results: Results) -> Row:
    """The release that one of Debian's is made of, or where its source is not to be had, that of Debian, without our patches."""
    version = listed.packages.version
    row = Row(f"plain {plain.version(version)}", version, listed.archive)
    made: list[Kernel] = []

    def make() -> None:
        try:
            tarball = plain.source(version, listed.archive)
        except plain.Missing as missing:
            progress.line(f"  {missing.what}")
            row.kernel += ", with Debian's patches"
            tarball = plain.debians_source(listed.packages)
        made.append(plain.kernel(version, tarball))

    if _seen(row, results, "the kernel builds", make):
        _try(row, made[0], results)
        if row.builds:
            _kunit(row, made[0], results)
    return row


def _try(row: Row, kernel: Kernel, results: Results) -> None:
    """Build the module for a kernel, and mount with it between two guests that run it."""
    options = (kernel.kdir / "include/config/auto.conf").read_text()
    if "CONFIG_RUST=y" not in options.splitlines():
        row.reason = "it is built without CONFIG_RUST"
        return
    row.rustc = "".join(re.findall(r'CONFIG_RUSTC_VERSION_TEXT="?rustc (\S+)', options))
    row.builds = _seen(row, results, "the module builds without a warning", lambda: quiet_build.check(kernel))
    if row.builds:
        # What cannot even begin is one failed test.
        _seen(row, results, "two guests boot, and mount", functools.partial(_mount_all, row, kernel, results))


def _mount_all(row: Row, kernel: Kernel, results: Results) -> None:
    end = End(kernel, module.build(kernel), BUILD)
    with pair.alone(), pair.running(Setup(kernel.name, end, end)) as guests:
        row.loads = _seen(row, results, "the module loads", lambda: guests.load(devices.named("rxe"), OURS, OURS))
        for device, version in MOUNTS if row.loads else ():
            if _seen(row, results, f"NFS {version} over {device}", functools.partial(_mount, guests, device, version)):
                row.mounts.append(f"{version} {device}")
        guests.unload()
        guests.must_be_quiet()


def _mount(guests: Pair, device: str, version: str) -> None:
    """A file each way, and nothing in the kernels' logs that is not expected."""
    guests.load(devices.named(device), OURS, OURS)
    guests.client.must(try_mount.mount(version))
    try_mount.copy(guests)
    guests.client.must("umount /mnt")
    guests.must_be_quiet()


def _kunit(row: Row, kernel: Kernel, results: Results) -> None:
    before = Results()
    before.include(results)
    kunits.on(kernel, results, BUILD)
    passed, failed = results.passed - before.passed, results.failed - before.failed
    row.kunit = f"{passed} passed, {failed} failed"


def _seen(row: Row, results: Results, what: str, test: Callable[[], None]) -> bool:
    """Run a test of a kernel; the first that fails is the reason why there is no more of it."""
    passed = results.test(f"{row.kernel} of {row.suite}: {what}", test)
    if not passed and not row.reason:
        row.reason = f"failed: {what}"
    return passed
