"""Tests of what a tree calls itself."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import repository

# Without what somebody has set up for git.
PLAIN = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | {
    "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
NAME = ("-c", "user.name=A", "-c", "user.email=a@example.org")


@pytest.fixture(autouse=True)
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The tree, in which commands are run."""
    (tmp_path / "tree/tools").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "tree")
    shutil.copy(repository.ROOT / "tools/version", "tools")
    Path("CHANGELOG.md").write_text("# Changes\n\n## 1.7, not released yet\n\n## 1.6, 2026-01-01\n")
    return tmp_path / "tree"


def said(*command: str | Path) -> str:
    return subprocess.run(command, env=PLAIN, check=True, capture_output=True, text=True).stdout.strip()


def commit() -> str:
    """The name of a commit of all."""
    said("git", "init", "-q")
    said("git", "add", ".")
    said("git", *NAME, "commit", "-q", "-m", "all")
    return said("git", "rev-parse", "--short=12", "HEAD")


def test_before_a_release() -> None:
    assert re.fullmatch(rf"1\.7~git2\d{{11}}\.{commit()}", said("tools/version"))


def test_edited() -> None:
    commit()
    Path("new").touch()
    assert said("tools/version").endswith("+edited")


def test_released() -> None:
    commit()
    said("git", *NAME, "tag", "-a", "v1.7", "-m", "released")
    assert said("tools/version") == "1.7"
    Path("CHANGELOG.md").write_text("## 1.7, edited\n")
    assert said("tools/version") == "1.7+edited"


def test_shallow_clone(tree: Path) -> None:
    """It knows its commit, and the time of that, as well as the whole does."""
    commit()
    said("git", "clone", "-q", "--depth=1", f"file://{tree}", "../clone")
    assert said("../clone/tools/version") == said("tools/version")


def test_without_git() -> None:
    assert said("tools/version") == "1.7~unknown"


def test_in_another_repository() -> None:
    commit()
    shutil.copytree("tools", "inner/tools")
    shutil.copy("CHANGELOG.md", "inner")
    assert said("inner/tools/version") == "1.7~unknown"
