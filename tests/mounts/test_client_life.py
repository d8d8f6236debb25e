"""The tests of what lives and dies at the client: connections are broken and devices go and come while a mount is used,
and at the end nothing of them is left."""

import re
import time
from dataclasses import dataclass

import objects
import progress
import test_life as life_tests
import test_loading as loading
import test_pull as pull
from guests.cell import LONG_SECONDS, Cell
from guests.monitor import Monitor
from judges import trace_events
from judges.messages import Expected
from plan import Case, Test, provokes
from totals import TOTALS, Kind

# RPCs from one broken connection to the next. One of version 2 begins with three times the credits, and all that was sent is sent
# again; the next comes without delay only where a few have had their answers.
INTERVALS = {1: 30, 2: 100}
# A broken connection is replaced within a second, as a rule.
SECONDS_EACH = 20
# How an RDMA device goes, as the guests' removal has it.
WAYS = ("driver", "adapter", "link")
AWAY_SECONDS = 1
# An NFS 4 client waits three minutes for each answer that does not come: to two good-byes, and to what was under way.
GOODBYE_SECONDS = 1800
# Connecting, and not yet done with that, if the moment is met. The delay between attempts grows to a minute.
AWAIT_ATTEMPT = ("end=$(($(date +%s) + 120)); until rdma resource show qp | grep -q 'type RC'; do "
                 "test $(date +%s) -lt $end || { echo nobody connects >&2; exit 1; }; done")
# Connecting for certain: nobody answers.
UNANSWERED = ("end=$(($(date +%s) + 120)); until rdma resource show qp | grep -q 'type RC.* state INIT'; do "
              "test $(date +%s) -lt $end || { echo nobody connects >&2; rdma resource show qp >&2; exit 1; }; done")
# As much at once as fills the adapter; nothing goes out any more; rxe itself waits for 50 seconds.
WRITERS = ("for n in 1 2 3 4; do { setsid dd if=/dev/zero of=/mnt/t/w$n bs=1M count=50 oflag=direct > /dev/null 2>&1 < /dev/null & }; "
           "done; sleep 2")
SENT = "/sys/class/net/eth0/statistics/tx_packets"
STUCK = (f"for try in $(seq 60); do before=$(cat {SENT}); sleep 1; test $(cat {SENT}) = $before && break; done; "
         f"test $(cat {SENT}) = $before && pgrep -x dd > /dev/null || {{ echo nothing is under way >&2; exit 1; }}")
PROMPTLY = ("read -r began rest < /proc/uptime; {} && read -r ended rest < /proc/uptime && "
            "test $((${{ended%.*}} - ${{began%.*}})) -lt 30")
TOUCH = "{{ setsid touch /mnt/t/{0} > /dev/null 2>&1 < /dev/null & }}"
TOUCHED = f"for try in $(seq {life_tests.BACK_SECONDS}); do test -e /export/t/{{}} && exit 0; sleep 1; done; exit 1"
AWAY = Expected(10_000, re.compile(r"infiniband (rxe|siw)0: .*|rdma_rxe: (un)?loaded|SoftiWARP (at|de)tached|(rxe|siw)0: .*|"
                                   r"virtio_net virtio\d+ .*|"
                                   r"nfs: server \S+ (not responding, (still trying|timed out)|OK)"),
                "the device goes and comes")
BROKEN = Expected(10_000, re.compile(r"rpcrdma: (connection (to|from) \S+ lost: .*|\d+ callbacks suppressed)"),
                  "connections are broken")


@dataclass(frozen=True)
class Amounts:
    """How often."""

    disconnects: int
    removals: int


SOAK = Amounts(disconnects=1000, removals=102)
SOME = Amounts(disconnects=100, removals=18)
CHECK = Amounts(disconnects=3, removals=2)


def lives(amounts: Amounts) -> list[Test]:
    """Those that end connections, `amounts` times."""
    return [Case(test_connections_broken, (amounts.disconnects,)), Case(test_clients_device_removed, (amounts.removals,)),
            test_told_of_a_connection_in_time, pull.test_killed_while_replies_are_pulled]


def cases(amounts: Amounts) -> list[Test]:
    """All of them, and what shows that nothing is left."""
    made = lives(amounts)
    if amounts == CHECK:
        # It takes long.
        made.remove(pull.test_killed_while_replies_are_pulled)
    else:
        # An NFS 4 client says good-bye twice, and waits three minutes for an answer each time.
        made += [test_clients_device_removed_while_connecting, test_umount_without_a_device,
                 test_clients_adapter_removed_with_packets_in_it]
    return [*made, life_tests.test_nothing_left, loading.test_no_leak]


@provokes(BROKEN)
def test_connections_broken(cell: Cell, count: int) -> None:
    """The kernel's fault injection breaks the client's connections under a load that compares what it reads. There are
    as many RDMA objects as before."""
    cell.load_modules()
    with cell.mounted():
        there = objects.at_rest(cell, 1)
        before = cell.connects()
        with pull.loaded(cell), cell.broken(cell.guests.client, INTERVALS[cell.protocol]):
            cell.await_connects(before + count, max(life_tests.BACK_SECONDS, SECONDS_EACH * count))
        cell.still_works()
        objects.judge(cell, 1, there)


@provokes(BROKEN)
def test_told_of_a_connection_in_time(cell: Cell) -> None:
    """Who waits for a connection is told of it before anybody can send there. What waits for a Reply is told what those
    are, and would be sent again. By the order of trace events."""
    cell.load_modules()
    released, woken = "sunrpc/xprt_release_cong", "sunrpc/rpc_task_wakeup"
    with trace_events.recorded(cell.guests.client, f"{released} {woken}") as trace, cell.mounted():
        with cell.broken(cell.guests.client, 1, 1):
            cell.still_works()
    made = [at for at, event in enumerate(trace.events) if event.name == "connect" and event["rc"] == 0]
    if len(made) < 2:
        raise progress.Failure("no connection was broken")
    for at in made:
        first = next(event.name for event in trace.events[at:] if event.name == "xprt_release_cong"
                     or (event.name == "rpc_task_wakeup" and event.values["queue"] == "xprt_pending"))
        if first == "xprt_release_cong":
            raise progress.Failure("the transport is unlocked before those that wait are told")


@provokes(BROKEN, AWAY)
def test_clients_device_removed(cell: Cell, count: int) -> None:
    """The client's device goes at any moment, in each way that it can, and comes back; the mount goes on. By `rdma link
    delete` and then its driver, by taking the network adapter away, and by the first alone; just after the connection is there,
    later, or while it is being made."""
    cell.load_modules()
    with cell.mounted():
        before = cell.connects()
        with pull.loaded(cell):
            for number in range(count):
                way = f"{WAYS[number % len(WAYS)]} {cell.device}"
                if number // len(WAYS) % 2:
                    moment = AWAIT_ATTEMPT
                else:
                    life_tests.await_connection(cell)
                    moment = f"sleep {number % 3}"
                cell.client(f"{moment}; /lab/removal go {way}", LONG_SECONDS)
                time.sleep(AWAY_SECONDS)
                cell.client(f"/lab/removal come {way}")
                TOTALS.add(Kind.REMOVALS, 1)
            life_tests.await_connection(cell)
        cell.still_works()
        progress.line(f"  {cell.connects() - before} new connections after {count} removals")


@provokes(BROKEN, AWAY)
def test_clients_device_removed_while_connecting(cell: Cell) -> None:
    """The client's device goes while a connection is being made, and nobody answers; in each way that it can."""
    cell.load_modules()
    with cell.mounted():
        # While TCP connects, it holds siw's driver.
        for name in WAYS if cell.device == "rxe" else [way for way in WAYS if way != "driver"]:
            with cell.silence(), cell.broken(cell.guests.client, 1, 1):
                cell.client(TOUCH.format(name))
                cell.client(UNANSWERED, LONG_SECONDS)
                cell.client(f"/lab/removal go {name} {cell.device}", LONG_SECONDS)
                cell.client(f"/lab/removal come {name} {cell.device}")
            cell.server(TOUCHED.format(name), 2 * life_tests.BACK_SECONDS)
            life_tests.await_connection(cell)
        cell.still_works()


@provokes(BROKEN, AWAY)
def test_clients_adapter_removed_with_packets_in_it(cell: Cell) -> None:
    """The network adapter goes with packets in it that nobody takes, since the server's machine stands still. Neither the adapter nor
    the connection waits for them."""
    cell.load_modules()
    with cell.mounted():
        cell.client(WRITERS)
        with Monitor(cell.guests.server.directory / "monitor") as monitor, monitor.paused():
            cell.client(STUCK)
            cell.client(PROMPTLY.format(f"/lab/removal go adapter {cell.device}"), LONG_SECONDS)
        cell.client(f"/lab/removal come adapter {cell.device}")
        TOTALS.add(Kind.REMOVALS, 1)
        cell.client("while pgrep -x dd > /dev/null; do sleep 0.5; done", LONG_SECONDS)
        cell.still_works()


@provokes(BROKEN, AWAY)
def test_umount_without_a_device(cell: Cell) -> None:
    """The mount can go while there is no device, and be made again when there is one. `umount -f`; it takes six
    minutes, so no check has it."""
    cell.load_modules()
    way = f"link {cell.device}"
    with (progress.undoing(lambda: cell.client(f"/lab/removal come {way}")),
          cell.mounted(unmount=f"/lab/removal go {way} && umount -f /mnt", seconds=GOODBYE_SECONDS)):
        cell.still_works()
    TOTALS.add(Kind.REMOVALS, 1)
    with cell.mounted():
        cell.still_works()
