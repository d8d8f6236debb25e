"""The tests of how a client finds out that its server has died. They judge by the client's own trace of what it heard
and asked when: how long a guest takes for its work is no matter."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import progress
from guests.cell import LONG_SECONDS, Cell
from plan import provokes
from provoked import LOST, MOVED, NOT_RESPONDING

KEEPALIVE, KEEPALIVE_SECONDS = "rdma_keepalive_time", 4
# Of the counters of a mount.
BAD_XIDS = 8
# What the user guide says of a server that dies: beside twice that time, what the adapter needs, or an answer may take.
DEATH_SECONDS = {"rxe": 5, "siw": 60}
# What a busy machine's guests need for anything, of their own time.
SLOW_SECONDS = 15
# By then a question has come: a look comes at least each thirty seconds, whatever else there is.
QUESTION_SECONDS = 120
# For how long there is traffic: a client that asked in spite of it would do so several times.
TRAFFIC_SECONDS = 4 * KEEPALIVE_SECONDS
# With fewer there was none.
LEAST_MESSAGES = 50
# What a clock of jiffies may make of a time.
JIFFIES_SECONDS = 0.1
# Waits for the adapter to give up, or for the module.
LOSES_CONNECTION = ("for try in $(seq 100); do rdma resource show qp | grep -q 'type RC.* state RTS' || exit 0; "
                    "sleep 0.5; done; rdma resource show qp >&2; exit 1")
LOSES_IDLE_CONNECTION = LOSES_CONNECTION.replace("seq 100", "seq 200")
# A ring of its own, for messages that came, what the client sends that is nobody's task, and ends of connections.
TRACE = "/sys/kernel/tracing/instances/keep-alive"
FILTERS = {"wc_receive": "status == 0", "post_send": "task_id == 0 && client_id == 0xffffffff", "disconnect": "0",
           "done": "0", "grant": "sent == 1"}
BEGIN = (f"rmdir {TRACE} 2> /dev/null; mkdir {TRACE} && cd {TRACE}/events/rpcrdma && " +
         " && ".join(f"echo '{text}' > xprtrdma_{name}/filter && echo 1 > xprtrdma_{name}/enable"
                     for name, text in FILTERS.items()))
# Of many messages in a row the last one is enough. What was sent to say that a Reply was pulled is no question, and a GRANT
# is none; the event that tells so follows, and of a GRANT comes before.
TELL = (f"sed -n 's/.* \\([0-9]*\\.[0-9]*\\): xprtrdma_\\([a-z_]*\\): .*/\\1 \\2/p' {TRACE}/trace | "
        "awk '$2 == \"wc_receive\" {heard++; last = $1; next} $2 == \"done\" {held = \"\"; next} "
        "$2 == \"grant\" {granted = 1; next} $2 == \"post_send\" && granted {granted = 0; next} "
        "held {print held; held = \"\"} heard {held = $2 \" \" $1 - last \" \" heard} "
        "END {if (held) print held; print \"end\", 0, heard + 0}'")


@dataclass
class Heard:
    """What a client heard and asked."""

    # How long nothing had been heard when it asked, and when a connection ended.
    asked: list[float] = field(default_factory=list)
    ended: list[float] = field(default_factory=list)
    messages: int = 0

    def add(self, said: str) -> None:
        """Take in what the guest says of its trace."""
        for name, silence, messages in re.findall(r"^(\w+) (\S+) (\d+)$", said, re.MULTILINE):
            self.messages = int(messages)
            if name in ("post_send", "disconnect"):
                (self.asked if name == "post_send" else self.ended).append(float(silence))


@contextmanager
def _listening(cell: Cell) -> Iterator[Heard]:
    """What the client hears and asks in a block is there after it."""
    heard = Heard()
    with progress.undoing(lambda: cell.client(f"rmdir {TRACE}")):
        # A test that hung may have left it.
        cell.client(BEGIN)
        yield heard
        heard.add(cell.client(TELL))


@provokes(LOST, MOVED)
def test_silent_server_noticed(cell: Cell) -> None:
    """A server that has died is noticed though nothing is under way, and asked for a sign of life only in silence. A
    question comes after a silence of `rdma_keepalive_time`, none sooner."""
    with cell.tunable(KEEPALIVE, KEEPALIVE_SECONDS):
        with cell.mounted():
            before = cell.connects()
            with _listening(cell) as heard:
                with cell.load():
                    time.sleep(TRAFFIC_SECONDS)
                _await_question(cell)
            judge(heard)
            _counts_no_question(cell)
            if cell.connects() != before:
                raise progress.Failure("a live server lost its connection")
            # A client of NFS 4 renews its lease, and so notices by itself.
            if cell.version == "3":
                _notices_death(cell)
        # Over siw, the end of the silent connection waits behind what TCP has tried to send: as long again as the silence
        # took, and not much beyond 100 s, when TCP gives up. Then only nfsd ends what the server has of it.
        if cell.device == "siw" and cell.version == "3":
            cell.guests.stop_serving()
            cell.load_modules()


def judge(heard: Heard) -> None:
    """Fail if a client has asked a server that it had just heard, or none that was silent.

    Traffic that stands still, since a machine is busy, is silence, too.
    """
    silences = ", ".join(f"{seconds:.1f} s" for seconds in heard.asked) or "none"
    progress.line(f"  {heard.messages} messages; asked after silences of {silences}")
    if heard.messages < LEAST_MESSAGES or not heard.asked:
        raise progress.Failure(f"{heard.messages} messages, {len(heard.asked)} questions")
    if min(heard.asked) < KEEPALIVE_SECONDS - JIFFIES_SECONDS:
        raise progress.Failure(f"the server was asked though it had been heard {min(heard.asked):.1f} s before")


@provokes(LOST, NOT_RESPONDING)
def test_dead_server_noticed(cell: Cell) -> None:
    """A server that dies without a word while nothing is under way is noticed, and the mount recovers. Within the time
    that the user guide says, with some seconds for a busy machine."""
    cell.load_modules()
    with cell.tunable(KEEPALIVE, KEEPALIVE_SECONDS), cell.mounted():
        cell.still_works()
        before = cell.connects()
        _notices_death(cell)
        if cell.connects() == before:
            raise progress.Failure("the connection outlived the silence")


def _notices_death(cell: Cell) -> None:
    """In the time that the user guide says. A client of NFS 3 has nothing to say in the meantime."""
    most = 2 * KEEPALIVE_SECONDS + DEATH_SECONDS[cell.device]
    with _listening(cell) as heard:
        # So that there is a last message to begin with.
        cell.still_works()
        with cell.silence():
            cell.client(LOSES_IDLE_CONNECTION, LONG_SECONDS)
    if not heard.ended:
        raise progress.Failure("no connection ended")
    progress.line(f"  a dead server was noticed after {heard.ended[0]:.1f} s, where {most} are documented")
    if heard.ended[0] > most + SLOW_SECONDS:
        raise progress.Failure(f"a dead server was noticed only after {heard.ended[0]:.1f} s")
    cell.still_works()


def _counts_no_question(cell: Cell) -> None:
    """The answer to a question is no Reply with an XID that nobody knows. What is late of the load has come before the
    silence in which the server was asked."""
    cell.still_works()
    before = cell.counter(BAD_XIDS)
    _await_question(cell)
    cell.still_works()
    if cell.counter(BAD_XIDS) != before:
        raise progress.Failure(f"{cell.counter(BAD_XIDS) - before} answers are counted as Replies that nobody awaits")


def _await_question(cell: Cell) -> None:
    """Wait until nfsd has executed one NULL Call more."""
    before, deadline = _asked(cell), cell.guests.clock.now() + QUESTION_SECONDS
    while _asked(cell) == before:
        if cell.guests.clock.now() > deadline:
            raise progress.Failure("the server was not asked in silence")
        time.sleep(1)


def _asked(cell: Cell) -> int:
    """How many NULL Calls nfsd has executed: the first procedure of each version."""
    return sum(map(int, cell.server("sed -n 's/^proc[34] [0-9]* \\([0-9]*\\) .*/\\1/p' /proc/net/rpc/nfsd").split()))
