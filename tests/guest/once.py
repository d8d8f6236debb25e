#!/usr/bin/python3 -IS
"""Does what may be done only once, again and again, and says how often; fails at the first that was done twice, or never.

once.py DIR SECONDS LEAST    for so long, and at least so often
"""

import os
import sys
import time


def one(base: str, number: int) -> None:
    """Each of these fails if it was done before, which the server has to know when it is asked again."""
    made, moved, linked = (f"{base}/{name}-{number}" for name in ("made", "moved", "linked"))
    os.mkdir(made)
    os.rename(made, moved)
    os.rmdir(moved)
    os.close(os.open(made, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    os.link(made, linked)
    if os.stat(linked).st_nlink != 2:
        raise OSError(f"{os.stat(linked).st_nlink} links of {linked}")
    os.rename(made, moved)
    os.unlink(moved)
    os.unlink(linked)
    os.symlink("nowhere", made)
    os.unlink(made)


def main(base: str, seconds: str, least: str) -> None:
    end, count = time.monotonic() + float(seconds), 0
    while time.monotonic() < end or count < int(least):
        one(base, count)
        count += 1
    left = os.listdir(base)
    if left:
        raise OSError(f"left behind: {left}")
    print(count)


if __name__ == "__main__":
    main(*sys.argv[1:])
