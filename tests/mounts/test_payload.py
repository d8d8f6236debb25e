"""Tests of how the client lays out what it sends and receives: memory regions, room for padding, Replies longer than
the room for them."""

from collections.abc import Iterator
from contextlib import contextmanager

import progress
import test_acl as acl_tests
from guests.cell import LONG_SECONDS, Cell
from judges import capture
from plan import provokes
from provoked import MOVED
from test_mount import ODD_SIZE

MIB = 1 << 20
# Around what a page, a region, a message and a payload end with.
EDGES = " ".join(map(str, (0, 1, 4095, 4096, 4097, 65535, 65536, 65537, 131071, MIB - 1, MIB, MIB + 1, 3 * MIB + 4097)))
# What is read and written in the largest pieces.
LARGE = 4 * MIB
REGION_PAGES, PADDING, INLINE_READ = "rdma_region_pages", "rdma_write_chunk_padding", "rdma_max_inline_read"
# Segments of 1 MiB by pages of a region; 0 for as many as rxe can do.
SEGMENTS = {0: 1, 64: 4, 17: 16}
# The mount's counters, as the user guide numbers them.
READ_SEGMENTS, WRITE_SEGMENTS, REPLY_SEGMENTS, FIXUP, INVALIDATED = 11, 12, 13, 17, 25
# READs of one piece each: of lengths that are multiples of nothing, and of such as are; into memory that begins with a
# page, and off it.
ODD, EVEN, OFF_PAGE = (65533, 200_001, MIB - 3), (65536, MIB), (65533, 200_001)
TCP_PORT = 2049
# A client that is asked for an attribute with a small buffer has two pages for an ACL, and one for any other. These are
# longer, but not too long for an inline message.
INLINE_BYTES, ACL_ENTRIES, ATTRIBUTE_BYTES, SMALL_BUFFER = 65536, 1000, 6000, 100
LEAST_PLACED = 3 * 4096
ATTRIBUTES = ("system.nfs4_acl", "user.large")


@provokes(MOVED)
def test_pages_of_a_region(cell: Cell) -> None:
    """1 MiB is one region as a rule, and as many as an administrator wants, up to sixteen. Also off every boundary."""
    path = f"/proc/sys/sunrpc/{REGION_PAGES}"
    cell.load_modules()
    taken = cell.client(f"for value in 1 16 258 -1 x; do echo $value 2> /dev/null > {path} && echo $value; done; true")
    value = cell.client(f"cat {path}").strip()
    if taken or value != "0":
        raise progress.Failure(f"{REGION_PAGES} takes {' '.join(taken.split())}, and is {value}")
    with largest_payloads(cell):
        for pages, segments in SEGMENTS.items():
            with cell.tunable(REGION_PAGES, pages), cell.mounted():
                mounted = cell.client("grep ' /mnt ' /proc/mounts")
                if f"rsize={MIB},wsize={MIB}," not in mounted:
                    raise progress.Failure(f"READs and WRITEs are not of 1 MiB: {mounted.strip()}")
                before = cell.counter(READ_SEGMENTS), cell.counter(WRITE_SEGMENTS)
                cell.client(f"/lab/files.py make /mnt/t/out {LARGE} --direct then check /mnt/t/out --direct",
                            LONG_SECONDS)
                counts = cell.counter(READ_SEGMENTS) - before[0], cell.counter(WRITE_SEGMENTS) - before[1]
                wanted = LARGE // MIB * segments
                if counts != (wanted, wanted):
                    raise progress.Failure(f"with {REGION_PAGES} {pages} the chunks of {LARGE // MIB} WRITEs and READs have "
                                      f"{counts} segments, and not {wanted} each")
                # Off every page boundary, and with less than a segment's pages at the end.
                cell.written("odd", f"{MIB} {2 * MIB + 1}", "--direct --odd")


@contextmanager
def largest_payloads(cell: Cell) -> Iterator[None]:
    """A server that takes 1 MiB at once, for which its guest's memory is too small by nfsd's own rule."""
    size = "/proc/fs/nfsd/max_block_size"
    usual = cell.server(f"cat {size}").strip()

    def serve(bytes_at_once: str) -> None:
        cell.guests.stop_serving()
        cell.server(f"echo {bytes_at_once} > {size}")
        cell.load_modules()

    with progress.undoing(lambda: serve(usual)):
        serve(str(MIB))
        yield


@provokes(MOVED)
def test_one_key_for_a_read_of_any_length(cell: Cell) -> None:
    """A READ of any length is one segment, whose key the server invalidates; with room for padding, an odd one is two,
    and the client takes back the key. By the counters, and also off every boundary; `rdma_write_chunk_padding` at 1
    makes the room."""
    cell.load_modules()
    sizes = " ".join(map(str, (*ODD, *EVEN)))
    with largest_payloads(cell):
        with cell.mounted(prepare=f"/lab/files.py make in {sizes}"):
            for lengths, mode in ((ODD, ""), (EVEN, ""), (OFF_PAGE, "--odd")):
                _expect_keys(cell, lengths, mode, len(lengths), 0)
        with cell.tunable(PADDING, 1), cell.mounted(prepare=f"/lab/files.py make in {sizes}"):
            _expect_keys(cell, ODD, "", 2 * len(ODD), len(ODD))


def _expect_keys(cell: Cell, lengths: tuple[int, ...], mode: str, segments: int, invalidated: int) -> None:
    """Read files of these lengths, and fail unless their Write chunks have so many segments, and the client takes back
    the keys of so many RPCs. Nothing else is under way that has a chunk."""
    numbers = WRITE_SEGMENTS, REPLY_SEGMENTS, INVALIDATED
    before = [cell.counter(number) for number in numbers]
    cell.client(f"/lab/files.py check /mnt/t/in {' '.join(map(str, lengths))} --direct {mode}", LONG_SECONDS)
    counts = [cell.counter(number) - then for number, then in zip(numbers, before)]
    if counts != [segments, 0, invalidated]:
        raise progress.Failure(f"READs of {lengths} bytes {mode}: {counts[0]} segments of Write chunks, {counts[1]} of Reply "
                          f"chunks, {counts[2]} RPCs whose keys the client took back; not {segments}, 0, {invalidated}")


def test_room_for_padding(cell: Cell) -> None:
    """A segment of its own for padding, which a server as it should be leaves alone. tshark finds the segment
    (`rdma_write_chunk_padding` at 1), and nothing in it."""
    cell.load_modules()
    with cell.tunable(PADDING, 1), cell.captured() as path, cell.mounted():
        # Past the page cache, which would read whole pages; not a multiple of four, and one that is.
        cell.written("out", f"{ODD_SIZE} 100000", "--direct")
        if cell.connects() != 1:
            raise progress.Failure(f"{cell.connects()} connections were made")
    capture.judge_padding(path, ODD_SIZE)


def test_reply_longer_than_its_room(cell: Cell) -> None:
    """An inline Reply that is longer than the consumer has room for: the consumer finds out what is missing, and says
    the same as over TCP."""
    cell.load_modules()
    prepare = (f"touch a && {acl_tests.set_acl(ACL_ENTRIES)} a && python3 -c "
               f"'import os; os.setxattr(\"a\", \"user.large\", bytes({ATTRIBUTE_BYTES}))'")
    ask = " && ".join(f"/lab/xattr.py /mnt/t/a {name} {SMALL_BUFFER}" for name in ATTRIBUTES)
    tunable = "/proc/sys/sunrpc/svc_rdma/max_req_size"
    usual = cell.server(f"cat {tunable}").strip()
    with cell.tunable(INLINE_READ, INLINE_BYTES), progress.undoing(lambda: cell.server(f"echo {usual} > {tunable}")):
        cell.server(f"echo {INLINE_BYTES} > {tunable}")
        with cell.mounted(prepare=prepare):
            before = cell.counter(FIXUP)
            ours = cell.client(ask).split()
            placed = cell.counter(FIXUP) - before
            if cell.connects() != 1:
                raise progress.Failure(f"{cell.connects()} connections were made")
    # Not at the same time, or NFS would use one transport for both.
    with cell.mounted(cell.mount_command(option="proto=tcp", port=TCP_PORT), prepare=prepare):
        over_tcp = cell.client(ask).split()
    if ours != over_tcp or over_tcp != ["ERANGE"] * len(ATTRIBUTES):
        raise progress.Failure(f"with a small buffer {' and '.join(ATTRIBUTES)} give {ours}, and {over_tcp} over TCP")
    # That is, the Replies were cut off, and did not come through a chunk.
    if placed < LEAST_PLACED:
        raise progress.Failure(f"only {placed} bytes of the Replies came inline")
