"""Tests of finding the types of a kernel in its image."""

import struct
import unittest

import progress
from guests import btf

TYPES, STRINGS = b"what the types are", b"\0how they are called\0"
BLOB = struct.pack("<HBBIIIII", 0xEB9F, 1, 0, 24, 0, len(TYPES), len(TYPES), len(STRINGS)) + TYPES + STRINGS


class Types(unittest.TestCase):
    def test_between_other_things(self) -> None:
        # The magic number alone is no header.
        self.assertEqual(btf.types_in(b"\x9f\xeb\x01 code" + BLOB + b"data"), BLOB)

    def test_none(self) -> None:
        with self.assertRaises(progress.Failure):
            btf.types_in(b"\x9f\xeb\x01 code")


if __name__ == "__main__":
    unittest.main()
