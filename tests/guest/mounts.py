#!/usr/bin/python3 -IS
"""Mounts /mnt by the system call alone, without the programs, which are slow in a guest.

mounts.py SOURCE OPTIONS            once
mounts.py SOURCE OPTIONS COUNT      again and again, with a write to /mnt/t/n and an unmount each time
"""

import ctypes
import os
import sys

LIBC = ctypes.CDLL(None, use_errno=True)


def must(result: int, what: str) -> None:
    if result != 0:
        sys.exit(f"{what}: {os.strerror(ctypes.get_errno())}")


def mount(source: str, options: str) -> None:
    kind = b"nfs4" if "vers=4" in options else b"nfs"
    must(LIBC.mount(source.encode(), b"/mnt", kind, 0, options.encode()), f"mount {source} {options}")


def main(source: str, options: str, count: str = "") -> None:
    if not count:
        mount(source, options)
        return
    for number in range(1, int(count) + 1):
        mount(source, options)
        with open("/mnt/t/n", "w") as file:
            file.write(str(number))
        must(LIBC.umount2(b"/mnt", 0), f"unmount {number}")


if __name__ == "__main__":
    main(*sys.argv[1:])
