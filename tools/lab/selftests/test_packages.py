"""Tests of what the packages and the tree say twice."""

import re
import shutil
from pathlib import Path

import pytest

import packages
import repository
from guests import kernels

DEBIAN = repository.ROOT / "debian"


@pytest.mark.parametrize("name", ["control", "rpcrdma-dkms.triggers"])
def test_the_series_of_kernels(name: str) -> None:
    assert set(re.findall(r"linux-source-([\d.]+\d)", (DEBIAN / name).read_text())) == {kernels.SERIES}


def test_the_series_of_kernels_for_dkms() -> None:
    assert f'"^{kernels.SERIES.replace(".", "[.]")}[.]' in (DEBIAN / "rpcrdma-dkms.dkms").read_text()


def test_the_version_is_that_of_the_newest_release() -> None:
    told = re.search(r"^## ([\d.]+)", (repository.ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    packaged = re.match(r"rpcrdma \(([\d.]+)\)", (DEBIAN / "changelog").read_text())
    assert told and packaged and told[1] == packaged[1]


def test_a_snapshot_has_its_own_version(tmp_path: Path) -> None:
    changelog = Path(shutil.copy(DEBIAN / "changelog", tmp_path))
    packages._name_version(changelog, "9~git1")
    text = changelog.read_text()
    assert text.startswith("rpcrdma (9~git1) unstable; ") and "UNRELEASED" not in text
