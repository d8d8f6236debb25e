"""Tests of what the packages and the tree say twice."""

import re
import tempfile
import unittest
from pathlib import Path

import packages
import repository
from guests import kernels

DEBIAN = repository.ROOT / "debian"


class Said(unittest.TestCase):
    def test_the_series_of_kernels(self) -> None:
        for name in ("control", "rpcrdma-dkms.triggers"):
            found = re.findall(r"linux-source-([\d.]+\d)", (DEBIAN / name).read_text())
            self.assertEqual(set(found), {kernels.SERIES}, name)
        self.assertIn(f'"^{kernels.SERIES.replace(".", "[.]")}[.]', (DEBIAN / "rpcrdma-dkms.dkms").read_text())

    def test_the_version_is_that_of_the_newest_release(self) -> None:
        told = re.search(r"^## ([\d.]+)", (repository.ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
        packaged = re.match(r"rpcrdma \(([\d.]+)\)", (DEBIAN / "changelog").read_text())
        assert told and packaged
        self.assertEqual(told[1], packaged[1])

    def test_a_snapshot_has_its_own_version(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            changelog = Path(directory) / "changelog"
            changelog.write_text((DEBIAN / "changelog").read_text())
            packages._name_version(changelog, "9~git1")
            text = changelog.read_text()
        self.assertTrue(text.startswith("rpcrdma (9~git1) unstable; "), text)
        self.assertNotIn("UNRELEASED", text)


if __name__ == "__main__":
    unittest.main()
