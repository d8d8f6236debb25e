"""What connections cost beside their messages: memory at both ends, and what more of them make of an operation."""

from dataclasses import asdict, dataclass

import progress
from bench import guest as bench_guest
from bench.costs import Costs
from bench.guest import BENCH, WORKLOAD, Guest
from bench.plan import CONNECTIONS, KIB, NCONNECT, OPERATIONS, SMALL_LIMIT, Workload

# In the guest's time, which flies. A transport shrinks in the second; after five minutes its connections would end.
SETTLE_SECONDS, IDLE_SECONDS = 5, 60
FIRST_ADDRESS = 101
# Where a command says so that prints something else.
SAID = "/run/free"
# At once, for each connection; of NFS 4.2 so many that the 64 slots of a session do for NCONNECT.
BUSY_DEPTH, SESSION_DEPTH = 16, 4
# How often, at least; and for each that is under way at once.
LEAST_BUSY, BUSY_EACH = 1024, 4


@dataclass(frozen=True)
class Memory:
    """Bytes of one connection with its mount, both ends together."""

    connections: int
    # After the first few messages, right after many at once, and some time later.
    idle: float
    busy: float
    again: float
    # Bytes altogether that were not given back after the last unmount.
    left: int

    def json(self) -> dict:
        return asdict(self)


def prepare(guest: Guest) -> None:
    """The addresses of the server that are mounted from; a client has one connection to each."""
    guest.must(f"{BENCH} addresses {FIRST_ADDRESS} {FIRST_ADDRESS + max(CONNECTIONS) - 1}")


def growth_workload(connections: int) -> Workload:
    """Reads on so many connections, one at a time on each."""
    count = "1 connection" if connections == 1 else f"{connections} connections"
    return Workload(f"read 4 KiB, {count}", f"read {4 * KIB} {connections} {_files(connections)}",
                    max(OPERATIONS[4 * KIB], 25 * connections), limit=SMALL_LIMIT)


def of_mounts(guest: Guest, transport: str, connections: int) -> tuple[Memory, list[Costs]]:
    """NFS 3 mounts, each with a connection of its own, and what an operation costs with so many."""
    numbers = _numbers(connections)
    mounts = f"{BENCH} connect {numbers[0]} {numbers[-1]} {bench_guest.mount_options('3', transport)} /export"
    busy = _busy(BUSY_DEPTH * connections, _files(connections))
    before, = _free(guest, _waits(SETTLE_SECONDS))
    with progress.undoing(lambda: guest.must("umount -a -t nfs", bench_guest.MEASURE_SECONDS)):
        # In one command, as on_mount() has it.
        costs = guest.measure(growth_workload(connections), transport, around=lambda command: (
            f"{{ {mounts} && {_waits(SETTLE_SECONDS)}; }} > {SAID} && {command} && {{ {busy}; }} >> {SAID}"))
        idle, busiest, again = _free(guest, f"cat {SAID}")
    after, = _free(guest, _waits(SETTLE_SECONDS))
    each = [(before - now) / connections for now in (idle, busiest, again)]
    return Memory(connections, each[0], each[1], each[2], before - after), costs


def of_nconnect(guest: Guest, transport: str) -> Memory:
    """Connections alone: of NFS 4.2 with many to a mount, against one."""
    one, many = (_nconnect(guest, transport, count) for count in (1, NCONNECT))
    each = [(after - before) / (NCONNECT - 1) for before, after in zip(one, many)]
    return Memory(NCONNECT, each[0], each[1], each[2], many[3])


def _nconnect(guest: Guest, transport: str, count: int) -> tuple[int, int, int, int]:
    """Bytes of a mount with so many connections: idle, busy, idle again, and what is left of it."""
    where, words = bench_guest.WHERE, bench_guest.mount_words("4.2", transport, f",nconnect={count}")
    before, = _free(guest, _waits(SETTLE_SECONDS))
    # The connections are made when they are used, in turn.
    used = f"{WORKLOAD} 1 0 {4 * NCONNECT} getattr {where}/bench/small > /dev/null"
    # Each connection has as much to do in both mounts.
    busy = _busy(SESSION_DEPTH * count, f"{where}/bench/data")
    with progress.undoing(lambda: guest.must(f"umount {where}")):
        idle, busiest, again = _free(
            guest, f"{BENCH} mount {where} {words} && {used} && {_waits(SETTLE_SECONDS)} && {busy}")
    after, = _free(guest, _waits(SETTLE_SECONDS))
    return before - idle, before - busiest, before - again, before - after


def _busy(depth: int, files: str) -> str:
    """So many at once; how much is free then, and how much later."""
    operations = max(LEAST_BUSY, BUSY_EACH * depth)
    return (f"{WORKLOAD} 1 0 {operations} read {4 * KIB} {depth} {files} > /dev/null && "
            f"{_waits(0)} && {_waits(IDLE_SECONDS)}")


def _waits(seconds: int) -> str:
    """Says how much memory nobody uses, after so long."""
    return f"{BENCH} free {seconds}"


def _free(guest: Guest, command: str) -> list[int]:
    """Bytes, from a command that says how many KiB are free, once or several times."""
    return [KIB * int(line) for line in guest.must(command, bench_guest.MEASURE_SECONDS).split()]


def _files(connections: int) -> str:
    return " ".join(f"/mnt/{number}/bench/data" for number in _numbers(connections))


def _numbers(connections: int) -> range:
    return range(FIRST_ADDRESS, FIRST_ADDRESS + connections)
