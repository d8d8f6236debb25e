#!/usr/bin/python3 -IS
"""Looks at files in turn for some seconds, and says how long the longest look at each took.

gaps.py SECONDS FILE...   a line for each: seconds, when that look began, how many there were, the file
"""

import os
import sys
import threading
import time

# From one look to the next.
PAUSE_SECONDS = 0.5


def watch(path: str, begun: float, end: float, found: dict[str, tuple[float, float, int]]) -> None:
    longest, when, looks = 0.0, 0.0, 0
    while (before := time.monotonic()) < end:
        # The attributes that the client has kept are not what is asked for.
        os.stat(path)
        took, looks = time.monotonic() - before, looks + 1
        if took > longest:
            longest, when = took, before - begun
        found[path] = (longest, when, looks)
        time.sleep(PAUSE_SECONDS)


def main(seconds: str, *paths: str) -> None:
    begun, found = time.monotonic(), dict[str, tuple[float, float, int]]()
    end = begun + float(seconds)
    threads = [threading.Thread(target=watch, args=(path, begun, end, found), daemon=True) for path in paths]
    for thread in threads:
        thread.start()
    # One that stands has had a look for all that time.
    for thread, path in zip(threads, paths):
        thread.join(max(0.0, end + 2 - time.monotonic()))
        if thread.is_alive():
            longest, when, looks = found.get(path, (0.0, 0.0, 0))
            found[path] = (max(longest, time.monotonic() - end), when, looks)
    for path in paths:
        longest, when, looks = found[path]
        print(f"{longest:.2f} {when:.0f} {looks} {path}")


if __name__ == "__main__":
    main(*sys.argv[1:])
