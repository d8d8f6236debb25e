"""The RDMA objects of a client with a mount at rest: as many after much came to pass as before."""

import re
import time
from dataclasses import dataclass

import progress
from guests.cell import CONNECTS, LONG_SECONDS, TRANSPORTS, Cell

# Each connection has so many of these, whatever it was used for.
KINDS = ("pd", "cq", "qp", "cm_id")
REGIONS = "mr"
SHOWN = re.compile(rf"\b({'|'.join((*KINDS, REGIONS))}) (\d+)")
# Of one RPC, at most: what a connection makes for each slot, if it must (Documentation/design.rst, Memory regions).
MOST_REGIONS = {"rxe": 6, "siw": 8}
SLOTS = "/proc/sys/sunrpc/rdma_slot_table_entries"
# What an object that is on its way out may take.
SETTLE_SECONDS = 30
# Calls without chunks, each on the next connection, until all are up, and so many were made since the mount. The queue
# pairs of a kernel have a module's name in brackets.
REACH = ("touch /mnt/t/reached && for try in $(seq 300); do chmod 600 /mnt/t/reached && chmod 644 /mnt/t/reached || exit 1; "
         f"made=$({TRANSPORTS} | awk '{{{{n += ${CONNECTS + 1}}}}} END {{{{print n}}}}'); rdma resource show qp > /tmp/reached; "
         "test $made -ge {1} -a $(grep -c 'type RC' /tmp/reached) = {0} -a "
         "$(grep -c 'type RC.* state RTS.*comm \\[' /tmp/reached) = {0} && exit 0; sleep 0.2; done; "
         "echo \"{0} connections wanted, $made made\" >&2; cat /tmp/reached >&2; exit 1")


@dataclass(frozen=True)
class Objects:
    """How many there are."""

    counts: dict[str, int]

    @property
    def of_connections(self) -> dict[str, int]:
        return {kind: self.counts[kind] for kind in KINDS}

    @property
    def regions(self) -> int:
        return self.counts[REGIONS]

    def __str__(self) -> str:
        return ", ".join(f"{count} {kind}" for kind, count in self.counts.items())


def parse(said: str) -> Objects:
    """What `rdma resource show` says of the only device there is."""
    counts = {kind: int(count) for kind, count in SHOWN.findall(said)}
    if counts.keys() != {*KINDS, REGIONS}:
        raise progress.Failure(f"rdma does not count all RDMA objects: {said.strip()}")
    return Objects(counts)


def at_rest(cell: Cell, connections: int, made: int = 0) -> Objects:
    """Those of now, with all connections of the mount up, which has made so many at least."""
    cell.client(REACH.format(connections, made), LONG_SECONDS)
    return _look(cell)


def judge(cell: Cell, connections: int, before: Objects) -> None:
    """Fail if there are more or less than before, but for regions that the same connections may have made since."""
    at_rest(cell, connections)
    room = connections * int(cell.client(f"cat {SLOTS}")) * MOST_REGIONS[cell.device]
    _must_be(cell, before, before.regions + room)


def judge_anew(cell: Cell, connections: int, before: Objects) -> None:
    """The same when nfsd has ended all connections: new ones have no more regions than those of before had."""
    made = sum(int(line.split()[CONNECTS]) for line in cell.client(TRANSPORTS).splitlines())
    cell.server("rpc.nfsd 0 && /lab/nfs-server", LONG_SECONDS)
    at_rest(cell, connections, made + connections)
    _must_be(cell, before, before.regions)


def _must_be(cell: Cell, before: Objects, most_regions: int) -> None:
    deadline = cell.guests.clock.now() + SETTLE_SECONDS
    while not alike(now := _look(cell), before, most_regions):
        if cell.guests.clock.now() > deadline:
            raise progress.Failure(f"RDMA objects were {before}, and now are {now}; of {REGIONS} {most_regions} may be")
        time.sleep(1)


def alike(now: Objects, before: Objects, most_regions: int) -> bool:
    """Whether there is nothing that should not be."""
    return now.of_connections == before.of_connections and now.regions <= most_regions


def _look(cell: Cell) -> Objects:
    return parse(cell.client("rdma resource show"))
