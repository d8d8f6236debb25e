"""Tests of adapters that are not like most, and of one that the core treats as such."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import progress
import rpcrdma_on_device
import test_pull as pull_tests
from guests.cell import FEW_SIZES, LONG_SECONDS, MANY, Cell
from judges.messages import Expected
from plan import provokes
from test_payload import INVALIDATED, LARGE

# The devices of rxe that are made from then on have no memory-management extensions.
PLAIN = "/sys/module/rdma_rxe/parameters/plain"
REFUSED = "cannot register memory by work request"
FORCED = "ib_core.force_mr=1"
# An adapter that is played says what is written there.
PARAMETER = "/sys/module/{}/parameters/{}"
GOOD = ("established", "last_receive", "gid_change", "port_active", "device_fatal")
FATAL = ("qp_fatal", "qp_request", "qp_access")
# What fails, where it is ever asked for, and every how many times. A check has the first three; the others take long.
FAULTS = (("post_send", "client", 97), ("post_send", "server", 97), ("map_mr_sg", "client", 7), ("alloc_mr", "client", 3),
          ("create_qp", "client", 2), ("create_qp", "server", 2))
FAULTS_OF_A_CHECK = FAULTS[:3]
# That is asked for when a connection is made, so that some are broken.
WHEN_CONNECTING, BREAKS = ("alloc_mr", "create_qp"), 4
# The delay before a connection grows with each that fails.
FAULTY_SECONDS = 120
# A server closes a connection at once, and the client has another one as soon as it is told.
CLOSED_SECONDS = 30
# It takes two or three connections.
LISTED_SECONDS = 120
# What the client has still to say goes by a new connection, for which it waits the longer the sooner the one before ended.
GONE = ("for try in $(seq 300); do ls -d /sys/kernel/sunrpc/xprt-switches/*/xprt-*-rdma > /dev/null 2>&1 || exit 0; sleep 0.2; "
        "done; ls -d /sys/kernel/sunrpc/xprt-switches/*/xprt-* >&2; exit 1")
# A mount may try for as long as the client waits for a server that refuses it.
REFUSED_SECONDS = 30
# The numbers of work requests of a connection, as the server tells them when it is asked.
ACCEPTED = re.compile(r"svcrdma: new connection accepted .*?(\d+) send requests, (\d+) receives, (\d+) reads at once")
FORCED_REFUSED = "would register memory for all RDMA .ib_core.force_mr., which is not done"
ANEW = Expected(100, re.compile(r"(infiniband )?(rxe|siw)0: .*|rdma_rxe: .*|RPC: (Unr|R)egistered rdma .*|NFSD: (Using .* "
                                r"tracking.*|.*no clients to reclaim.*|starting .* grace period.*)"),
                "modules and devices go and come anew, and nfsd with them")
CLOSED = Expected(20, re.compile(r"rpcrdma: connection (to|from) \S+ lost: .*"), "the server closes its connections")
CANNOT = Expected(10, re.compile(rf"rpcrdma: the device that leads to \S+ {REFUSED}"), "a client's device cannot do it")
NOT_FORCED = Expected(100, re.compile(rf"rpcrdma: connection from \S+ refused: the device {FORCED_REFUSED}"),
                      "the server refuses each connection")
FAILED = Expected(10_000, re.compile(r"rpcrdma: (connection (to|from) \S+ lost: .*|\d+ callbacks suppressed|connection from "
                                     r"\S+ refused: the device refuses queues of \d+ requests .*)"),
                  "work requests are refused")
# It invalidates no memory itself: a connection goes with each RPC whose keys the server does not all invalidate.
INVALIDATES_NOTHING = "hns"
UNFENCED = Expected(10_000, re.compile(r"rpcrdma: (connection to \S+ lost: local invalidation failed|\d+ callbacks suppressed)"),
                    "regions go with their connection")


@provokes(ANEW, CANNOT)
def test_adapter_without_extensions(cell: Cell) -> None:
    """An adapter that cannot register memory by work request will do for a server, which then leaves the client's keys
    alone. For a client it will not do, and the client says so. The rxe of the tests has a parameter for that."""
    cell.load_modules()
    with _plain(cell, cell.server), cell.mounted():
        before = cell.counter(INVALIDATED)
        cell.written("out", f"{FEW_SIZES} {LARGE}", "--direct")
        if cell.counter(INVALIDATED) == before:
            raise progress.Failure("the server has invalidated keys of the client's")
        if cell.connects() != 1:
            raise progress.Failure(f"{cell.connects()} connections were made")
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

    with progress.undoing(lambda: make(0)):
        make(1)
        yield


@provokes(ANEW, NOT_FORCED)
def test_core_registers_memory_for_all_rdma(cell: Cell) -> None:
    """A server whose core was told to register memory for all RDMA refuses connections, and says why. The kernel is
    told `ib_core.force_mr=1` when it boots."""
    cell.load_modules()
    cell.server(f"grep -q {FORCED} /proc/cmdline")
    cell.client(f"mkdir -p /mnt && ! timeout {REFUSED_SECONDS} {cell.mount_command(option='proto=rdma,retry=0')}", LONG_SECONDS)
    cell.server(f"dmesg | grep -q '{FORCED_REFUSED}'")


@provokes(ANEW)
def test_nothing_stays_mapped(cell: Cell) -> None:
    """By the time that the device goes everything is unmapped; one that plays an adapter says so if not."""
    cell.load_modules()
    with progress.undoing(cell.guests.doubt):
        cell.guests.unload()
        cell.guests.both(f"rdma link delete {cell.device}0")


@provokes(FAILED)
def test_faults_of_the_adapter(cell: Cell, call: str, end: str, every: int) -> None:
    """What an adapter fails at costs a connection at most: all that was written is there, and all that is read is right."""
    cell.load_modules()
    fault, run = PARAMETER.format(cell.driver, "adapter_fault"), {"client": cell.client, "server": cell.server}[end]
    with cell.mounted(), progress.undoing(lambda: run(f"echo {call} 0 > {fault}")):
        before = cell.connects()
        run(f"echo {call} {every} > {fault}")
        for made in range(BREAKS if call in WHEN_CONNECTING else 0):
            cell.server(f"echo qp_fatal > {PARAMETER.format(cell.driver, 'adapter_event')}")
            cell.await_connects(before + made + 1, FAULTY_SECONDS)
        cell.written("direct", f"{FEW_SIZES} {LARGE}", "--direct")
        cell.written("cached", f"{FEW_SIZES} {LARGE}")
        failed = int(run(f"cat {fault}"))
        run(f"echo {call} 0 > {fault}")
        cell.still_works()
        progress.line(f"  {call} has failed {failed} times at the {end}: {cell.connects() - before} more connections")
    if not failed:
        raise progress.Failure(f"{call} has never failed at the {end}")


@provokes(UNFENCED)
def test_keys_that_nobody_invalidates(cell: Cell) -> None:
    """The client's device invalidates nothing itself: an RPC with keys that the server leaves alone costs a connection, but
    has the Reply that came on it."""
    cell.load_modules()
    # A Reply that is pulled needs no key of the client.
    with pull_tests.offering(cell), cell.mounted(prepare=MANY.format(1000)):
        before = cell.connects()
        cell.lists_the_same(LISTED_SECONDS)
        calls, sent = cell.client("sed -n 's/^[[:space:]]*READDIR: //p' /proc/self/mountstats").split()[:2]
        if cell.connects() == before:
            raise progress.Failure("no connection was lost")
        if calls != sent:
            raise progress.Failure(f"{calls} RPCs were sent {sent} times")
    cell.client(GONE)


def test_tests_for_real_machines(cell: Cell) -> None:
    """What is for real machines works on a mount between guests, and says so in its report."""
    cell.load_modules()
    path = cell.guests.run / "on-device.txt"
    with cell.mounted(prepare="chmod 777 /export"):
        found = rpcrdma_on_device.examine(cell.guests.client, cell.guests.server, "/mnt", "/export", "/lab/files.py", path)
    if found.failed or not found.lines:
        raise progress.Failure(f"{found.failed} of its tests have failed", log=path)
    report = path.read_text()
    for word in (f"{cell.device}0: driver", "READ of 1 MiB: ", "ok      one connection", "addr=..."):
        if word not in report:
            raise progress.Failure(f"the report does not say: {word}", log=path)


@provokes(CLOSED)
def test_events_of_the_adapter(cell: Cell) -> None:
    """What an adapter has to say of a queue pair for the worse ends the server's connection, whatever becomes of its work
    requests; all else it says changes nothing at either end."""
    cell.load_modules()
    event = PARAMETER.format(cell.driver, "adapter_event")
    with cell.mounted():
        for name in GOOD:
            cell.guests.both(f"echo {name} > {event}")
            cell.still_works()
            if cell.connects() != 1:
                raise progress.Failure(f"the connection has ended after {name}")
        for made, name in enumerate(FATAL, 2):
            cell.server(f"echo {name} > {event}")
            cell.await_connects(made, CLOSED_SECONDS)
            cell.still_works()
