"""The module on every kernel that Debian's archive has the source of, and on plain ones: built, loaded, mounted with. KERNELS takes
a part of their names."""

import functools
import os
import re
from collections.abc import Callable

import pytest

import kunits
import progress
import room
import try_mount
from guests import archive, devices, kernels, module, pair, plain, roots
from guests.archive import Listed
from guests.kernels import Kernel
from guests.machine import Build
from guests.pair import OURS, End, Pair, Setup
from judges import messages, quiet_build

pytestmark = pytest.mark.xdist_group("kernels")
Record = Callable[[str, object], None]
MOUNTS = (("rxe", "4.2"), ("rxe", "3"), ("siw", "4.2"))
# That is what is looked at, not what ours change.
BUILD = Build(plain_drivers=True)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Ask the archive which there are."""
    for argument, found in (("debians", _debians), ("newest", _newest)):
        if argument in metafunc.fixturenames:
            try:
                metafunc.parametrize(argument, [pytest.param(each, id=name) for name, each in found().items() if _wanted() in name])
            except progress.Failure as failure:
                raise pytest.UsageError(str(failure)) from failure


@functools.cache
def _listed() -> list[Listed]:
    """What the archive has now. Of the suite of the tools its lists say what all other tests run on, until the cache is renewed."""
    for suite in archive.ARCHIVES:
        if suite != roots.SUITE:
            archive.update(roots.builder(suite))
    return archive.listed()


@functools.cache
def _wanted() -> str:
    """What the names of kernels are to have in them."""
    wanted, names = os.environ.get("KERNELS", "").replace(" ", "-"), [*_debians(), *_newest()]
    if not any(wanted in name for name in names):
        raise progress.Failure(f"KERNELS={wanted} chooses none of: {', '.join(names)}")
    return wanted


def _debians() -> dict[str, Listed]:
    """By name: those that Debian has built."""
    return {f"{each.packages.release}-of-{each.archive}": each for each in _listed()}


def _newest() -> dict[str, Listed]:
    """By name: the newest of all, and the newest of the series that the module is made for."""
    whole = sorted((each for each in _listed() if not each.missing), key=lambda each: archive.age(each.packages.version))
    series = [each for each in whole if each.packages.series == kernels.SERIES]
    return {f"plain-{each.packages.version}-of-{each.archive}": each for each in whole[-1:] + series[-1:]}


def test_kernel_of_debian(debians: Listed, record_property: Record) -> None:
    """One as it is; that the module cannot be built for it, as it is now, is no failure."""
    packages = debians.packages
    if debians.missing:
        pytest.skip(f"the archive has no {debians.missing[0]} of it any more")
    ours = packages.version == kernels.stock_version()
    _try(kernels.stock() if ours else kernels.of_packages(packages, kernels.plain(packages.release)), record_property)


def test_plain_kernel(newest: Listed, record_property: Record) -> None:
    """The release that one of Debian's is made of, or where its source is not to be had, that of Debian, without our patches."""
    version = newest.packages.version
    try:
        tarball = plain.source(version, newest.archive)
    except plain.Missing as missing:
        progress.line(f"  {missing.what}")
        record_property("source", "with Debian's patches")
        tarball = plain.debians_source(newest.packages)
    kernel = plain.kernel(version, tarball)
    _try(kernel, record_property)
    with room.place():
        log = kunits.run(kernel, BUILD)
    kunits.must_be_quiet(log)
    found = kunits.results(kernel, log)
    wrong = [name for cases in found.values() for name, status in cases.items() if status != "PASS"]
    record_property("KUnit", f"{sum(map(len, found.values())) - len(wrong)} passed, {len(wrong)} failed")
    if wrong or not found:
        raise progress.Failure(f"{len(wrong)} cases have failed: {', '.join(wrong[:5])}", log=kunits.parsed(log))


def _try(kernel: Kernel, record: Record) -> None:
    """Build the module for a kernel, and mount with it between two guests that run it."""
    options = (kernel.kdir / "include/config/auto.conf").read_text()
    if "CONFIG_RUST=y" not in options.splitlines():
        pytest.skip("it is built without CONFIG_RUST")
    record("rustc", "".join(re.findall(r'CONFIG_RUSTC_VERSION_TEXT="?rustc (\S+)', options)))
    quiet_build.check(kernel)
    record("builds", "yes")
    end = End(kernel, module.build(kernel), BUILD)
    with room.place(), pair.running(Setup(kernel.name, end, end)) as guests:
        guests.load(devices.named("rxe"), OURS, OURS)
        record("loads", "yes")
        for device, version in MOUNTS:
            _mount(guests, device, version)
            record("mounts", f"{version} {device}")
        guests.unload()
        guests.must_be_quiet()


def _mount(guests: Pair, device: str, version: str) -> None:
    """A file each way, and nothing in the kernels' logs that is not expected."""
    guests.load(devices.named(device), OURS, OURS)
    guests.client.must(try_mount.mount(version))
    try_mount.copy(guests)
    guests.client.must("umount /mnt")
    guests.must_be_quiet(messages.of_device(device))
