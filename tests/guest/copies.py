#!/usr/bin/python3 -IS
"""Has the server copy a file.

copies.py DIR SIZE COUNT    makes a file of so many bytes, and so many copies, which it compares with the file
"""

import os
import sys

sys.path.append("/lab")

import files  # noqa: E402


def copy(source: str, target: str, size: int) -> None:
    """A copy without the bytes passing by, if the server does its part."""
    there, here = os.open(source, os.O_RDONLY), os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    done = 0
    while done < size:
        copied = os.copy_file_range(there, here, size - done)
        if copied == 0:
            sys.exit(f"{target}: the copy ends after {done} bytes")
        done += copied
    os.close(there)
    os.close(here)


def main(directory: str, size: int, count: int) -> int:
    os.makedirs(directory)
    name = f"file-{size}"
    content = files.content(name, size)
    files.write(f"{directory}/{name}", content, direct=False, odd=False)
    for number in range(count):
        copy(f"{directory}/{name}", f"{directory}/copy-{number}", size)
    wrong = [number for number in range(count)
             if not files.holds(f"{directory}/copy-{number}", content, direct=False, odd=False)]
    if wrong:
        print("wrong bytes in the copies", *wrong, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
