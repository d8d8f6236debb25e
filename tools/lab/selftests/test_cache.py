"""Tests of the cache directory."""

import os
import shutil
import tempfile
import unittest
import unittest.mock
from pathlib import Path

import cache


class Entries(unittest.TestCase):
    def setUp(self) -> None:
        self.base = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.base)
        patch = unittest.mock.patch.dict(os.environ, {"XDG_CACHE_HOME": self.base})
        patch.start()
        self.addCleanup(patch.stop)

    @staticmethod
    def names() -> list[str]:
        return sorted(path.name for path in cache.directory().iterdir() if path.name != "locks")

    @staticmethod
    def make(path: Path) -> None:
        (path / "file").write_text("whole")

    def test_made_once(self) -> None:
        found = {cache.entry("thing", "recipe", make) for make in (self.make, unittest.mock.Mock())}
        self.assertEqual([(path / "file").read_text() for path in found], ["whole"])

    def test_a_run_that_fails_leaves_nothing(self) -> None:
        with self.assertRaises(OSError):
            cache.entry("thing", "recipe", unittest.mock.Mock(side_effect=OSError))
        self.assertEqual(self.names(), [])

    def test_what_somebody_left_and_still_writes_to(self) -> None:
        # A run that is ended in the middle.
        process = os.fork()
        if process == 0:
            cache.entry("thing", "recipe", lambda path: os._exit(0))
        os.waitpid(process, 0)

        def remove(path: Path, ignore_errors: bool = False) -> None:
            if not ignore_errors:
                raise OSError("Directory not empty")

        with unittest.mock.patch("shutil.rmtree", remove):
            path = cache.entry("thing", "recipe", self.make)
        self.assertEqual(len(self.names()), 2)
        self.assertEqual([each.name for each in path.iterdir()], ["file"])


if __name__ == "__main__":
    unittest.main()
