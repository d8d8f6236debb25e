#!/usr/bin/python3 -IS
"""Reads the first page of a file with O_DIRECT, and says how often that ended how.

Usage: readers.py FILE THREADS READS
"""

import errno
import mmap
import os
import sys
import threading
from collections import Counter


def main() -> None:
    path, threads, reads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    ends: list[str] = []
    readers = [threading.Thread(target=read, args=(path, reads, ends)) for _ in range(threads)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    for end, count in Counter(ends).items():
        print(count, end)


def read(path: str, count: int, ends: list[str]) -> None:
    file, page = os.open(path, os.O_RDONLY | os.O_DIRECT), mmap.mmap(-1, mmap.PAGESIZE)
    for _ in range(count):
        try:
            os.preadv(file, [page], 0)
            ends.append("well")
        except OSError as error:
            ends.append(errno.errorcode.get(error.errno or 0, "?"))


main()
