"""Our responder on raw verbs (tools/responder), a server that does what none should, against a client."""

import functools
import re
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import progress
from guests.cell import FEW_SIZES, GONE, LONG_SECONDS, OTHER_PORT, Cell, Test, checksum
from guests.machine import SERVER
from judges.messages import Expected
from tests import acl as acl_tests
from tests.keep_alive import KEEPALIVE, KEEPALIVE_SECONDS, LOSES_IDLE_CONNECTION
from tests.mount import NOT_RESPONDING

# Of the behaviours that know what NFS 3 looks like, and of those that call a client with a session.
VERSION, SESSION_VERSION = "3", "4.1"
# Nothing larger than what goes inline, where data need no chunk.
SMALL, LARGE = 4096, 65536
# Of a file that fits inline, and of no memory page.
SHORT = 5001
# Odd, so that XDR padding is missing.
ODD = "65533 200001"
# Several READs at once.
MANY_READS = "200001 300000 400000"
# The lengths of verifiers.
VERIFIERS = 5
# 1024 entries of 8 bytes each, and the version in front of them.
LONGEST_ACL = 4 + 1024 * 8
# How long a client waits at least that has had no use of a connection, and of the next: 5 and 10 seconds, of which the
# responder may see a part less when it is late itself.
DELAYS = (4, 8)
OVERDUE_SECONDS = 200
# Five seconds for a Reply in the place of a minute.
HASTY = ",timeo=50"
# Of which the responder may see a part less.
HASTY_SECONDS = 3
# Connections on which a server says nothing before it is well again. The delay would grow with each.
SILENCES = 3
# More Calls of the server than the client keeps.
FLOOD = 40
# Calls of the server that are cut off.
CUT_CALLS = 2
# How often a server that withholds Replies does so, at least.
WITHHELD = 2
# After the one Call that the server has ignored it has its time, which is a minute.
DROPPED_SECONDS = 75
# The kinds of Calls that are refused, and the error if it is not ERR_CHUNK; and of garbled Replies: all but the last are
# bad messages of this transport.
KINDS, OTHER_ERRORS, GARBLED = 13, {"another version": 1}, 7
ANSWERED_SECONDS = 90
# Lengths of each kind modulo 4, all inline.
CUT_SIZES = "1 2 3 4 9 301 302 303 304"
# Calls of a server that makes so many at a time, and waits for the answers, and how many are answered at least.
IN_TURN, LEAST_ANSWERED = 4, 12
READERS, READS_OF_EACH = 16, 40
FAILS_TO_LIST = "! ls /mnt/t/many > /tmp/ls 2>&1; grep -q 'Input/output error' /tmp/ls || { cat /tmp/ls >&2; exit 1; }"
RUN = ("{{ PYTHONPYCACHEPREFIX=/tmp/pycache PYTHONPATH=/lab/raw:/lab/referee setsid python3 /lab/responder {0} {1} {2} "
       "> /tmp/responder 2>&1 < /dev/null & echo $! > /tmp/responder.pid; }}; for try in $(seq 250); do grep -q listening /tmp/responder && exit 0; "
       "sleep 0.2; done; cat /tmp/responder >&2; exit 1")
END = f"read -r group < /tmp/responder.pid; kill -9 -$group; {GONE.format('$group')}"
# The mount's counters, as the user guide numbers them.
WRITTEN_BYTES, BAD_MESSAGES = 15, 20
BAD = Expected(10_000, re.compile(r"rpcrdma: (bad message from .*|\d+ callbacks suppressed)"), "the server babbles")
LOST = Expected(100, re.compile(r"rpcrdma: (connection (to|from) \S+ lost: .*|\d+ callbacks suppressed)|"
                                r"rxe0: qp#\d+ (make_send_cqe|do_complete): non-flush error status = \d+"),
                "the server breaks connections")
# The RPC layer of the client says so.
UNSENT = Expected(10, re.compile(r"RPC: Could not send backchannel reply error: -\d+"), "Replies of a lost connection")
# What the client's trace events say of it: those that must fire.
EVENTS = {"stutters": ["reply_rqst_err"], "babbles": ["reply_short_err", "reply_vers_err", "reply_hdr_err"],
          "returns": ["reply_hdr_err"], "refuses-acls": ["err_chunk"], "errs": ["err_chunk"],
          "falls-silent": ["op_connect"], "errs-version": ["err_vers"], "garbles": ["err_unrecognized"]}
# What the responder ends a connection with.
ANSWERS_NOTHING = "an RDMA_ERROR that answers no Call of ours"
# A ring of their own.
TRACE = "/sys/kernel/tracing/instances/responder"


@contextmanager
def _fired(cell: Cell, events: list[str]) -> Iterator[None]:
    """Fail unless the client's module fires these events in a block."""
    if not events:
        yield
        return
    with progress.undoing(lambda: cell.client(f"rmdir {TRACE}")):
        # A test that hung may have left it.
        cell.client(f"rmdir {TRACE} 2> /dev/null; mkdir {TRACE} && cd {TRACE}/events/rpcrdma && "
                    f"for event in {' '.join(events)}; do echo 1 > xprtrdma_$event/enable || exit 1; done")
        yield
        absent = cell.client(f"for event in {' '.join(events)}; do grep -q \": xprtrdma_$event: \" {TRACE}/trace || "
                             "echo $event; done").split()
    if absent:
        raise progress.Failure(f"events that did not fire: {' '.join(absent)}")


@contextmanager
def responding(cell: Cell, behaviour: str) -> Iterator[None]:
    """The program, for the length of a block; the client notices what it does."""
    cell.server(RUN.format(SERVER.address4, OTHER_PORT, behaviour))
    with progress.undoing(lambda: cell.server(END)), _fired(cell, EVENTS.get(behaviour.split()[0], [])):
        try:
            yield
            _expect_no_errors(cell)
        except progress.Failure:
            for line in cell.server("tail -n 20 /tmp/responder").splitlines():
                progress.line(f"  the responder: {line}")
            raise


def _expect_no_errors(cell: Cell) -> None:
    """Fail if the client has answered what is no Call (RFC 8166, section 4.2.4)."""
    said = cell.server(f"grep '^ended: {ANSWERS_NOTHING}' /tmp/responder; true").strip()
    if said:
        raise progress.Failure(said)


def switch(cell: Cell, behaviour: str) -> None:
    """Another behaviour from now on; those who are connected lose their connection."""
    _expect_no_errors(cell)
    cell.server(END)
    cell.server(RUN.format(SERVER.address4, OTHER_PORT, behaviour))


def mounting(cell: Cell, size: int, more: str = "") -> str:
    return cell.mount_command(option=f"proto=rdma,rsize={size},wsize={size}{more}", port=OTHER_PORT)


@contextmanager
def mounted_behind(cell: Cell, behaviour: str, prepare: str, options: str = "") -> Iterator[None]:
    """A mount of the program, for the length of a block."""
    cell.load_modules()
    with responding(cell, behaviour), cell.mounted(mounting(cell, LARGE, options), prepare=prepare):
        yield


def borne(behaviour: str, size: int, sizes: str, cell: Cell) -> None:
    """It makes no difference, and costs no connection."""
    cell.load_modules()
    with responding(cell, behaviour), cell.mounted(mounting(cell, size)):
        cell.written("some", sizes, "--direct")
        if cell.connects() != 1:
            raise progress.Failure(f"{cell.connects()} connections were made")
        bad = cell.counter(BAD_MESSAGES)
        if (bad != 0) != (behaviour == "babbles"):
            raise progress.Failure(f"{bad} bad messages were counted")


def left_out(cell: Cell) -> None:
    """A Reply that comes inline, and says nothing of the chunks that were offered for it, makes no difference."""
    cell.load_modules()
    with responding(cell, "leaves-out"), cell.mounted(mounting(cell, LARGE)):
        cell.written("some", FEW_SIZES, "--direct")
        if not int(cell.server("grep -c 'left out' /tmp/responder; true")):
            raise progress.Failure("no chunk was left out")
        if cell.connects() != 1:
            raise progress.Failure(f"{cell.connects()} connections were made")


def cut_off(cell: Cell) -> None:
    """A Reply that ends where its data do, without the padding, makes no difference."""
    cell.load_modules()
    with responding(cell, "cuts-off"), cell.mounted(mounting(cell, SMALL)):
        cell.written("some", CUT_SIZES, "--direct")
        said = cell.server("cat /tmp/responder").splitlines()
        lacking = {line.split()[-1] for line in said if line.startswith("cut off")}
        bad = cell.counter(BAD_MESSAGES)
        if lacking < {"0", "1", "2", "3"} or cell.connects() != 1 or bad:
            raise progress.Failure(f"without {sorted(lacking)} bytes of padding, {cell.connects()} connections were made, with "
                              f"{bad} bad messages")


def verified(cell: Cell) -> None:
    """Verifiers of any length in front of data that are placed make no difference."""
    cell.load_modules()
    with responding(cell, "verifies"), cell.mounted(mounting(cell, LARGE)):
        cell.written("some", MANY_READS, "--direct")
        count, bad = int(cell.server("grep -c verified /tmp/responder; true")), cell.counter(BAD_MESSAGES)
        if count < VERIFIERS or cell.connects() != 1 or bad:
            raise progress.Failure(f"{count} Replies with data were verified, {cell.connects()} connections made, with {bad} bad "
                              "messages")


def invalidated(cell: Cell) -> None:
    """A Reply that invalidates a key of another RPC costs the connection, each time; no byte is wrong."""
    cell.load_modules()
    with responding(cell, "invalidates-another"), cell.mounted(mounting(cell, LARGE)):
        cell.written("some", MANY_READS, "--direct")
        cell.still_works()
        count = int(cell.server("grep -c invalidated /tmp/responder; true"))
        connects, bad = cell.connects(), cell.counter(BAD_MESSAGES)
        if not count or connects != 1 + count or bad != count:
            raise progress.Failure(f"{count} keys of others were invalidated, {connects} connections made, {bad} bad messages "
                              "counted")


def unoffered(cell: Cell) -> None:
    """The first answer of a connection returns a chunk that the transport's own Call has not offered: its grant does not
    count, and the connection is not used (RFC 8166, section 3.3.3)."""
    cell.load_modules()
    with responding(cell, "returns-unoffered"), cell.mounted(mounting(cell, SMALL)):
        cell.still_works()
        returned, bad = int(cell.server("grep -c returned /tmp/responder; true")), cell.counter(BAD_MESSAGES)
        accepted = int(cell.server("grep -c accepted /tmp/responder; true"))
        if returned != 1 or accepted != 2 or bad != 1:
            raise progress.Failure(f"{returned} chunks were returned, {accepted} connections accepted, {bad} bad messages counted")


def scribbled(cell: Cell) -> None:
    """A Write chunk comes back unused, and was written into, beside data that are inline: those are what was read (RFC
    8166, section 4.3.2.2)."""
    cell.load_modules()
    with responding(cell, "scribbles"), cell.mounted(mounting(cell, LARGE), prepare=f"/lab/files.py make in {SHORT}"):
        name = f"file-{SHORT}"
        # With more room than there is of the file, and so for a Reply that need not fit inline.
        found = cell.client(f"dd if=/mnt/t/in/{name} bs={LARGE} iflag=direct status=none | sha256sum").split()[0]
        if found != checksum(name):
            raise progress.Failure("other bytes were read than the server has sent")
        if not int(cell.server("grep -c scribbled /tmp/responder; true")):
            raise progress.Failure("no chunk was written into")
        if cell.connects() != 1:
            raise progress.Failure(f"{cell.connects()} connections were made")


def come_back_smaller(cell: Cell) -> None:
    """A server that says nothing of itself when it comes back gets no more than 1024 bytes inline from then on (RFC 8797,
    section 4); the responder ends a connection with longer messages."""
    cell.load_modules()
    with responding(cell, "honest"), cell.mounted(mounting(cell, SMALL)):
        cell.written("before", FEW_SIZES, "--direct")
        switch(cell, "says-little 0")
        cell.still_works()
        cell.written("behind", FEW_SIZES, "--direct")
        if not int(cell.server("grep -c accepted /tmp/responder; true")):
            raise progress.Failure("the client has not come back")
        ended = cell.server("grep '^ended: ' /tmp/responder; true").strip()
        if ended:
            raise progress.Failure(f"the responder has ended a connection: {ended}")


def discarded(behaviour: str, cell: Cell) -> None:
    """It costs the connection, but no byte is wrong."""
    cell.load_modules()
    with responding(cell, behaviour), cell.mounted(mounting(cell, LARGE)):
        cell.written("some", ODD, "--direct")
        if cell.connects() == 1:
            raise progress.Failure("the connection was kept")


def padded(cell: Cell) -> None:
    """The padding that the server writes finds no memory, and what is behind that for the data stays as it is; a server
    that does not write it then is believed."""
    cell.load_modules()
    with responding(cell, "places"), cell.mounted(mounting(cell, LARGE), prepare=f"/lab/files.py make in {ODD}"):
        before = cell.connects()
        cell.server(END)
        cell.client("rm -f /tmp/checked; { setsid /lab/files.py check /mnt/t/in --direct; echo $? > /tmp/checked; } "
                    "> /tmp/check 2>&1 < /dev/null &")
        cell.server(RUN.format(SERVER.address4, OTHER_PORT, "pads"))
        # One since the server began anew, one since the padding.
        cell.await_connects(before + 2, LONG_SECONDS)
        switch(cell, "places")
        cell.client("for try in $(seq 600); do test -s /tmp/checked && break; sleep 0.2; done; cat /tmp/check >&2; "
                    "grep -qx 0 /tmp/checked", LONG_SECONDS)


def given_room(cell: Cell) -> None:
    """Where the client has room for padding, a server that writes it costs nothing."""
    cell.load_modules()
    with cell.tunable("rdma_write_chunk_padding", 1), responding(cell, "pads"), cell.mounted(mounting(cell, LARGE)):
        before = cell.counter(WRITTEN_BYTES)
        cell.written("some", ODD, "--direct")
        connects, bad = cell.connects(), cell.counter(BAD_MESSAGES)
        if connects != 1 or bad != 0:
            raise progress.Failure(f"{connects} connections were made, with {bad} bad messages")
        written = cell.counter(WRITTEN_BYTES) - before
        if written == 0 or written % 4:
            raise progress.Failure(f"the server has written {written} bytes, and so no padding")


def refused(behaviour: str, said: str, cell: Cell) -> None:
    """A server that gives no connection of use is asked again after a delay that grows; the mount recovers."""
    cell.load_modules()
    with responding(cell, "honest"), cell.mounted(mounting(cell, SMALL)):
        cell.written("before", FEW_SIZES)
        with cell.load():
            switch(cell, behaviour)
            times = _await_attempts(cell, said)
            switch(cell, "honest")
            cell.still_works()
    came = " and ".join(f"{later - sooner:.1f} s" for sooner, later in zip(times, times[1:]))
    progress.line(f"  the client came again after {came}")
    if any(later - sooner < delay for sooner, later, delay in zip(times, times[1:], DELAYS)):
        raise progress.Failure(f"the client came again after {came}, and not later each time")


def _await_attempts(cell: Cell, said: str) -> list[float]:
    """Wait until the client has come once more than there are delays to be seen; when it came."""
    deadline = cell.guests.clock.now() + OVERDUE_SECONDS
    while len(times := attempts(cell.server("cat /tmp/responder"), said)) <= len(DELAYS):
        if cell.guests.clock.now() > deadline:
            raise progress.Failure(f"the client came {len(times)} times in {OVERDUE_SECONDS} s")
        time.sleep(1)
    return times


def attempts(text: str, said: str) -> list[float]:
    """When the client came, by the responder's clock."""
    return [float(time) for time in re.findall(rf"^{said} at ([0-9.]+)$", text, re.MULTILINE)]


def fallen_silent(cell: Cell) -> None:
    """A server that falls silent is asked again over a new connection as soon as a Reply is overdue: it has been waited
    for already, and the RPC does not stand longer than by its own timeouts."""
    cell.load_modules()
    with responding(cell, f"falls-silent {SILENCES}"), cell.mounted(mounting(cell, SMALL, HASTY)):
        stood = cell.client("read began rest < /proc/uptime; stat -f /mnt > /tmp/stat && read ended rest < /proc/uptime"
                            " && echo $began $ended | awk '{print $2 - $1}'", LONG_SECONDS).strip()
        cell.still_works()
        silences = int(cell.server("grep -c 'fell silent' /tmp/responder; true"))
        delays = cell.client(f"sed -n 's/.*: xprtrdma_op_connect: .* delay=//p' {TRACE}/trace").split()
        progress.line(f"  the RPC stood for {stood} s")
        if silences != SILENCES or delays != ["0"] * (1 + SILENCES):
            raise progress.Failure(f"{silences} silences, connections after delays of {', '.join(delays)} jiffies")


def late(cell: Cell) -> None:
    """An RPC whose own time was over before there was a connection costs none: the time that it was not sent does not
    count against the one over which it is sent."""
    cell.load_modules()
    with responding(cell, "honest"), cell.mounted(mounting(cell, SMALL, f"{HASTY},retrans=0")):
        cell.still_works()
        switch(cell, "rejects")
        cell.client("rm -f /tmp/ended; { setsid sh -c 'stat -f /mnt > /tmp/stat 2>&1; echo $? > /tmp/ended' "
                    "> /dev/null 2>&1 < /dev/null & }")
        _await_attempts(cell, "rejected")
        switch(cell, "honest")
        cell.client("for try in $(seq 600); do test -s /tmp/ended && break; sleep 0.2; done; cat /tmp/stat >&2; "
                    "grep -qx 0 /tmp/ended", LONG_SECONDS)
        times = attempts(cell.server("cat /tmp/responder"), "accepted")
        # A slow server may take longer than that.
        apart = [later - sooner for sooner, later in zip(times, times[1:])]
        if not times or any(seconds < HASTY_SECONDS for seconds in apart):
            came = ", ".join(f"{seconds:.1f} s" for seconds in apart)
            raise progress.Failure(f"{len(times)} connections were made for one RPC, {came} apart")


def erring(behaviour: str, cell: Cell) -> None:
    """ERR_CHUNK or ERR_VERS is the end of an RPC, and of nothing else."""
    cell.load_modules()
    prepare = "mkdir many && cd many && seq -f 'name-%0100g' 100 | xargs touch"
    with responding(cell, f"{behaviour} 4000"), cell.mounted(mounting(cell, SMALL), prepare=prepare):
        cell.client(FAILS_TO_LIST)
        _expect_refusals(cell, 1)
        cell.written("some", "100 2000")
        _expect_alone(cell, 1)


def refusing_at_once(cell: Cell) -> None:
    """An RDMA_ERROR ends its RPC, and nothing else, though it comes before the RPC waits for its Reply: that of another is
    being sent by the same task, or the processor was needed elsewhere."""
    cell.load_modules()
    reads = READERS * READS_OF_EACH
    with responding(cell, "refuses-reads"), cell.mounted(mounting(cell, SMALL), prepare="head -c 4096 /dev/urandom > a"):
        ended = cell.client(f"/lab/readers.py /mnt/t/a {READERS} {READS_OF_EACH}", LONG_SECONDS).split()
        if ended != [str(reads), "EIO"]:
            raise progress.Failure(f"the READs ended so: {' '.join(ended)}")
        _expect_refusals(cell, reads)
        _expect_alone(cell, reads)


def refusing_acls(cell: Cell) -> None:
    """ERR_CHUNK in the place of an ACL is the end of the RPC, or of the second one where the client may ask again."""
    cell.load_modules()
    name = "system.posix_acl_access" if cell.version == "3" else "system.nfs4_acl"
    with responding(cell, "refuses-acls"), cell.mounted(mounting(cell, SMALL), prepare="touch a"):
        end = cell.client(f"/lab/xattr.py /mnt/t/a {name} 100").strip()
        if end != "EIO":
            raise progress.Failure(f"the client ends with {end}")
        refusals = 2 if acl_tests.asks_again(cell) else 1
        _expect_refusals(cell, refusals)
        cell.client("cat /mnt/t/a")
        _expect_alone(cell, refusals)


def longest_acls(cell: Cell) -> None:
    """The Reply chunk of GETACL of NFS 3 has room for the longest ACLs that the client takes."""
    cell.load_modules()
    with responding(cell, "long-acls"), cell.mounted(mounting(cell, SMALL)):
        for kind in ("access", "default"):
            end = cell.client(f"/lab/xattr.py /mnt/t system.posix_acl_{kind} 65536").strip()
            if end != str(LONGEST_ACL):
                raise progress.Failure(f"the client has {end} bytes of the {kind} ACL, and not {LONGEST_ACL}")
        _expect_refusals(cell, 0)


def _expect_refusals(cell: Cell, count: int) -> None:
    """So often the responder has sent ERR_CHUNK."""
    refused = int(cell.server("grep -c refused /tmp/responder; true"))
    if refused != count:
        raise progress.Failure(f"the server refused {refused} Calls, and not {count}")


def _expect_alone(cell: Cell, errors: int) -> None:
    """So many errors of the transport have ended RPCs, and no connection."""
    connects, bad = cell.connects(), cell.counter(BAD_MESSAGES)
    if connects != 1 or bad != errors:
        raise progress.Failure(f"{connects} connections were made, {bad} bad messages counted")


def chunks_refused(cell: Cell) -> None:
    """Calls of the server that have chunks are answered with ERR_CHUNK (RFC 8167, section 5.3), those of another version
    with ERR_VERS, and nothing more; the client's own Calls under the same XIDs are not touched."""
    cell.load_modules()
    with responding(cell, "calls-back-with-chunks"), cell.mounted(mounting(cell, SMALL)):
        cell.written("some", FEW_SIZES, "--direct")
        deadline = cell.guests.clock.now() + ANSWERED_SECONDS
        while (wrong := unrefused(cell.server("cat /tmp/responder"))) and cell.guests.clock.now() < deadline:
            cell.written("more", FEW_SIZES, "--direct")
        if wrong:
            raise progress.Failure("; ".join(wrong))
        if cell.connects() != 1:
            raise progress.Failure(f"{cell.connects()} connections were made")


def unrefused(said: str) -> list[str]:
    """What is wrong with the answers to Calls that are to be refused, by what the responder printed."""
    lines = Counter(said.splitlines())
    names = [line.removeprefix("called ") for line in lines if line.startswith("called ")]
    wrong = []
    for name in names:
        called, refused = lines[f"called {name}"], lines[f"refused {OTHER_ERRORS.get(name, 2)} {name}"]
        if called != refused:
            wrong.append(f"{name}: {called} Calls, {refused} refused as they should be")
    return wrong if len(names) == KINDS else [*wrong, f"{len(names)} of {KINDS} kinds of Calls were made"]


def called_back(behaviour: str, most: int, least: int, cell: Cell) -> None:
    """The Calls of a server are answered, `least` of them, on one connection; `most` may be under way at the end."""
    cell.load_modules()
    with responding(cell, behaviour), cell.mounted(mounting(cell, SMALL)):
        cell.written("some", FEW_SIZES, "--direct")
        cell.still_works()
        lines = Counter(cell.server("cat /tmp/responder").splitlines())
        called, answered = lines["called NULL"], lines["answered NULL"]
        if answered < least or called - answered > most or cell.connects() != 1:
            raise progress.Failure(f"{called} Calls, {answered} answered, {cell.connects()} connections")


def withheld(behaviour: str, reconnects: bool, cell: Cell) -> None:
    """A server that answers no Call until one of its own is answered gets that answer, though the client has more Calls
    than credits: those of the other direction are none of them (RFC 8167, section 4.1). And where it closes the
    connection first: the next one has one credit at first, and several Calls are sent again."""
    cell.load_modules()
    with responding(cell, behaviour), cell.mounted(mounting(cell, SMALL)):
        cell.client("/lab/files.py workers /mnt/t/workers 4 20000", LONG_SECONDS)
        cell.same("workers")
        lines = Counter(cell.server("cat /tmp/responder").splitlines())
        called, answered, connects = lines["called NULL"], lines["answered NULL"], cell.connects()
        wanted = 1 + called if reconnects else 1
        if called < WITHHELD or called != answered or lines["waited in vain"] or connects != wanted:
            raise progress.Failure(f"{called} Calls, {answered} answered, {lines['waited in vain']} of them not in time, "
                              f"{connects} connections")


def call_dropped(cell: Cell) -> None:
    """A Call of the server that the callback service drops costs the connection, since there is no Reply (RFC 8166, section
    4.5.4); the mount goes on."""
    cell.load_modules()
    with responding(cell, f"cuts-calls-off {CUT_CALLS}"), cell.mounted(mounting(cell, SMALL)):
        cell.written("some", FEW_SIZES, "--direct")
        cell.still_works()
        called, connects = int(cell.server("grep -c called /tmp/responder; true")), cell.connects()
        if called != CUT_CALLS or connects != 1 + CUT_CALLS:
            raise progress.Failure(f"{called} Calls were cut off, {connects} connections made")


def flooded(cell: Cell) -> None:
    """More Calls at once than can be kept cost the server its connection; the mount goes on."""
    cell.load_modules()
    with responding(cell, f"floods {FLOOD}"), cell.mounted(mounting(cell, SMALL)):
        cell.written("some", FEW_SIZES, "--direct")
        cell.still_works()
        if cell.connects() == 1:
            raise progress.Failure("the connection was kept")


def garbled(cell: Cell) -> None:
    """A Reply that cannot be made out is asked for again, on another connection; no byte is wrong."""
    cell.load_modules()
    with responding(cell, "garbles"), cell.mounted(mounting(cell, SMALL)):
        cell.written("some", FEW_SIZES, "--direct")
        cell.still_works()
        done, connects, bad = (int(cell.server("grep -c garbled /tmp/responder; true")), cell.connects(),
                               cell.counter(BAD_MESSAGES))
        if done != GARBLED or connects < GARBLED or bad < GARBLED - 1:
            raise progress.Failure(f"{done} Replies were garbled, {bad} bad messages counted, {connects} connections made")


def unprobed(cell: Cell) -> None:
    """A server that does not answer when it is asked whether it is there, but everything else, keeps its connection as
    long as there is something else, and loses it in silence; the mount goes on."""
    cell.load_modules()
    with cell.tunable(KEEPALIVE, KEEPALIVE_SECONDS):
        with responding(cell, "ignores-probes"), cell.mounted(mounting(cell, SMALL)):
            cell.written("before", FEW_SIZES)
            cell.server("for try in $(seq 250); do grep -q ignored /tmp/responder && exit 0; sleep 0.2; done; "
                        "echo the server was not asked >&2; exit 1")
            with cell.load():
                time.sleep(2 * KEEPALIVE_SECONDS)
            if cell.connects() != 1:
                raise progress.Failure("the connection was lost though the server answers")
            cell.client(LOSES_IDLE_CONNECTION, LONG_SECONDS)
            cell.still_works()


def probe_dropped(cell: Cell) -> None:
    """A server that does not answer once when it is asked whether it is there, and others meanwhile, keeps its connection:
    it is asked again in the next silence."""
    cell.load_modules()
    with cell.tunable(KEEPALIVE, KEEPALIVE_SECONDS):
        with responding(cell, "ignores-probes 1"), cell.mounted(mounting(cell, SMALL)):
            cell.written("before", FEW_SIZES)
            time.sleep(3 * KEEPALIVE_SECONDS)
            if not int(cell.server("grep -c ignored /tmp/responder; true")):
                raise progress.Failure("the server was not asked")
            cell.still_works()
            cell.client(f"sleep {DROPPED_SECONDS}", LONG_SECONDS)
            asked = int(cell.server("grep -c asked /tmp/responder; true"))
            cell.still_works()
            if not asked or cell.connects() != 1:
                raise progress.Failure(f"the server was asked {asked} times more, {cell.connects()} connections were made")


def _borne(what: str, behaviour: str, provokes: tuple[Expected, ...] = (), size: int = SMALL,
           sizes: str = FEW_SIZES) -> Test:
    return Test(f"a server that {what}", functools.partial(borne, behaviour, size, sizes), provokes)


REFUSING_ACLS = Test("a server that refuses ACLs", refusing_acls)
# Over RoCE the private data are filled up with zeros; over iWARP they end where they end.
SAYS_LITTLE = _borne("says too little of itself", "says-little 7")
# For every check.
QUICK = [REFUSING_ACLS, Test("a server with the longest ACLs", longest_acls),
         _borne("grants no credit", "grants 0"), _borne("has no private data", "says-little 0"),
         _borne("babbles", "babbles", (BAD,)),
         Test("a server that leaves unused chunks out", left_out),
         Test("a server that forgets padding", cut_off),
         Test("a server with verifiers of any length", verified),
         Test("a server that invalidates another's key", invalidated, (LOST, BAD)),
         Test("a server that scribbles into unused chunks", scribbled),
         Test("a server that returns what nobody offered", unoffered, (LOST, BAD, NOT_RESPONDING)),
         Test("a server that comes back with less room", come_back_smaller, (LOST, NOT_RESPONDING)),
         Test("a server that returns other chunks", functools.partial(discarded, "returns"), (LOST, BAD)),
         Test("a server that writes padding", padded, (LOST, NOT_RESPONDING)),
         Test("a server that writes padding into room for it", given_room),
         Test("a server that refuses at once", refusing_at_once),
         Test("a server that cannot answer", functools.partial(erring, "errs")),
         Test("a server that speaks another version", functools.partial(erring, "errs-version"))]
TESTS = [_borne("makes no mistake", "honest"), _borne("uses Write chunks", "places", (), LARGE, ODD), *QUICK, SAYS_LITTLE,
         _borne("grants too many credits", "grants 4294967295"), _borne("answers more than once", "stutters"),
         _borne("calls back though nobody is there", "calls-back 4"),
         Test("a server that ignores being asked", unprobed, (LOST,)),
         Test("a server that ignores being asked once", probe_dropped),
         Test("a server that hangs up", functools.partial(refused, "hangs-up", "accepted"), (LOST, NOT_RESPONDING)),
         Test("a server that rejects", functools.partial(refused, "rejects", "rejected"), (LOST, NOT_RESPONDING)),
         Test("a server that falls silent", fallen_silent, (LOST, NOT_RESPONDING)),
         Test("a server that is late", late, (LOST, NOT_RESPONDING)),
         # Not with a session: nfsd keeps no Reply to a READ or WRITE, and says so when that is asked for again.
         Test("a server that garbles Replies", garbled, (LOST, BAD, NOT_RESPONDING))]

# The same with a session, over which the server may call.
QUICK_SESSIONS = [_borne("makes no mistake", "honest"),
                  Test("a server that calls back with chunks", chunks_refused, (BAD,)),
                  Test("a server whose Call is dropped", call_dropped, (LOST, NOT_RESPONDING)),
                  Test("a server that calls back under the same XIDs", functools.partial(called_back, "calls-alike", 1, 1)),
                  Test("a server that withholds Replies until it is answered",
                       functools.partial(withheld, "withholds", False)),
                  Test("a server that withholds the first Reply until it is answered",
                       functools.partial(withheld, "withholds-first", True), (LOST, NOT_RESPONDING))]
SESSIONS = [*QUICK_SESSIONS,
            Test("a server that calls back",
                 functools.partial(called_back, f"calls-in-turn {IN_TURN}", IN_TURN, LEAST_ANSWERED)),
            Test("a server that calls back too often", flooded, (LOST, UNSENT, NOT_RESPONDING))]
