"""Tests of what a tree calls itself."""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import repository

# Without what somebody has set up for git.
PLAIN = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | {"GIT_CONFIG_GLOBAL": os.devnull}
NAME = ("-c", "user.name=A", "-c", "user.email=a@example.org")


class Version(unittest.TestCase):
    def setUp(self) -> None:
        self.tree = Path(self.enterContext(tempfile.TemporaryDirectory())) / "tree"
        (self.tree / "tools").mkdir(parents=True)
        shutil.copy(repository.ROOT / "tools/version", self.tree / "tools")
        (self.tree / "CHANGELOG.md").write_text("# Changes\n\n## 1.7, not released yet\n\n## 1.6, 2026-01-01\n")

    def git(self, *arguments: str) -> str:
        done = subprocess.run(["git", *NAME, *arguments], cwd=self.tree, env=PLAIN, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def commit(self) -> str:
        """The name of a commit of all."""
        self.git("init", "-q")
        self.git("add", ".")
        self.git("commit", "-q", "-m", "all")
        return self.git("rev-parse", "--short=12", "HEAD")

    def version(self, tree: Path | None = None) -> str:
        done = subprocess.run([(tree or self.tree) / "tools/version"], env=PLAIN, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def test_before_a_release(self) -> None:
        commit = self.commit()
        self.assertRegex(self.version(), rf"^1\.7~git2\d{{11}}\.{commit}$")

    def test_edited(self) -> None:
        self.commit()
        (self.tree / "new").touch()
        self.assertTrue(self.version().endswith("+edited"))

    def test_released(self) -> None:
        self.commit()
        self.git("tag", "-a", "v1.7", "-m", "released")
        self.assertEqual(self.version(), "1.7")
        (self.tree / "CHANGELOG.md").write_text("## 1.7, edited\n")
        self.assertEqual(self.version(), "1.7+edited")

    def test_shallow_clone(self) -> None:
        """It knows its commit, and the time of that, as well as the whole does."""
        self.commit()
        clone = self.tree.parent / "clone"
        subprocess.run(["git", "clone", "-q", "--depth=1", f"file://{self.tree}", clone], env=PLAIN, check=True, capture_output=True)
        self.assertEqual(self.version(clone), self.version())

    def test_without_git(self) -> None:
        self.assertEqual(self.version(), "1.7~unknown")

    def test_in_another_repository(self) -> None:
        self.commit()
        inner = self.tree / "inner"
        shutil.copytree(self.tree / "tools", inner / "tools")
        shutil.copy(self.tree / "CHANGELOG.md", inner)
        self.assertEqual(self.version(inner), "1.7~unknown")


if __name__ == "__main__":
    unittest.main()
