#!/usr/bin/python3 -IS
"""Asks for an extended attribute with buffers of the given sizes, and says how each call ended.

xattr.py PATH NAME SIZE...    a line for each: how many bytes it has, or the name of the error
"""

import ctypes
import errno
import sys

LIBC = ctypes.CDLL(None, use_errno=True)


def ask(path: str, name: str, size: int) -> str:
    # No size asks for the size.
    buffer = ctypes.create_string_buffer(size) if size else None
    length = LIBC.getxattr(path.encode(), name.encode(), buffer, ctypes.c_size_t(size))
    return errno.errorcode[ctypes.get_errno()] if length < 0 else str(length)


def main(path: str, name: str, *sizes: str) -> None:
    for size in sizes:
        print(ask(path, name, int(size)))


if __name__ == "__main__":
    main(*sys.argv[1:])
