"""The tests of memory that is short: allocations that fail one by one, processes that may not have what they need, and
swap on a file of the mount."""

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import progress
import test_client_life as client_life_tests
import test_life as life_tests
import test_loading as loading
from guests.cell import LONG_SECONDS, SUMS, Cell
from judges.messages import Expected
from plan import Test, provokes
from provoked import NOT_RESPONDING
from totals import TOTALS, Kind

VERSION = "4.2"
KINDS = ("slab", "page")
# One allocation of so many fails while something is mounted, used and unmounted, which takes some hundreds of them.
COARSELY = (3, 30, 150)
SECONDS_EACH = 60
# The module allocates in about so many places.
PLACES = 100
EACH_FAILED = re.compile(r"(\d+) places failed, (\d+) mounts were refused")
# Fewer would mean that they were not found: a connection alone has more.
LEAST_PLACES = {"slab": 20, "page": 2}
SWEPT = re.compile(r"(\d+) mounts, (\d+) allocations failed, (\d+) mounts were refused")
# Where shortage.py writes.
DIRECTORY = "mkdir -p -m 777 /export/t"
# Under load one of so many fails. Making a connection takes about a hundred, and has to succeed now and then.
INTERVALS = {"slab": 200, "page": 100}
SHORT_SECONDS = 60
# Of so many RPCs that are sent one breaks the connection. A new one of version 2 begins with three times the credits, and all that
# was sent is sent again: little would ever be answered.
BREAK_INTERVALS = {1: 100, 2: 400}
LEAST_FAILED = 3
# In MiB: where a group of processes is slowed down, what it may have at most, and what it needs.
SLOWED, MOST, STREAMED = 24, 48, 64
SWAP, HELD, SWAP_SLOWED, SWAP_MOST, ROUNDS = 64, 48, 20, 32, 2
LEAST_SWAPPED = 8 << 20
# So small that a stream takes many RPCs.
SIZE = 65536
LIMITED = "SLOWED={} MOST={} /lab/limited begin"
# Everybody whose allocation fails says so in his own words; what is never all right is not among them.
OTHERS = Expected(100_000, re.compile(r"(?!rpcrdma: ).*"), "allocations fail")
SWAPPED = Expected(2, re.compile(r"Adding \d+k swap on \S+.*"), "swap is added")
BROKEN = client_life_tests.BROKEN


def cases() -> list[Test]:
    """Those of a client whose kernel keeps accounts of memory."""
    return [test_each_allocation_fails_once, test_memory_short_under_load, test_more_written_than_kept,
            test_written_while_memory_is_short, test_swap_on_the_mount, life_tests.test_nothing_left, loading.test_no_leak]


@provokes(BROKEN, OTHERS)
def test_allocations_fail(cell: Cell, intervals: tuple[int, ...]) -> None:
    """One allocation fails each time that something is mounted, used and unmounted, now the one and then the other:
    that works, or the mount fails with an error; and it works the next time."""
    cell.load_modules()
    cell.server(DIRECTORY)
    call = cell.mount_call()
    for kind in KINDS:
        said = cell.client(f"/lab/shortage.py sweep {call} {kind} {' '.join(map(str, intervals))}",
                           LONG_SECONDS + SECONDS_EACH * len(intervals))
        progress.line(f"  {kind}: {said.strip()}")
        judge_sweep(said)


@provokes(BROKEN, OTHERS)
def test_each_allocation_fails_once(cell: Cell) -> None:
    """Each place in the module that allocates while something is mounted, used and unmounted fails to, once: that
    works, or the mount fails with an error; and it works the next time. The places are found by the stacks of all
    allocations of two mounts without failures; none may be missed."""
    cell.load_modules()
    cell.server(DIRECTORY)
    for kind in KINDS:
        said = cell.client(f"/lab/shortage.py sites {cell.mount_call()} {kind}", LONG_SECONDS + SECONDS_EACH * PLACES)
        progress.line(f"  {kind}: {said.strip()}")
        judge_places(kind, said)
    # A client that has no memory to say good-bye with says none, and nfsd keeps what is idle for minutes.
    cell.guests.stop_serving()
    cell.load_modules()


def judge_places(kind: str, said: str) -> None:
    """Fail unless places failed, and some of them to the mount's loss."""
    found = EACH_FAILED.match(said)
    if found is None:
        raise progress.Failure(f"no account of it: {said.strip()}")
    places, refused = map(int, found.groups())
    if places < LEAST_PLACES[kind] or (kind == "slab" and refused == 0):
        raise progress.Failure(f"{places} places, {refused} mounts refused")


def judge_sweep(said: str) -> None:
    """Fail unless allocations failed, as good as each time."""
    found = SWEPT.match(said)
    if found is None:
        raise progress.Failure(f"no account of it: {said.strip()}")
    mounts, failed, refused = map(int, found.groups())
    # The last ones may have needed fewer.
    if failed == 0 or failed < mounts // 2:
        raise progress.Failure(f"only {failed} allocations failed with {mounts} mounts")
    if refused == mounts:
        raise progress.Failure("no mount succeeded")


@provokes(BROKEN, OTHERS)
def test_memory_short_under_load(cell: Cell) -> None:
    """Allocations fail again and again, while connections are broken and made under a load that compares its data."""
    cell.load_modules()
    with cell.mounted():
        before = cell.connects()
        with cell.load():
            with _short(cell) as failed, cell.broken(cell.guests.client, BREAK_INTERVALS[cell.protocol]):
                cell.guests.clock.sleep(SHORT_SECONDS)
            # The last attempt to connect may have failed, and the next one be a minute away.
            life_tests.await_connection(cell)
        cell.still_works()
        made = cell.connects() - before
    _judge_short(failed, made)


def _judge_short(failed: dict[str, int], made: int) -> None:
    progress.line(f"  failed: {', '.join(f'{count} of {kind}' for kind, count in failed.items())}; {made} new connections")
    if min(failed.values()) < LEAST_FAILED or made == 0:
        raise progress.Failure("too little came to pass")


@contextmanager
def _short(cell: Cell) -> Iterator[dict[str, int]]:
    """Allocations fail for the length of a block; how many of each kind it were is known after it."""
    failed: dict[str, int] = {}

    def end() -> None:
        failed.update({kind: int(cell.client(f"/lab/shortage.py end {kind}")) for kind in KINDS})

    with progress.undoing(end):
        for kind in KINDS:
            cell.client(f"/lab/shortage.py begin {kind} {INTERVALS[kind]}")
        yield failed


@provokes(BROKEN, NOT_RESPONDING)
def test_more_written_than_kept(cell: Cell) -> None:
    """A process writes more than it may keep in memory, and reads it, while connections are broken."""
    cell.load_modules()
    _stream(cell, short=False)


@provokes(BROKEN, OTHERS)
def test_written_while_memory_is_short(cell: Cell) -> None:
    """The same while allocations fail: what is dirty gets to the server, and so out of memory, all the same."""
    cell.load_modules()
    _stream(cell, short=True)


def _stream(cell: Cell, short: bool) -> None:
    with cell.mounted(cell.mount_command(option=f"proto=rdma,rsize={SIZE},wsize={SIZE}")), _ended(cell):
        before = cell.connects()
        with ExitStack() as stack:
            failed = stack.enter_context(_short(cell)) if short else None
            stack.enter_context(cell.broken(cell.guests.client, BREAK_INTERVALS[cell.protocol]))
            cell.client(f"{LIMITED.format(SLOWED, MOST)} /lab/pressure.py stream /mnt/t/stream {STREAMED}",
                        3 * LONG_SECONDS)
        made = cell.connects() - before
        if made == 0:
            raise progress.Failure("no connection was broken")
        if failed is not None:
            _judge_short(failed, made)
        # The process itself has compared as much.
        TOTALS.add(Kind.BYTES, cell.judge("stream", cell.server(SUMS.format("stream"), LONG_SECONDS)))


@provokes(BROKEN, SWAPPED, NOT_RESPONDING)
def test_swap_on_the_mount(cell: Cell) -> None:
    """A process has more in memory than it may, and so in a swap file on the mount, while connections are broken."""
    cell.load_modules()
    with cell.mounted(), _ended(cell):
        cell.client(f"dd if=/dev/zero of=/mnt/t/swap bs=1M count={SWAP} conv=fsync status=none && "
                    "chmod 600 /mnt/t/swap && mkswap /mnt/t/swap && swapon /mnt/t/swap", LONG_SECONDS)
        with progress.undoing(lambda: cell.client("swapoff /mnt/t/swap", LONG_SECONDS)):
            before = cell.connects()
            with cell.broken(cell.guests.client, BREAK_INTERVALS[cell.protocol]):
                hold = f"{LIMITED.format(SWAP_SLOWED, SWAP_MOST)} /lab/pressure.py hold {HELD} {ROUNDS}"
                found = int(cell.client(hold, 3 * LONG_SECONDS))
                TOTALS.add(Kind.BYTES, ROUNDS * HELD << 20)
            made = cell.connects() - before
        progress.line(f"  {found >> 20} of {HELD} MiB were in the swap file; {made} new connections")
        if found < LEAST_SWAPPED or made == 0:
            raise progress.Failure(f"{found} bytes were swapped out, {made} new connections made")
        cell.still_works()


@contextmanager
def _ended(cell: Cell) -> Iterator[None]:
    """The group of processes goes at the end of a block; it was slowed down, but nothing in it killed for its memory."""
    with progress.undoing(lambda: cell.client("test ! -d /sys/fs/cgroup/limited || /lab/limited end")):
        yield
        events = cell.client("/lab/limited end")
        if not re.search(r"^oom_kill 0$", events, re.MULTILINE):
            raise progress.Failure(f"the group ran out of memory: {' '.join(events.split())}")
        if not re.search(r"^high [1-9]", events, re.MULTILINE):
            raise progress.Failure(f"the group had memory enough: {' '.join(events.split())}")
