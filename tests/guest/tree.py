#!/usr/bin/python3 -IS
"""Makes, moves, reads and deletes many small files, and takes locks, as long as it is told to. A file's bytes follow
from its name.

tree.py work DIR PROCESSES SECONDS    prints what was done, in JSON
tree.py look DIR                      compares every file with what it has to hold; prints a sum of all names
tree.py touch DIR COUNT               opens so many files, as one who would write, but changes nothing: at a server,
                                      that recalls what is delegated, for which it does not wait; waits a while for
                                      the files to be there; prints how many are delegated

Each process has directories of its own and knows what has to be in them. Under the locks all of them count, so that a
number that is lost shows.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import random
import struct
import sys
import time
from collections import Counter

sys.path.append("/lab")

import files  # noqa: E402

PLACES = ("a", "b", "c")
LONGEST = 20_000
MOST_FILES = 200
# For files to be there.
WAIT_SECONDS = 60
COUNTERS = 2
NUMBER = struct.Struct("=Q")
# One look at a whole directory in so many operations.
LOOK_EVERY = 50


class Mistake(Exception):
    """Something is not as it was left."""


class Worker:
    """One process."""

    def __init__(self, directory: str, number: int) -> None:
        self._root, self._top = f"{directory}/{number}", directory
        self._luck = random.Random(number)
        # Where each file is.
        self._files: dict[str, str] = {}
        self._next = 0
        self.done: Counter[str] = Counter()
        for place in PLACES:
            os.makedirs(f"{self._root}/{place}", exist_ok=True)

    def step(self) -> None:
        """Something that is possible now."""
        kinds = [self._count]
        if len(self._files) < MOST_FILES:
            kinds += [self._make] * 3
        if self._files:
            kinds += [self._move, self._delete, self._read, self._read]
        self._luck.choice(kinds)()
        self.done["operations"] += 1
        if self.done["operations"] % LOOK_EVERY == 0:
            self.look()

    def look(self) -> None:
        """Every file is where it was left, and no other."""
        for place in PLACES:
            found, left = set(os.listdir(f"{self._root}/{place}")), {n for n, p in self._files.items() if p == place}
            if found != left:
                raise Mistake(f"{self._root}/{place}: lost {sorted(left - found)}, not deleted {sorted(found - left)}")

    def _path(self, name: str) -> str:
        return f"{self._root}/{self._files[name]}/{name}"

    def _any(self) -> str:
        return self._luck.choice(list(self._files))

    def _make(self) -> None:
        size = self._luck.randrange(LONGEST)
        name, self._next = f"file{self._next}-{size}", self._next + 1
        self._files[name] = self._luck.choice(PLACES)
        files.write(self._path(name), files.content(name, size), direct=self._luck.random() < 0.3, odd=False)
        self.done["made"] += 1

    def _read(self) -> None:
        name = self._any()
        size = files.size_of(name)
        if not files.holds(self._path(name), files.content(name, size), direct=self._luck.random() < 0.5, odd=False):
            raise Mistake(f"{self._path(name)} has wrong bytes")
        self.done["bytes"] += size

    def _move(self) -> None:
        name = self._any()
        before, self._files[name] = self._path(name), self._luck.choice(PLACES)
        with self._repeated(before):
            os.rename(before, self._path(name))
        self.done["moved"] += 1

    def _delete(self) -> None:
        name = self._any()
        path = self._path(name)
        with self._repeated(path):
            os.unlink(path)
        del self._files[name]
        self.done["deleted"] += 1

    @contextlib.contextmanager
    def _repeated(self, path: str):
        """A server that has begun anew does not know that it has done this already, when it is asked again. If it
        has not, the next look shows it."""
        try:
            yield
        except FileNotFoundError:
            self.done["repeated"] += 1

    def _count(self) -> None:
        """Under a lock: one more."""
        number = self._luck.randrange(COUNTERS)
        file = os.open(f"{self._top}/counter-{number}", os.O_RDWR | os.O_CREAT, 0o644)
        fcntl.lockf(file, fcntl.LOCK_EX)
        value, = NUMBER.unpack(os.pread(file, NUMBER.size, 0) or bytes(NUMBER.size))
        os.pwrite(file, NUMBER.pack(value + 1), 0)
        # By then it has been written.
        fcntl.lockf(file, fcntl.LOCK_UN)
        os.close(file)
        self.done["counted"] += 1


def work(directory: str, processes: int, seconds: int) -> int:
    """All of them; prints the sum of what they did."""
    end = time.monotonic() + seconds
    results, into = os.pipe()

    def run(number: int) -> None:
        worker = Worker(directory, number)
        while time.monotonic() < end:
            worker.step()
        worker.look()
        os.write(into, json.dumps(worker.done).encode() + b"\n")

    failed = files.each(processes, run)
    os.close(into)
    with os.fdopen(results) as lines:
        done: Counter[str] = sum((Counter(json.loads(line)) for line in lines), Counter())
    counted = sum(NUMBER.unpack(read(f"{directory}/counter-{number}"))[0] for number in range(COUNTERS))
    if counted != done["counted"]:
        print(f"{done['counted']} counted, of which {counted} are left", file=sys.stderr)
        failed += 1
    print(json.dumps({**done, "names": names(directory)}))
    return 1 if failed else 0


def read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def all_files(directory: str) -> list[str]:
    return sorted(f"{number}/{place}/{name}" for number in os.listdir(directory) if number.isdecimal()
                  for place in PLACES for name in os.listdir(f"{directory}/{number}/{place}"))


def names(directory: str) -> str:
    return hashlib.sha256("\n".join(all_files(directory)).encode()).hexdigest()


def look(directory: str) -> int:
    wrong = [path for path in all_files(directory)
             if read(f"{directory}/{path}") != files.content(name := os.path.basename(path), files.size_of(name))]
    if wrong:
        print("wrong bytes in:", *wrong, file=sys.stderr)
    print(names(directory))
    return 1 if wrong else 0


def touch(directory: str, count: int) -> int:
    found: list[str] = []
    deadline = time.monotonic() + WAIT_SECONDS
    while len(found) < count and time.monotonic() < deadline:
        time.sleep(1)
        # The directories may be on their way, too.
        with contextlib.suppress(FileNotFoundError):
            found = all_files(directory)
    delegated = 0
    for path in random.sample(found, min(count, len(found))):
        try:
            os.close(os.open(f"{directory}/{path}", os.O_RDWR | os.O_NONBLOCK))
        except FileNotFoundError:
            # By now it is somewhere else.
            pass
        except BlockingIOError:
            delegated += 1
    print(delegated)
    return 0


if __name__ == "__main__":
    if sys.argv[1] == "work":
        os.makedirs(sys.argv[2], exist_ok=True)
        sys.exit(work(sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
    if sys.argv[1] == "touch":
        sys.exit(touch(sys.argv[2], int(sys.argv[3])))
    sys.exit(look(sys.argv[2]))
