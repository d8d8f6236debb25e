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


class Watcher(threading.Thread):
    """Looks at one file until it is told to end."""

    def __init__(self, path: str) -> None:
        super().__init__(daemon=True)
        self.path = path
        # Of the looks that have ended; seconds, and when the longest began.
        self.looks, self.longest, self.when = 0, 0.0, 0.0
        # When the present or the last one began.
        self.began = time.monotonic()
        self.ends = threading.Event()

    def run(self) -> None:
        while not self.ends.is_set():
            self.began = time.monotonic()
            # The attributes that the client has kept are not what is asked for.
            os.stat(self.path)
            self.looks += 1
            self._note()
            self.ends.wait(PAUSE_SECONDS)

    def _note(self) -> None:
        took = time.monotonic() - self.began
        if took > self.longest:
            self.longest, self.when = took, self.began

    def told(self, begun: float) -> str:
        """Says what came of it. A look that does not end in a second counts for as long as it has taken."""
        self.ends.set()
        self.join(1)
        if self.is_alive():
            self._note()
        return f"{self.longest:.2f} {self.when - begun:.0f} {self.looks} {self.path}"


def main(seconds: str, *paths: str) -> None:
    begun = time.monotonic()
    watchers = [Watcher(path) for path in paths]
    for watcher in watchers:
        watcher.start()
    time.sleep(float(seconds))
    # Each was at it to the end: a look that fails ends the thread.
    dead = [watcher.path for watcher in watchers if not watcher.is_alive()]
    if dead:
        sys.exit(f"looks failed at: {' '.join(dead)}")
    for watcher in watchers:
        print(watcher.told(begun))


if __name__ == "__main__":
    main(*sys.argv[1:])
