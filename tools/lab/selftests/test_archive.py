"""Tests of what is read in the archive's package lists."""

import pytest

from guests import archive, plain
from guests.archive import Packages


def test_order() -> None:
    ordered = ["7.2.9-1", "7.2.12-1~bpo13+1", "7.2.12-1", "7.2.12-2", "7.3~rc7-1~exp1", "7.3~rc10-1~exp1", "7.3-1~exp1",
               "7.3.4-1~bpo13+1", "7.10.1-1"]
    assert sorted(reversed(ordered), key=archive.age) == ordered


@pytest.mark.parametrize(("version", "series", "release"), [("7.3~rc7-1~exp1", "7.3", "7.3~rc7"),
                                                            ("7.10.4-1~bpo13+1", "7.10", "7.10.4")])
def test_parts(version: str, series: str, release: str) -> None:
    assert (Packages(version, "").series, plain.version(version)) == (series, release)


@pytest.mark.parametrize(("name", "release"), [
    ("linux-image-7.3-rt-amd64", None), ("linux-image-7.3.4+deb13-cloud-amd64", None), ("linux-image-amd64", None),
    ("linux-image-7.3-amd64-dbg", None), ("linux-image-7.3.4+deb13-amd64", "7.3.4+deb13-amd64")])
def test_variants_are_left_out(name: str, release: str | None) -> None:
    found = archive.RELEASE.fullmatch(name)
    assert (found and found[1]) == release
