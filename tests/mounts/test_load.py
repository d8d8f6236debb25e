"""The test of many connections at once: each gets its share, none stalls, and no message meets a queue without Receive."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager

import progress
from guests.cell import LONG_SECONDS, Cell

VERSION = "3"
CONNECTIONS, THREADS, USUAL_THREADS = 64, 8, 4
SECONDS = 300
# The fairest and the least lucky connection.
MOST_UNFAIR = 2
# Of the guests' own time no single operation may take more; under emulation a round takes seconds with all of them at work.
STALL_SECONDS = 60
FILE_MEGABYTES = 4
SIZES = "4k/40:64k/30:256k/20:1m/10"
FIRST_ADDRESS = 101
NUMBERS = range(FIRST_ADDRESS, FIRST_ADDRESS + CONNECTIONS)
EACH = f"for n in {' '.join(map(str, NUMBERS))}; do {{}} || exit 1; done"
JOB = "[{0}]\\ndirectory=/mnt/load/{0}\\n"
GLOBAL = (f"[global]\\nrw=randrw\\nbssplit={SIZES}\\nsize={FILE_MEGABYTES}m\\ndirect=1\\nioengine=psync\\nthread=1\\n"
          f"time_based=1\\nruntime={SECONDS}\\nnrfiles=1\\n")
MOUNT = (f"mkdir -p /mnt/load/$n && mount -t nfs -o vers={VERSION},proto=rdma,port=20049,nolock,mountproto=tcp "
         "192.0.2.$n:/export/load/$n /mnt/load/$n")
# siw has no such counters, nor such errors: there the sender waits.
RNR = "cd /sys/class/infiniband/*/ports/1/hw_counters && cat rcvd_rnr_err retry_rnr_exceeded_err"


def test_fair(cell: Cell) -> None:
    """One mount, and so one connection, to each of many addresses of the server; reads and writes of mixed sizes. 4 KiB
    to 1 MiB for five minutes: no connection gets twice as much as another."""
    cell.load_modules()
    with _addresses(cell), _mounts(cell):
        connected = cell.server("rdma resource show qp").count("type RC")
        if connected != CONNECTIONS:
            raise progress.Failure(f"the server has {connected} connections, not {CONNECTIONS}")
        before = _not_ready(cell)
        cell.client(f"{{ printf '{GLOBAL}'; {EACH.format(f'''printf '{JOB.format('%s')}' $n $n''')}; }} > /tmp/load.fio")
        began, had = time.monotonic(), cell.guests.clock.now()
        found = cell.client("fio --output-format=json --output=/tmp/load.json /tmp/load.fio > /tmp/load.out 2>&1 && "
                            "cat /tmp/load.json", SECONDS + LONG_SECONDS)
        # fio goes by the guest's real time.
        slower = (time.monotonic() - began) / max(1.0, cell.guests.clock.now() - had)
        _judge(json.loads(found[found.index("{"):]), STALL_SECONDS * slower)
        if _not_ready(cell) != before:
            raise progress.Failure("a message met a queue without Receive")


def _judge(report: dict, most_seconds: float) -> None:
    """Fail unless every connection got its share, without error, and no operation took longer."""
    jobs = [(job["jobname"], sum(job[way]["io_bytes"] for way in ("read", "write")),
             max(job[way]["clat_ns"]["max"] for way in ("read", "write")) / 1e9, job["error"]) for job in report["jobs"]]
    wrong = [name for name, _, _, error in jobs if error]
    if wrong or len(jobs) != CONNECTIONS:
        raise progress.Failure(f"{len(jobs)} jobs, of which with errors: {' '.join(wrong) or 'none'}")
    amounts = [amount for _, amount, _, _ in jobs]
    slowest = max(seconds for _, _, seconds, _ in jobs)
    progress.line(f"  {CONNECTIONS} connections, {sum(amounts) >> 20} MiB in {SECONDS} s; each {min(amounts) >> 10} to "
             f"{max(amounts) >> 10} KiB; the slowest operation took {slowest:.1f} s")
    if min(amounts) == 0 or max(amounts) > MOST_UNFAIR * min(amounts):
        raise progress.Failure("one connection got more than twice as much as another")
    if slowest > most_seconds:
        raise progress.Failure(f"an operation took {slowest:.0f} s")


def _not_ready(cell: Cell) -> list[str]:
    """What the devices count of messages that met no Receive."""
    return cell.client(RNR).split() + cell.server(RNR).split()


@contextmanager
def _addresses(cell: Cell) -> Iterator[None]:
    """More addresses of the server, and as many threads as the test wants, for the length of a block."""
    # A client has one connection to each address.
    with progress.undoing(lambda: cell.server(EACH.format("ip addr del 192.0.2.$n/24 dev eth0 || true") +
                                         f"; rm -r /export/load; rpc.nfsd {USUAL_THREADS}")):
        cell.server(EACH.format("ip addr add 192.0.2.$n/24 dev eth0 && mkdir -p -m 777 /export/load/$n") +
                    f" && rpc.nfsd {THREADS}")
        yield


@contextmanager
def _mounts(cell: Cell) -> Iterator[None]:
    """A mount of each for the length of a block."""
    with progress.undoing(lambda: cell.client("umount -a -t nfs", LONG_SECONDS)):
        cell.client(EACH.format(MOUNT), LONG_SECONDS)
        yield
