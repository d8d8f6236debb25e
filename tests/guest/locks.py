#!/usr/bin/python3 -IS
"""Takes locks and gives them back, again and again, until it is killed.

locks.py DIR COUNT MILLISECONDS    COUNT processes lock a file each, and hold it for so long
"""

import fcntl
import os
import sys
import time


def contend(path: str, seconds: float) -> None:
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    while True:
        fcntl.lockf(file, fcntl.LOCK_EX)
        time.sleep(seconds)
        fcntl.lockf(file, fcntl.LOCK_UN)


def main(directory: str, count: str, milliseconds: str) -> None:
    for number in range(int(count)):
        if os.fork() == 0:
            contend(f"{directory}/lock-{number}", int(milliseconds) / 1000)
    os.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
