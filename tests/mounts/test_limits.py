"""The tests of what a mount makes of the limits of an adapter, and that all is well within them."""

import re
from collections.abc import Callable

import progress
import test_adapter as adapter
import test_payload as payload
import test_pull as pull
from guests.cell import LONG_SECONDS, Cell
from plan import provokes
from provoked import DEBUGGED, MOVED
from test_payload import EDGES, MIB, READ_SEGMENTS, REPLY_SEGMENTS, WRITE_SEGMENTS

# Of the connection; that of the connection manager is the core's.
QUEUE = re.compile(r"\bcqe (\d+) .*\[rpcrdma\]")
HEADS = ("keys of a READ", "of a WRITE", "of a READDIR", "client's completions", "server's send requests", "receives", "reads at once")


@provokes(MOVED, DEBUGGED)
def test_what_it_makes_of_the_limits(cell: Cell, record_property: Callable[[str, object], None]) -> None:
    """Count the keys of 1 MiB and of a directory, and read the sizes of the queues."""
    cell.load_modules()
    cell.server("rpcdebug -m rpc -s svcsock")
    with progress.undoing(lambda: cell.server("rpcdebug -m rpc -c svcsock")), payload.largest_payloads(cell), \
            pull.offering(cell):
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
            accepted = adapter.ACCEPTED.findall(cell.server("dmesg"))
    if not accepted:
        raise progress.Failure("the server did not tell of the connection")
    if not queues:
        raise progress.Failure(f"the client's queues are not shown: {shown}")
    for head, value in zip(HEADS, (*keys, "/".join(queues), *accepted[-1])):
        record_property(head, value)


@provokes(MOVED)
def test_files_of_all_sizes(cell: Cell) -> None:
    """Files of all sizes, through the page cache and past it, on page boundaries and off them, in the largest pieces."""
    cell.load_modules()
    with payload.largest_payloads(cell), cell.mounted():
        for directory, mode in (("cached", ""), ("direct", "--direct"), ("odd", "--direct --odd")):
            cell.written(directory, EDGES, mode)
