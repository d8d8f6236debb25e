"""Tests of the cache directory."""

import os
import shutil
from pathlib import Path
from unittest import mock

import pytest

import cache


@pytest.fixture(autouse=True)
def base(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def names() -> list[str]:
    return sorted(path.name for path in cache.directory().iterdir() if path.name != "locks")


def make(path: Path) -> None:
    (path / "file").write_text("whole")


def test_made_once() -> None:
    found = {cache.entry("thing", "recipe", maker) for maker in (make, mock.Mock())}
    assert [(path / "file").read_text() for path in found] == ["whole"]


def test_a_run_that_fails_leaves_nothing() -> None:
    with pytest.raises(OSError):
        cache.entry("thing", "recipe", mock.Mock(side_effect=OSError))
    assert names() == []


def test_what_somebody_left_and_still_writes_to(monkeypatch: pytest.MonkeyPatch) -> None:
    # A run that is ended in the middle.
    process = os.fork()
    if process == 0:
        try:
            cache.entry("thing", "recipe", lambda path: os._exit(0))
        finally:
            os._exit(1)
    assert os.waitpid(process, 0)[1] == 0

    def remove(path: Path, ignore_errors: bool = False) -> None:
        if not ignore_errors:
            raise OSError("Directory not empty")

    monkeypatch.setattr(shutil, "rmtree", remove)
    path = cache.entry("thing", "recipe", make)
    assert len(names()) == 2
    assert [each.name for each in path.iterdir()] == ["file"]
