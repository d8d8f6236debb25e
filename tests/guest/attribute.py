#!/usr/bin/python3 -IS
"""Asks for an extended attribute with a buffer of so many bytes, and no other, as Python's own function would.

attribute.py PATH NAME BYTES    prints how long it is, or the error's name
"""

import ctypes
import errno
import sys

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.getxattr.restype = ctypes.c_ssize_t


def main(path: str, name: str, size: str) -> None:
    room = ctypes.create_string_buffer(int(size))
    length = LIBC.getxattr(path.encode(), name.encode(), room, ctypes.c_size_t(len(room)))
    print(length if length >= 0 else errno.errorcode[ctypes.get_errno()])


if __name__ == "__main__":
    main(*sys.argv[1:])
