"""Tests of finding the types of a kernel in its image."""

import struct
import subprocess
import tempfile
import unittest

import repository

TYPES, STRINGS = b"what the types are", b"\0how they are called\0"
BLOB = struct.pack("<HBBIIIII", 0xEB9F, 1, 0, 24, 0, len(TYPES), len(TYPES), len(STRINGS)) + TYPES + STRINGS


class Types(unittest.TestCase):
    def found(self, image: bytes) -> bytes | None:
        with tempfile.NamedTemporaryFile() as file:
            file.write(image)
            file.flush()
            done = subprocess.run(["python3", "-B", repository.ROOT / "tools/kernel-types", file.name], capture_output=True, check=False)
        return None if done.returncode else done.stdout

    def test_between_other_things(self) -> None:
        # The magic number alone is no header.
        self.assertEqual(self.found(b"\x9f\xeb\x01 code" + BLOB + b"data"), BLOB)

    def test_none(self) -> None:
        self.assertIsNone(self.found(b"\x9f\xeb\x01 code"))


if __name__ == "__main__":
    unittest.main()
