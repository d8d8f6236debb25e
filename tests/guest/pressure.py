#!/usr/bin/python3 -IS
"""Needs more memory than it may have.

pressure.py stream DIR MEGABYTES      writes a file without waiting for it to be written, and reads it
pressure.py hold MEGABYTES ROUNDS     fills memory, and finds in it what it has put there, in another order each time;
                                      prints how many bytes of it were swapped out in the end
"""

import mmap
import os
import random
import re
import struct
import sys

sys.path.append("/lab")

import files  # noqa: E402

PAGE, BLOCK_PAGES = 4096, 16
# A page begins with the number of the last round, and its own.
STAMP = struct.Struct("=QQ")


def stream(directory: str, megabytes: int) -> int:
    """In pieces, since all of it would be more than there may be."""
    name = f"stream-{megabytes * files.PIECE}"
    piece = files.content(name, files.PIECE)
    os.makedirs(directory, exist_ok=True)
    file = os.open(f"{directory}/{name}", os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
    for _ in range(megabytes):
        os.write(file, piece)
    os.fsync(file)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    wrong = sum(os.pread(file, files.PIECE, number * files.PIECE) != piece for number in range(megabytes))
    if wrong:
        print(f"{wrong} of {megabytes} pieces have wrong bytes", file=sys.stderr)
    return 1 if wrong else 0


def swapped() -> int:
    with open("/proc/self/status") as status:
        found = re.search(r"^VmSwap:\s+(\d+) kB$", status.read(), re.MULTILINE)
    return 1024 * int(found[1]) if found else 0


def hold(megabytes: int, rounds: int) -> int:
    luck = random.Random(megabytes)
    filler = luck.randbytes(PAGE - STAMP.size)
    count = megabytes * files.PIECE // PAGE
    blocks = list(range(0, count, BLOCK_PAGES))
    # Of its own: what is shared does not count as swapped out.
    memory = mmap.mmap(-1, count * PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for page in range(count):
        memory[page * PAGE:(page + 1) * PAGE] = STAMP.pack(0, page) + filler
    for turn in range(rounds):
        luck.shuffle(blocks)
        for page in (page for block in blocks for page in range(block, block + BLOCK_PAGES)):
            if memory[page * PAGE:(page + 1) * PAGE] != STAMP.pack(turn, page) + filler:
                print(f"page {page} has wrong bytes in round {turn}", file=sys.stderr)
                return 1
            STAMP.pack_into(memory, page * PAGE, turn + 1, page)
    print(swapped())
    return 0


if __name__ == "__main__":
    if sys.argv[1] == "stream":
        sys.exit(stream(sys.argv[2], int(sys.argv[3])))
    sys.exit(hold(int(sys.argv[2]), int(sys.argv[3])))
