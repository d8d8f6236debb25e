#!/usr/bin/python3 -IS
"""Has allocations of memory fail, those alone that are made on behalf of our module: with it on the stack.

shortage.py sweep SOURCE OPTIONS KIND INTERVAL...    for each interval one of so many allocations fails
shortage.py sites SOURCE OPTIONS KIND                each place in the module that allocates fails to, once
shortage.py begin KIND INTERVAL                      one of so many fails from now on
shortage.py end KIND                                 no more; prints how many have failed since

KIND is slab or page. The places are those that allocate in each of two mounts without failures. The sweep mounts /mnt, writes, reads and unmounts each time; it ends early when that needs fewer
allocations. One that fails may cost time, or the mount an error; nothing else.
"""

import contextlib
import ctypes
import errno
import mmap
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

DIRECTORIES = {"slab": Path("/sys/kernel/debug/failslab"), "page": Path("/sys/kernel/debug/fail_page_alloc")}
# Also those that may wait, are of one page, and need no kernel address.
EVERYTHING = {"ignore-gfp-wait": "N", "cache-filter": "Y", "min-order": "0", "ignore-gfp-highmem": "N"}
# What finds mistakes must not be short of memory itself: it would give up. The debugging of DMA has nodes of radix trees.
TOOLS = ("kmemleak_object", "kmemleak_scan_area", "debug_objects_cache", "radix_tree_node")
OF_TOOLS = re.compile(r"kmemleak|debug_object|radix_tree_node|xas_")
# Where a device that plays an adapter takes note of each page that is mapped. An adapter allocates nothing for that, and
# with that no attempt to connect would make so few allocations that none of them fails.
NOTES = "adapter_map_phys", "adapter_map_sg"
MANY = 1 << 30
# What a mount may fail with.
REFUSALS = (errno.ENOMEM, errno.EIO, errno.EAGAIN, errno.EPROTO, errno.ENOTCONN, errno.ETIMEDOUT, errno.EHOSTUNREACH)
# Inline, and through chunks.
SIZES = 300, 70_000
EVENTS = {"slab": ("kmem/kmalloc", "kmem/kmem_cache_alloc"), "page": ("kmem/mm_page_alloc",)}
# What is larger is no slab's, and a page then.
FILTER, LARGEST = "kmem/kmalloc/filter", 2 * mmap.PAGESIZE
TRACE = Path("/sys/kernel/tracing/instances/sites")
BUFFER_KB = 65536
FRAME = re.compile(r" => (.*) <([0-9a-f]+)>$")
# Whose pages have no say of their own: if one is missing, it is the slab that fails. Large ones are pages at once.
SLABS, LARGE = re.compile(r"slab|kmalloc|kmem_cache"), re.compile(r"kmalloc_large")
# So often a place may be passed by before it counts as missed.
TRIES = 3
LIBC = ctypes.CDLL(None, use_errno=True)


class Mistake(Exception):
    """Something that a shortage of memory is no excuse for."""


def functions(module: str) -> dict[str, int]:
    """Where the functions of a module are."""
    found = {}
    with open("/proc/kallsyms") as symbols:
        for line in symbols:
            if line.endswith(f"[{module}]\n"):
                address, kind, name, *_ = line.split()
                if kind in "tT":
                    found[name] = int(address, 16)
    return found


def text() -> tuple[int, int]:
    """Where our module's code is, in whole pages."""
    addresses = functions("rpcrdma").values()
    return min(addresses) & ~0xfff, (max(addresses) | 0xfff) + 1


def notes() -> tuple[int, int]:
    """Where the device takes note of mapped pages, if it does."""
    code = functions("rdma_rxe")
    places = sorted(code[name] for name in NOTES if name in code)
    if not places:
        return 0, 0
    return places[0], min((address for address in code.values() if address > places[-1]), default=places[-1] + 1)


def write(kind: str, **values: int | str) -> None:
    for name, value in values.items():
        (DIRECTORIES[kind] / name.replace("_", "-")).write_text(f"{value}")


def prepare(kind: str) -> None:
    """Choose which allocations may fail."""
    start, end = text()
    write(kind, probability=0, verbose=0, space=0, require_start=hex(start), require_end=hex(end), stacktrace_depth=32,
          reject_start="0", reject_end="0")
    for name, value in EVERYTHING.items():
        if (DIRECTORIES[kind] / name).exists():
            (DIRECTORIES[kind] / name).write_text(value)
    for cache in Path("/sys/kernel/slab").iterdir():
        # One that several share can not be chosen.
        with contextlib.suppress(OSError):
            (cache / "failslab").write_text("0" if cache.name in TOOLS else "1")


def begin(kind: str, interval: int, times: int) -> None:
    write(kind, interval=interval, times=times, probability=100)


def end(kind: str) -> int:
    """How many more might have failed."""
    write(kind, probability=0)
    return int((DIRECTORIES[kind] / "times").read_text())


def call(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def use(source: str, options: str) -> None:
    """A mount, from its beginning to its end; OSError if it could not be made."""
    kind = b"nfs4" if "vers=4" in options else b"nfs"
    call(LIBC.mount(source.encode(), b"/mnt", kind, 0, options.encode()), "mount")
    try:
        for size in SIZES:
            write_and_read(f"/mnt/t/short-{size}", os.urandom(size))
    except OSError as error:
        raise Mistake(f"on a mount: {error}") from error
    try:
        call(LIBC.umount2(b"/mnt", 0), "umount")
    except OSError as error:
        raise Mistake(f"{error}") from error


def write_and_read(path: str, data: bytes) -> None:
    """By the page cache, and past it."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.write(file, data)
    os.fsync(file)
    os.close(file)
    room = mmap.mmap(-1, (len(data) | 0xfff) + 1)
    file = os.open(path, os.O_RDONLY | os.O_DIRECT)
    length = os.preadv(file, [room], 0)
    os.close(file)
    if room[:length] != data:
        raise Mistake(f"{path}: other bytes were read than written")


def sweep(source: str, options: str, kind: str, intervals: list[int]) -> str:
    """What came of it, in words."""
    prepare(kind)
    failed = refused = missed = 0
    for count, interval in enumerate(intervals, 1):
        begin(kind, interval, 1)
        try:
            use(source, options)
        except OSError as error:
            if error.errno not in REFUSALS:
                raise Mistake(f"interval {interval}: {error}") from error
            refused += 1
        finally:
            left = end(kind)
        failed += left == 0
        # Twice, since where the count begins is a matter of luck.
        missed = 0 if left == 0 else missed + 1
        if missed == 2:
            break
    use(source, options)
    return f"{count} mounts, {failed} allocations failed, {refused} mounts were refused"


def sites(source: str, options: str, kind: str) -> str:
    """What came of it, in words."""
    prepare(kind)
    names: dict[int, str] = {}
    stacks = set(recorded(source, options, kind, names)) & set(recorded(source, options, kind, names))
    places = sorted(tell_apart(stacks))
    if not places:
        raise Mistake("nothing in the module allocates")
    refused, missed = 0, []
    for place in places:
        for _ in range(TRIES):
            write(kind, require_start=hex(place), require_end=hex(place + 1))
            begin(kind, 1, 1)
            try:
                use(source, options)
            except OSError as error:
                if error.errno not in REFUSALS:
                    raise Mistake(f"{names[place]}: {error}") from error
                refused += 1
            except Mistake as mistake:
                raise Mistake(f"{names[place]}: {mistake}") from mistake
            finally:
                left = end(kind)
            if left == 0:
                break
        else:
            missed.append(names[place])
    use(source, options)
    if missed:
        raise Mistake(f"{len(missed)} of {len(places)} places did not fail: {', '.join(missed)}")
    return f"{len(places)} places failed, {refused} mounts were refused"


def recorded(source: str, options: str, kind: str, names: dict[int, str]) -> Iterator[tuple[int, ...]]:
    """Where the module was, from the inside to the outside, at each allocation of a mount; and what is there."""
    start, end = text()
    TRACE.mkdir()
    try:
        with traced(kind):
            use(source, options)
        yield from of_module(TRACE / "trace", kind, start, end, names)
    finally:
        TRACE.rmdir()


@contextlib.contextmanager
def traced(kind: str) -> Iterator[None]:
    """Allocations are recorded with their stacks for the length of a block."""
    (TRACE / "buffer_size_kb").write_text(f"{BUFFER_KB}")
    for option in ("stacktrace", "sym-addr"):
        (TRACE / "options" / option).write_text("1")
    (TRACE / "events" / FILTER).write_text(f"bytes_alloc <= {LARGEST}")
    events = [TRACE / "events" / event / "enable" for event in EVENTS[kind]]
    for event in events:
        event.write_text("1")
    try:
        yield
    finally:
        for event in events:
            event.write_text("0")
    for counts in TRACE.glob("per_cpu/cpu*/stats"):
        if "overrun: 0\n" not in counts.read_text():
            raise Mistake(f"the record of allocations is not whole: {counts.read_text()}")


def of_module(record: Path, kind: str, start: int, end: int, names: dict[int, str]) -> Iterator[tuple[int, ...]]:
    """The module's part of each stack."""
    inside: list[str] = []
    stack: dict[int, str] = {}

    def ended() -> Iterator[tuple[int, ...]]:
        if stack and may_fail(kind, inside):
            for address, name in stack.items():
                names.setdefault(address, name)
            yield tuple(stack)

    with open(record) as lines:
        for line in lines:
            frame = FRAME.match(line)
            if frame is None:
                yield from ended()
                inside, stack = [], {}
                continue
            name, address = frame[1], int(frame[2], 16)
            if start <= address < end:
                called = "" if stack else f" ({' '.join(reversed(inside))})"
                stack[address] = f"{name}+{address - start:#x}{called}"
            elif not stack:
                inside.append(name)
    yield from ended()


def may_fail(kind: str, inside: list[str]) -> bool:
    """Whether an allocation fails by this kind, as the functions below the module tell."""
    if any(OF_TOOLS.search(name) for name in inside):
        return False
    large = any(LARGE.search(name) for name in inside)
    of_slab = not large and any(SLABS.search(name) for name in inside)
    return of_slab == (kind == "slab")


def tell_apart(stacks: set[tuple[int, ...]]) -> set[int]:
    """Where the module is in each of these allocations and in no other: where it calls the allocator, or where it
    calls what does so for several."""
    found = set()
    for first in {stack[0] for stack in stacks}:
        callers = {stack[1:] for stack in stacks if stack[0] == first}
        if len({caller[:1] for caller in callers}) == 1 or () in callers:
            found.add(first)
        else:
            found |= tell_apart(callers)
    return found


def main(what: str, *arguments: str) -> int:
    try:
        if what == "sweep":
            source, options, kind, *intervals = arguments
            print(sweep(source, options, kind, [int(interval) for interval in intervals]))
        elif what == "sites":
            print(sites(*arguments))
        elif what == "begin":
            prepare(arguments[0])
            spared, end_of_spared = notes()
            write(arguments[0], reject_start=hex(spared), reject_end=hex(end_of_spared))
            begin(arguments[0], int(arguments[1]), MANY)
        else:
            print(MANY - end(arguments[0]))
    except Mistake as mistake:
        print(mistake, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
