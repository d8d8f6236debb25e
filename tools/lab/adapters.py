"""`make adapters`: on each device that plays an adapter, what a mount makes of its limits, and that all is well within
them."""

import functools
import os
import re
from dataclasses import dataclass, replace

import mounts
import progress
import repository
import settings
import table
from guests import devices
from guests.cell import LONG_SECONDS, Cell, Test
from guests.pair import OURS
from mounts import Worker, Plan
from results import Results
from tests import (adapter as adapter_tests, client_life as client_life_tests, mount as mount_tests,
                   payload as payload_tests, pull as pull_tests)
from tests.payload import EDGES, MIB, READ_SEGMENTS, REPLY_SEGMENTS, WRITE_SEGMENTS

TABLE = repository.BUILD / "adapters.txt"
VERSION = "4.2"
# The one of no limits, whose kernel follows what is mapped.
ACCOUNTED = "dma"
AMOUNTS = client_life_tests.Amounts(disconnects=200, removals=3)
# Of the connection; that of the connection manager is the core's.
QUEUE = re.compile(r"\bcqe (\d+) .*\[rpcrdma\]")
HEADS = ("device", "keys of a READ", "of a WRITE", "of a READDIR", "client's completions", "server's send requests", "receives",
         "reads at once")


@dataclass(frozen=True)
class Made:
    """What a mount made of a device, as a row of the table."""

    device: str
    values: tuple[str, ...]


def run() -> int:
    """Every device that plays an adapter, or the one that DEVICE names; the table, and the last line."""
    names = [name for name, device in devices.ALL.items() if device.plays]
    wanted = os.environ.get("DEVICE")
    if wanted:
        names = [name for name in names if name == wanted]
        if not names:
            raise progress.Failure(f"DEVICE={wanted} plays no adapter", f"use one of: {', '.join(devices.ALL)}")
    made: list[Made] = []
    results = Results()
    plans = [Plan(name, VERSION, OURS, OURS, _tests(name, made), protocol=settings.protocol()) for name in names]
    pairs = min(len(plans), mounts.room())
    workers = [Worker(replace(mounts.client_debugged(), name=f"adapters-{number}"), plans[number::pairs]) for number in range(pairs)]
    mounts.run_workers(results, mounts.chosen(workers))
    made.sort(key=lambda each: names.index(each.device))
    TABLE.parent.mkdir(exist_ok=True)
    text = table.text([HEADS, *((each.device, *each.values) for each in made)])
    TABLE.write_text(text)
    progress.line(text.rstrip())
    progress.line(f"the table is in {TABLE}")
    return results.finish()


def _tests(name: str, made: list[Made]) -> list[Test]:
    tests = [mount_tests.SMALL, Test("what it makes of the limits", functools.partial(_look, name, made),
                                    (mount_tests.MOVED, mount_tests.DEBUGGED)),
             Test("files of all sizes", _all_sizes, (mount_tests.MOVED,)), mount_tests.DIRECTORY,
             *client_life_tests.lives(AMOUNTS), *([adapter_tests.ON_DEVICE] if name == ACCOUNTED else []), adapter_tests.MAPPED]
    if name != adapter_tests.INVALIDATES_NOTHING:
        return tests
    return [replace(test, provokes=(*test.provokes, adapter_tests.UNFENCED)) for test in tests]


def _look(name: str, made: list[Made], cell: Cell) -> None:
    """Count the keys of 1 MiB and of a directory, and read the sizes of the queues."""
    cell.load_modules()
    cell.server("rpcdebug -m rpc -s svcsock")
    with progress.undoing(lambda: cell.server("rpcdebug -m rpc -c svcsock")), payload_tests.largest_payloads(cell), \
            pull_tests.offering(cell):
        with cell.mounted(prepare=f"truncate -s {MIB} in && mkdir d && cd d && touch $(seq 1000)"):
            # The directory may cost the connection, and the queues with it.
            shown = cell.client("rdma resource show cq")
            numbers = (WRITE_SEGMENTS, READ_SEGMENTS, REPLY_SEGMENTS)
            before = [cell.counter(number) for number in numbers]
            copy = "dd bs=1M count=1 status=none"
            cell.client(f"{copy} if=/mnt/t/in of=/dev/null iflag=direct && {copy} if=/dev/zero of=/mnt/t/out oflag=direct && "
                        "ls /mnt/t/d > /dev/null", LONG_SECONDS)
            keys = [cell.counter(number) - then for number, then in zip(numbers, before)]
            queues = QUEUE.findall(shown)
            accepted = adapter_tests.ACCEPTED.findall(cell.server("dmesg"))
    if not accepted:
        raise progress.Failure("the server did not tell of the connection")
    if not queues:
        raise progress.Failure(f"the client's queues are not shown: {shown}")
    made.append(Made(name, (*map(str, keys), "/".join(queues), *accepted[-1])))


def _all_sizes(cell: Cell) -> None:
    """Files of all sizes, through the page cache and past it, on page boundaries and off them, in the largest pieces."""
    cell.load_modules()
    with payload_tests.largest_payloads(cell), cell.mounted():
        for directory, mode in (("cached", ""), ("direct", "--direct"), ("odd", "--direct --odd")):
            cell.written(directory, EDGES, mode)
