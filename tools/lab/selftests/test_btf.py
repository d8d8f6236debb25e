"""Tests of finding the types of a kernel in its image."""

import struct
import subprocess
from pathlib import Path

import pytest

import repository

TYPES, STRINGS = b"what the types are", b"\0how they are called\0"
BLOB = struct.pack("<HBBIIIII", 0xEB9F, 1, 0, 24, 0, len(TYPES), len(TYPES), len(STRINGS)) + TYPES + STRINGS


# The magic number alone is no header.
@pytest.mark.parametrize(("image", "found"), [(b"\x9f\xeb\x01 code" + BLOB + b"data", BLOB), (b"\x9f\xeb\x01 code", None)],
                         ids=["between other things", "none"])
def test_types(image: bytes, found: bytes | None, tmp_path: Path) -> None:
    (tmp_path / "image").write_bytes(image)
    command: list[str | Path] = ["python3", "-B", repository.ROOT / "tools/kernel-types", tmp_path / "image"]
    done = subprocess.run(command, capture_output=True, check=False)
    assert (None if done.returncode else done.stdout) == found
