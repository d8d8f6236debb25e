"""Our responder on raw verbs as one that does not answer some Calls, ever (tools/responder/drops.py)."""

import re
import time

import progress
from guests.cell import FEW_SIZES, LONG_SECONDS, Cell
from judges.messages import Expected
from plan import long, provokes
from provoked import NOT_RESPONDING
from test_keep_alive import KEEPALIVE, KEEPALIVE_SECONDS
from test_responder import HASTY, LOST, OVERDUE_SECONDS, SMALL, mounting, responding, switch

# For how long a Call is dropped, again and again; and the longest that any other may take.
DROPPING_SECONDS, GAP_SECONDS = 40, 3
# Connections whose first Call has no answer.
FIRST_DROPPED = 2
# As many RPCs wait as the server has granted.
ALL_WAIT = Expected(1000, re.compile(r"nfs: server \S+ (not responding, (still trying|timed out)|OK)|\w+: \d+ callbacks suppressed"),
                    "the server is silent")
# What a busy guest needs for anything.
GUEST_SECONDS = 10


@provokes(LOST, NOT_RESPONDING)
def test_server_drops_a_call_for_ever(cell: Cell) -> None:
    """A Call that a server never answers, on any connection, holds no other up: not on the connection that follows a broken
    one, where it is the first to be sent again, nor on those that it costs each time that it is overdue."""
    cell.load_modules()
    with responding(cell, "drops-fsstats 32"), cell.mounted(mounting(cell, SMALL, f"{HASTY},actimeo=0")):
        cell.client("touch /mnt/t/a; rm -f /tmp/stat.pid; { setsid stat -f /mnt > /tmp/stat 2>&1 < /dev/null & "
                    "echo $! > /tmp/stat.pid; }")
        with progress.undoing(lambda: cell.client("read -r pid < /tmp/stat.pid; kill -9 $pid")):
            longest, when, looks, _ = cell.client(f"/lab/gaps.py {DROPPING_SECONDS} /mnt/t/a", LONG_SECONDS).split()
        count = int(cell.server("grep -c dropped /tmp/responder; true"))
        progress.line(f"  {looks} looks, the longest {longest} s (at {when} s); {count} times the Call was dropped")
        if float(longest) > GAP_SECONDS or count < 3 or cell.connects() > 1 + count:
            raise progress.Failure(f"a look took {longest} s; {count} Calls dropped, {cell.connects()} connections made")


@long
@provokes(LOST, NOT_RESPONDING)
def test_server_drops_the_first_call_of_a_connection(cell: Cell) -> None:
    """A connection whose first Call has no answer is given up, and the next one made; that Call is no RPC's."""
    cell.load_modules()
    with responding(cell, "honest"), cell.mounted(mounting(cell, SMALL)):
        before = cell.connects()
        switch(cell, f"drops-first {FIRST_DROPPED}")
        cell.still_works()
        count = int(cell.server("grep -c dropped /tmp/responder; true"))
        if count != FIRST_DROPPED or cell.connects() != before + 1:
            raise progress.Failure(f"{count} Calls were dropped, {cell.connects() - before} connections made that were of use")


@provokes(LOST, NOT_RESPONDING)
def test_server_keeps_the_only_credit(cell: Cell) -> None:
    """When the process is killed whose Call has the only credit, and the server never answers it, the others get their
    turn on another connection. The connection is lost when that has lasted for `rdma_keepalive_time`."""
    cell.load_modules()
    with cell.tunable(KEEPALIVE, KEEPALIVE_SECONDS):
        with responding(cell, "drops-fsstats 1"), cell.mounted(mounting(cell, SMALL, ",actimeo=0")):
            cell.client("touch /mnt/t/a; rm -f /tmp/stat.pid; { setsid stat -f /mnt > /tmp/stat 2>&1 < /dev/null & "
                        "echo $! > /tmp/stat.pid; }")
            # On the connection that follows the broken one it has the credit.
            cell.server("for try in $(seq 250); do test $(grep -c dropped /tmp/responder) = 2 && exit 0; sleep 0.2; done; "
                        "cat /tmp/responder >&2; exit 1")
            cell.client("{ setsid stat /mnt/t/a > /tmp/looked 2>&1 < /dev/null & echo $! > /tmp/look.pid; }; sleep 1; "
                        "read -r pid < /tmp/stat.pid; kill -9 $pid")
            # Two looks at the connection, and what a guest needs.
            cell.client(f"read -r pid < /tmp/look.pid; for try in $(seq {5 * (2 * KEEPALIVE_SECONDS + GUEST_SECONDS)}); do "
                        "test -e /proc/$pid || exit 0; sleep 0.2; done; cat /tmp/looked >&2; echo it waits still >&2; exit 1")
            cell.still_works()


@long
@provokes(LOST, ALL_WAIT)
def test_server_is_deaf(cell: Cell) -> None:
    """A connection whose first Call has no answer is given up; the mount recovers."""
    _silent(cell, "deaf")


@long
@provokes(LOST, ALL_WAIT)
def test_server_goes_mute(cell: Cell) -> None:
    """With a session the client asks none of its own accord: when a Reply of NFS 4 is overdue it asks, and gives the
    connection up without an answer."""
    _silent(cell, "mute")


def _silent(cell: Cell, behaviour: str) -> None:
    """A server that answers nothing, or nothing but the first Call of a connection, loses it, though the client asks none of
    its own accord; the mount recovers."""
    cell.load_modules()
    with cell.tunable(KEEPALIVE, 0), responding(cell, "honest"), cell.mounted(mounting(cell, SMALL, HASTY)):
        cell.written("before", FEW_SIZES)
        with cell.load():
            switch(cell, behaviour)
            _await_accepted(cell, 2)
            switch(cell, "honest")
            cell.still_works()


def _await_accepted(cell: Cell, times: int) -> None:
    """Wait until the responder has accepted so many connections."""
    deadline = cell.guests.clock.now() + OVERDUE_SECONDS
    while int(cell.server("grep -c accepted /tmp/responder; true")) < times:
        if cell.guests.clock.now() > deadline:
            raise progress.Failure(f"the client keeps a connection without answer for {OVERDUE_SECONDS} s")
        time.sleep(2)
