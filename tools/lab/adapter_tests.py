"""Tests of adapters that are not like most, and of one that the core treats as such."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import payload_tests
import say
from cell import FEW_SIZES, LONG_SECONDS, Cell, Test
from messages import Expected
from payload_tests import INVALIDATED, LARGE, MIB, REGION_PAGES

# The devices of rxe that are made from then on have no memory-management extensions.
PLAIN = "/sys/module/rdma_rxe/parameters/plain"
REFUSED = "cannot register memory by work request"
FORCED = "ib_core.force_mr=1"
# READs and WRITEs at once, each of so many regions that there are not enough for all of them.
AT_ONCE, FEWEST_PAGES = 8, 17
SHORT = "/sys/kernel/tracing/events/rpcrdma/svcrdma_dma_map_rw_err/enable"


def without_extensions(cell: Cell) -> None:
    """An adapter that cannot register memory by work request will do for a server, which then leaves the client's keys
    alone. For a client it will not do, and the client says so."""
    cell.load_modules()
    with _plain(cell, cell.server), cell.mounted():
        before = cell.counter(INVALIDATED)
        cell.written("out", f"{FEW_SIZES} {LARGE}", "--direct")
        if cell.counter(INVALIDATED) == before:
            raise say.Failure("the server has invalidated keys of the client's")
        if cell.connects() != 1:
            raise say.Failure(f"{cell.connects()} connections were made")
    with _plain(cell, cell.client):
        cell.client(f"mkdir -p /mnt && ! {cell.mount_command(option='proto=rdma,retry=0')}", LONG_SECONDS)
        cell.client(f"dmesg | grep -q '{REFUSED}'")


@contextmanager
def _plain(cell: Cell, run: Callable[[str], str]) -> Iterator[None]:
    """A device without the extensions at one end, for the length of a block."""
    def make(value: int) -> None:
        cell.guests.unload()
        run(f"echo {value} > {PLAIN}")
        cell.guests.doubt()
        cell.load_modules()

    with say.undoing(lambda: make(0)):
        make(1)
        yield


def forced(cell: Cell) -> None:
    """The server's core registers memory for all RDMA: the largest payloads, on page boundaries and off them, and more
    of them at once than there are regions for."""
    cell.load_modules()
    cell.server(f"grep -q {FORCED} /proc/cmdline")
    with payload_tests.largest_payloads(cell):
        with cell.mounted():
            cell.written("out", f"{FEW_SIZES} {LARGE}", "--direct")
            cell.written("odd", f"{MIB} {2 * MIB + 1}", "--direct --odd")
            if cell.connects() != 1:
                raise say.Failure(f"{cell.connects()} connections were made")
        with cell.tunable(REGION_PAGES, FEWEST_PAGES), cell.mounted():
            cell.server(f"echo 1 > {SHORT}")
            each = f"/lab/files.py make /mnt/t/$n {2 * MIB} --direct then check /mnt/t/$n --direct || touch /tmp/failed"
            cell.client(f"rm -f /tmp/failed; for n in $(seq {AT_ONCE}); do ({each}) & done; wait; ! test -e /tmp/failed",
                        LONG_SECONDS)
            short = int(cell.server(f"echo 0 > {SHORT}; grep -c svcrdma_dma_map_rw_err /sys/kernel/tracing/trace; true"))
            if cell.connects() != 1:
                raise say.Failure(f"{cell.connects()} connections were made")
            if not short:
                raise say.Failure("there were regions enough for all")


ANEW = Expected(100, re.compile(r"(infiniband )?rxe0: .*|rdma_rxe: .*|RPC: (Unr|R)egistered rdma .*|NFSD: (Using .* tracking"
                                r".*|.*no clients to reclaim.*|starting .* grace period.*)"),
                "modules and devices go and come anew, and nfsd with them")
CANNOT = Expected(10, re.compile(rf"rpcrdma: the device that leads to \S+ {REFUSED}"), "a client's device cannot do it")
TESTS = [Test("an adapter without extensions", without_extensions, (ANEW, CANNOT))]
FORCING = [Test("the core registers memory for all RDMA", forced, (ANEW, payload_tests.MOVED))]
