#!/usr/bin/python3 -IS
"""Makes and checks the files of the mount tests. A file's bytes follow from its name, so either end can judge it.

files.py make DIR SIZE... [--direct] [--odd]    write one file for each size
files.py check DIR [SIZE...] [--direct] [--odd] read every file, or those, and compare it with what it has to hold
files.py link DIR [LONGEST]                     make symbolic links with short and very long targets
files.py follow DIR                             read them and compare
files.py workers DIR COUNT BYTES                COUNT processes write, read back and compare at the same time
files.py load DIR COUNT                         COUNT processes write and read, or list directories, until they are killed;
                                                /tmp/load.verified says how many bytes each has compared, and there is
                                                a /tmp/load.ready when all are there
files.py forget                                 write back and drop what the kernel has in its caches

Several, with `then` between them, are done in turn: starting Python takes an emulated machine a second.
--odd uses memory and file offsets that are not multiples of anything.
"""

import contextlib
import mmap
import os
import random
import sys
from collections.abc import Callable

PIECE = 1 << 20
# What is behind the memory for a READ, which nobody may touch: more than XDR padding.
BEHIND = b"\xa5" * 64
# The longest target there is, and some that fit one kind of message but not another.
LINKS = (1, 100, 1000, 2000, 4000, 4095)
# Their list fits into no message.
NAMES = {f"{number:0250}" for number in range(64)}
# Lists that are short as a rule, so that the client has no room for one that is not.
LISTS: dict[str, set[str]] = {"none": set(), "empty": set(), "many": NAMES}
# Processes of a load that list directories.
LISTERS = 3


def content(name: str, size: int) -> bytes:
    """The bytes of the file `name`."""
    piece = random.Random(name).randbytes(min(size, PIECE))
    return (piece * (size // PIECE + 1))[:size]


def size_of(name: str) -> int:
    """A file's name ends with its size."""
    return int(name.rsplit("-", 1)[1])


def pieces(size: int, odd: bool):
    """Offsets and lengths that cover a file, on or off page boundaries."""
    step = PIECE - 511 if odd else PIECE
    return [(offset, min(step, size - offset)) for offset in range(0, size, step)]


def memory(odd: bool) -> memoryview:
    """Room for a piece at a page boundary, or three bytes beyond one."""
    view = memoryview(mmap.mmap(-1, PIECE + 4096))
    return view[3:] if odd else view


def write(path: str, data: bytes, direct: bool, odd: bool) -> None:
    room = memory(odd)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | (os.O_DIRECT if direct else 0), 0o644)
    for offset, length in pieces(len(data), odd):
        room[:length] = data[offset:offset + length]
        done = 0
        while done < length:
            done += os.pwrite(file, room[done:length], offset + done)
    os.fsync(file)
    os.close(file)


def holds(path: str, data: bytes, direct: bool, odd: bool) -> bool:
    """Whether a file reads as exactly these bytes, and nothing is written behind the memory for them."""
    room = memory(odd)
    file = os.open(path, os.O_RDONLY | (os.O_DIRECT if direct else 0))
    try:
        if os.fstat(file).st_size != len(data):
            return False
        for offset, length in pieces(len(data), odd):
            room[length:length + len(BEHIND)] = BEHIND
            done = 0
            while done < length:
                got = os.preadv(file, [room[done:length]], offset + done)
                if got == 0:
                    return False
                done += got
            if room[:length] != data[offset:offset + length]:
                return False
            if room[length:length + len(BEHIND)] != BEHIND:
                print(f"{path}: bytes behind the memory for {length} at {offset} have changed", file=sys.stderr)
                return False
        return True
    finally:
        os.close(file)


def make(directory: str, sizes: list[int], direct: bool, odd: bool) -> int:
    for size in sizes:
        name = f"file-{size}"
        write(f"{directory}/{name}", content(name, size), direct, odd)
    return 0


def check(directory: str, sizes: list[int], direct: bool, odd: bool) -> int:
    names = [f"file-{size}" for size in sizes] or os.listdir(directory)
    wrong = [name for name in names if not holds(f"{directory}/{name}", content(name, size_of(name)), direct, odd)]
    if wrong or not names:
        print("wrong bytes in:", *wrong, file=sys.stderr)
        return 1
    return 0


def link(directory: str, longest: int = LINKS[-1]) -> int:
    for length in LINKS:
        if length <= longest:
            os.symlink("x" * length, f"{directory}/link-{length}")
    return 0


def follow(directory: str) -> int:
    wrong = [length for length in LINKS if os.readlink(f"{directory}/link-{length}") != "x" * length]
    if wrong:
        print("wrong targets of", *wrong, "bytes", file=sys.stderr)
    return 1 if wrong else 0


def each(count: int, function, then: Callable[[], None] = lambda: None) -> int:
    """Run `function(number)` in so many processes at the same time, and `then` when all are there; how many failed."""
    for number in range(count):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                function(number)
                status = 0
            except Exception as error:
                print(f"process {number}: {error}", file=sys.stderr, flush=True)
            finally:
                os._exit(status)
    then()
    failed = 0
    for _ in range(count):
        _, status = os.wait()
        failed += status != 0
        if status != 0:
            code = os.waitstatus_to_exitcode(status)
            print(f"a process has ended with status {code}", file=sys.stderr, flush=True)
    return failed


def workers(directory: str, count: int, size: int) -> int:
    def work(number: int) -> None:
        name = f"worker-{number}-{size}"
        data = content(name, size)
        # Half of them go past the page cache, and some of those at odd places.
        write(f"{directory}/{name}", data, number % 2 == 0, odd=False)
        if not holds(f"{directory}/{name}", data, number % 2 == 0, number % 3 == 0):
            raise ValueError(f"{name}: read other bytes than were written")

    return each(count, work)


def make_lists(directory: str) -> None:
    for place, names in LISTS.items():
        os.makedirs(f"{directory}/{place}", exist_ok=True)
        for name in names:
            os.close(os.open(f"{directory}/{place}/{name}", os.O_WRONLY | os.O_CREAT, 0o644))


def compare_lists(directory: str) -> None:
    """Lists that have just changed, so that the server is asked for them."""
    for place, names in LISTS.items():
        # Another may be doing the same, and a server that has begun anew does not know what it has done, when it is asked
        # again.
        with contextlib.suppress(FileExistsError):
            os.mkdir(f"{directory}/{place}/new")
        with contextlib.suppress(FileNotFoundError):
            os.rmdir(f"{directory}/{place}/new")
        if set(os.listdir(f"{directory}/{place}")) - {"new"} != names:
            raise ValueError(f"{directory}/{place} has other names than were made")


def load(directory: str, count: int) -> int:
    # Lines of the same length, so that each process has a place for its own.
    verified = os.open("/tmp/load.verified", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)

    def note(number: int, compared: int) -> None:
        line = b"%19d\n" % compared
        os.pwrite(verified, line, number * len(line))

    for number in range(count):
        note(number, 0)
    lists = f"{directory}/lists"
    make_lists(lists)
    beginning, begin = os.pipe()

    def work(number: int) -> None:
        # The others are slow to start beside one that is busy.
        os.close(begin)
        os.read(beginning, 1)
        data = content(f"load-{number}", 256 * 1024)
        compared = 0
        while number < LISTERS:
            compare_lists(lists)
        while True:
            write(f"{directory}/load-{number}", data, number % 2 == 0, odd=False)
            if not holds(f"{directory}/load-{number}", data, number % 2 == 0, odd=False):
                raise ValueError("read other bytes than were written")
            compared += len(data)
            note(number, compared)

    def ready() -> None:
        os.close(begin)
        os.close(os.open("/tmp/load.ready", os.O_WRONLY | os.O_CREAT, 0o644))

    return each(count, work, ready)


def forget() -> int:
    os.sync()
    with open("/proc/sys/vm/drop_caches", "w") as file:
        file.write("3")
    return 0


def one(arguments: list[str]) -> int:
    direct, odd = "--direct" in arguments, "--odd" in arguments
    what, *words = [word for word in arguments if not word.startswith("--")]
    if what == "forget":
        return forget()
    directory, *numbers = words[0], *(int(word) for word in words[1:])
    os.makedirs(directory, exist_ok=True)
    if what == "make":
        return make(directory, numbers, direct, odd)
    if what == "check":
        return check(directory, numbers, direct, odd)
    others: dict[str, Callable[..., int]] = {"link": link, "follow": follow, "workers": workers, "load": load}
    return others[what](directory, *numbers)


def main(arguments: list[str]) -> int:
    while "then" in arguments:
        end = arguments.index("then")
        if one(arguments[:end]) != 0:
            return 1
        arguments = arguments[end + 1:]
    return one(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
