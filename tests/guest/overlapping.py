#!/usr/bin/python3 -IS
"""READs with O_DIRECT beside a long WRITE, a few times. When a READ has ended, its memory is filled with something else, which
must stay there.

overlapping.py READ WRITE TIMES     says `kept` or `changed`
"""

import mmap
import os
import sys
import threading
import time

# One piece of memory for an adapter each, and the latter more than TCP takes from who sends to a peer that does not read.
READ_BYTES, WRITE_BYTES = 65536, 1 << 20
MINE = b"\xa5" * READ_BYTES


def main() -> None:
    read, write = (os.open(path, flags | os.O_DIRECT) for path, flags in zip(sys.argv[1:3], (os.O_RDONLY, os.O_WRONLY)))
    data, memory = mmap.mmap(-1, WRITE_BYTES), mmap.mmap(-1, READ_BYTES)
    kept = True
    for _ in range(int(sys.argv[3])):
        memory[:] = bytes(READ_BYTES)
        writer = threading.Thread(target=os.pwritev, args=(write, [data], 0))
        writer.start()
        time.sleep(1)
        try:
            os.preadv(read, [memory], 0)
        except OSError:
            pass
        memory[:] = MINE
        writer.join()
        kept = kept and memory[:] == MINE
    print("kept" if kept else "changed")


main()
