"""Tests of what users of NFS over RDMA have reported of this transport or of others, and what passes here."""

import progress
from guests.cell import LONG_SECONDS, Cell, Test
from tests.mount import LOST, NOT_RESPONDING

# So many Calls from one broken connection to the next, so many of these, and for how long, at least.
INTERVAL, LEAST_BROKEN, SECONDS, LEAST_TIMES = 10, 200, 30, 250


def done_once(cell: Cell) -> None:
    """What may be done once is done once, though connections break all the time and Calls are sent again: the server knows
    them."""
    cell.load_modules()
    with cell.mounted():
        before = cell.connects()
        cell.client("mkdir /mnt/t/once")
        with cell.broken(cell.debugged[0], INTERVAL):
            times = int(cell.client(f"/lab/once.py /mnt/t/once {SECONDS} {LEAST_TIMES}", LONG_SECONDS))
        broken = cell.connects() - before
        progress.line(f"  {times} times, with {broken} broken connections")
        if broken < LEAST_BROKEN:
            raise progress.Failure(f"only {broken} connections were broken")


ONCE = Test("done once over broken connections", done_once, (LOST, NOT_RESPONDING))
