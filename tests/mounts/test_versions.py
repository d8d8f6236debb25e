"""Which version of RPC-over-RDMA two ends come to speak."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import itertools
import progress
from guests.cell import FEW_SIZES, LONG_SECONDS, PORT, Cell
from guests.machine import CLIENT, SERVER, Machine
from guests.pair import OURS
from judges import referee
from pathlib import Path

VERSIONS = (1, 2)
# What the referee writes of a message: one of version 2 has a name.
MESSAGE = re.compile(r"(?:client|server): (?:RDMA2_(?P<name>\w+)|version 1), ")
REFUSED = ["CONNPROP_FINAL", "ERROR"]
# A mount, a file, and an end make more than these.
LEAST_MESSAGES = 20
# Processes side by side, and the octets that each writes and reads.
WRAPPING = "20 60000"
# A count that has wrapped, and some messages more.
LEAST_WRAPPED = (1 << 32) + 20
# The trace events of version 2, with what they say at each end. A mount has always something better to send than a GRANT.
EVENTS = {"properties": ["recv="], "continued": ["messages="], "fragment": ["remaining="]}
GRANTS = {"grant": ["sent", "received"]}
# What both ends say of their connections.
LIST = "/sys/kernel/debug/rpcrdma/connections"
# The end of a transport comes after umount has returned.
NOT_LISTED = f"for try in $(seq 250); do grep -q . {LIST} || exit 0; sleep 0.2; done; cat {LIST} >&2; exit 1"
# A ring of their own.
TRACE = "/sys/kernel/tracing/instances/version"


def test_versions_agreed_on(cell: Cell) -> None:
    """Whatever each end may speak, they come to the highest version that both do. No message is of another, but the
    first of a client that may speak version 2, and the error that refuses it. The in-tree module speaks version 1. Each
    end lists the connection with the reason."""
    server_may, client_may = (VERSIONS if whose == OURS else VERSIONS[:1] for whose in (cell.server_module, cell.client_module))
    with progress.undoing(lambda: cell.guests.speak(cell.protocol, cell.protocol)):
        for server, client in itertools.product(server_may, client_may):
            cell.guests.speak(server, client)
            with cell.captured() as path, cell.mounted():
                cell.written("version", FEW_SIZES)
                _must_say(cell, server, client)
            _must_speak(path, server, client)
            for machine in _ours(cell):
                machine.must(NOT_LISTED)


def test_counts_wrap(cell: Cell) -> None:
    """The counts of messages wrap, at both ends, on a connection that goes on."""
    with cell.captured() as path, cell.mounted():
        cell.client(f"/lab/files.py workers /mnt/t/workers {WRAPPING}", LONG_SECONDS)
        cell.written("on", FEW_SIZES)
    text = referee.text_of(path, cell.guests.counted_before)
    for end in ("client", "server"):
        count = len(re.findall(f"^{end}: RDMA2_", text, re.MULTILINE))
        if cell.guests.counted_before + count < LEAST_WRAPPED:
            raise progress.Failure(f"the counts have not wrapped: the {end} has sent only {count} messages in {path}")


@contextmanager
def traced(cell: Cell) -> Iterator[None]:
    """Fail unless the trace events of version 2 fire at both ends in a block, that of the version with a reason."""
    with fired(cell.guests.server, "svcrdma", EVENTS), \
            fired(cell.guests.client, "xprtrdma", EVENTS | {"version": ["version=2: agreed"]}):
        yield


@contextmanager
def fired(machine: Machine, end: str, events: Mapping[str, list[str]]) -> Iterator[None]:
    """Fail unless these events of an end fire in a block, and say all that they are to say."""
    with progress.undoing(lambda: machine.must(f"rmdir {TRACE}")):
        # A test that hung may have left it.
        machine.must(f"rmdir {TRACE} 2> /dev/null; mkdir {TRACE} && cd {TRACE}/events/rpcrdma && "
                     f"for event in {' '.join(events)}; do echo 1 > {end}_$event/enable || exit 1; done")
        yield
        text = machine.must(f"cat {TRACE}/trace")
    absent = [f"{name} ({says})" for name, all_said in events.items() for says in all_said
              if not re.search(f": {end}_{name}: .*{re.escape(says)}", text)]
    if absent:
        raise progress.Failure(f"events of {end} that did not fire: {', '.join(absent)}")


def _ours(cell: Cell) -> list[Machine]:
    """The machines with our module."""
    guests = cell.guests
    modules = (guests.server, cell.server_module), (guests.client, cell.client_module)
    return [machine for machine, module in modules if module == OURS]


def _must_say(cell: Cell, server: int, client: int) -> None:
    """Our ends list the connection, with the reason for its version, which each knows as far as it can."""
    lines = {SERVER.name: f"server of {CLIENT.address4}:[0-9]+: ", CLIENT.name: f"client of {SERVER.address4}:{PORT}: "}
    if server == client == 2:
        why = dict.fromkeys(lines, "version 2, agreed")
    else:
        alone = "version 1, no other is allowed"
        why = {SERVER.name: "version 1, the client's" if server == 2 else alone,
               CLIENT.name: "version 1, refused" if client == 2 else alone}
    for machine in _ours(cell):
        line = lines[machine.role.name] + why[machine.role.name]
        machine.must(f"grep -qxE \"{line}\" {LIST} || {{ cat {LIST} >&2; exit 1; }}")


def _must_speak(path: Path, server: int, client: int) -> None:
    messages = [found["name"] or "" for line in referee.text_of(path).splitlines() if (found := MESSAGE.match(line))]
    if len(messages) < LEAST_MESSAGES:
        raise progress.Failure(f"only {len(messages)} messages in {path}")
    agreed_on = min(server, client)
    of_2 = [name for name in messages if name]
    wanted = messages if agreed_on == 2 else REFUSED if client == 2 else []
    progress.line(f"  server {server}, client {client}: {len(of_2)} of {len(messages)} messages of version 2")
    if of_2 != wanted or of_2 and of_2[0] != REFUSED[0]:
        raise progress.Failure(f"where the server may speak {server} and the client {client}, {len(of_2)} of {len(messages)} messages "
                               f"are of version 2, in {path}")
