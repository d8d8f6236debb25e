"""Tests of what is read in the archive's package lists."""

import unittest

from guests import archive, plain
from guests.archive import Packages


class Versions(unittest.TestCase):
    def test_order(self) -> None:
        ordered = ["7.2.9-1", "7.2.12-1~bpo13+1", "7.2.12-1", "7.2.12-2", "7.3~rc7-1~exp1", "7.3~rc10-1~exp1", "7.3-1~exp1",
                   "7.3.4-1~bpo13+1", "7.10.1-1"]
        self.assertEqual(sorted(reversed(ordered), key=archive.age), ordered)

    def test_parts(self) -> None:
        for version, series, release in (("7.3~rc7-1~exp1", "7.3", "7.3~rc7"), ("7.10.4-1~bpo13+1", "7.10", "7.10.4")):
            self.assertEqual(Packages(version, "").series, series)
            self.assertEqual(plain.version(version), release)

    def test_variants_are_left_out(self) -> None:
        for name in ("linux-image-7.3-rt-amd64", "linux-image-7.3.4+deb13-cloud-amd64", "linux-image-amd64",
                     "linux-image-7.3-amd64-dbg"):
            self.assertIsNone(archive.RELEASE.fullmatch(name), name)
        found = archive.RELEASE.fullmatch("linux-image-7.3.4+deb13-amd64")
        self.assertEqual(found and found[1], "7.3.4+deb13-amd64")


if __name__ == "__main__":
    unittest.main()
