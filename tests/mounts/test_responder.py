"""Our responder on raw verbs (tools/responder), a server that does what none should, against a client."""

import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import progress
import test_acl as acl_tests
from guests.cell import FEW_SIZES, GONE, LONG_SECONDS, OTHER_PORT, Cell, checksum
from guests.machine import SERVER
from judges.messages import Expected
from plan import long, provokes
from provoked import NOT_RESPONDING
from test_keep_alive import KEEPALIVE, KEEPALIVE_SECONDS, LOSES_IDLE_CONNECTION

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
# After the one Call that the server has ignored it has its time, which is a minute.
DROPPED_SECONDS = 75
# The kinds of garbled Replies: all but the last are bad messages of this transport.
GARBLED = 7
# Lengths of each kind modulo 4, all inline.
CUT_SIZES = "1 2 3 4 9 301 302 303 304"
READERS, READS_OF_EACH = 16, 40
FAILS_TO_LIST = "! ls /mnt/t/many > /tmp/ls 2>&1; grep -q 'Input/output error' /tmp/ls || { cat /tmp/ls >&2; exit 1; }"
RUN = ("{{ PYTHONPYCACHEPREFIX=/tmp/pycache PYTHONPATH=/lab/raw:/lab/referee setsid python3 -S /lab/responder {0} {1} {2} "
       "> /tmp/responder 2>&1 < /dev/null & echo $! > /tmp/responder.pid; }}; for try in $(seq 250); do grep -q listening /tmp/responder && exit 0; "
       "sleep 0.2; done; cat /tmp/responder >&2; exit 1")
END = f"read -r group < /tmp/responder.pid; kill -9 -$group; {GONE.format('$group')}"
# The mount's counters, as the user guide numbers them.
WRITTEN_BYTES, BAD_MESSAGES = 15, 20
BAD = Expected(10_000, re.compile(r"rpcrdma: (bad message from .*|\d+ callbacks suppressed)"), "the server babbles")
LOST = Expected(100, re.compile(r"rpcrdma: (connection (to|from) \S+ lost: .*|\d+ callbacks suppressed)|"
                                r"rxe0: qp#\d+ (make_send_cqe|do_complete): non-flush error status = \d+"),
                "the server breaks connections")
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


# What costs nothing, and no connection. Over RoCE the private data are filled up with zeros; over iWARP they end where they end.
@pytest.mark.parametrize("behaviour", [
    pytest.param("grants 0", id="grants-no-credit"), pytest.param("grants 4294967295", id="grants-too-many-credits", marks=long),
    pytest.param("says-little 0", id="has-no-private-data"),
    pytest.param("babbles", marks=provokes(BAD)), pytest.param("stutters", id="answers-more-than-once", marks=long),
    pytest.param("calls-back 4", id="calls-back-though-nobody-is-there", marks=long)])
def test_server_is_odd(cell: Cell, behaviour: str) -> None:
    """It makes no difference, and costs no connection. No credit or 2^32 - 1; no private data (then no more than 1024
    bytes inline); twelve kinds of malformed message in front of Replies, dropped or answered with RDMA_ERROR where they
    can only be Calls."""
    _borne(cell, behaviour, SMALL, FEW_SIZES)


def test_server_makes_no_mistake(cell: Cell) -> None:
    """A responder as it should be serves the client, every byte right."""
    _borne(cell, "honest", SMALL, FEW_SIZES)


def test_server_says_too_little_of_itself(cell: Cell) -> None:
    """7 bytes of private data of 8: no more than 1024 bytes inline. Over iWARP in a check, since RoCE fills them up."""
    _borne(cell, "says-little 7", SMALL, FEW_SIZES)


@long
def test_server_uses_write_chunks(cell: Cell) -> None:
    """The same with data in Write chunks."""
    _borne(cell, "places", LARGE, ODD)


def _borne(cell: Cell, behaviour: str, size: int, sizes: str) -> None:
    cell.load_modules()
    with responding(cell, behaviour), cell.mounted(mounting(cell, size)):
        cell.written("some", sizes, "--direct")
        if cell.connects() != 1:
            raise progress.Failure(f"{cell.connects()} connections were made")
        bad = cell.counter(BAD_MESSAGES)
        if (bad != 0) != (behaviour == "babbles"):
            raise progress.Failure(f"{bad} bad messages were counted")


def test_server_leaves_unused_chunks_out(cell: Cell) -> None:
    """A Reply that comes inline, and says nothing of the chunks that were offered for it, makes no difference."""
    cell.load_modules()
    with responding(cell, "leaves-out"), cell.mounted(mounting(cell, LARGE)):
        cell.written("some", FEW_SIZES, "--direct")
        if not int(cell.server("grep -c 'left out' /tmp/responder; true")):
            raise progress.Failure("no chunk was left out")
        if cell.connects() != 1:
            raise progress.Failure(f"{cell.connects()} connections were made")


def test_server_forgets_padding(cell: Cell) -> None:
    """A Reply that ends where its data do, without the padding, makes no difference. Of each length modulo 4."""
    cell.load_modules()
    with responding(cell, "cuts-off"), cell.mounted(mounting(cell, SMALL)):
        cell.written("some", CUT_SIZES, "--direct")
        said = cell.server("cat /tmp/responder").splitlines()
        lacking = {line.split()[-1] for line in said if line.startswith("cut off")}
        bad = cell.counter(BAD_MESSAGES)
        if lacking < {"0", "1", "2", "3"} or cell.connects() != 1 or bad:
            raise progress.Failure(f"without {sorted(lacking)} bytes of padding, {cell.connects()} connections were made, with "
                              f"{bad} bad messages")


def test_server_with_verifiers_of_any_length(cell: Cell) -> None:
    """Verifiers of any length in front of data that are placed make no difference."""
    cell.load_modules()
    with responding(cell, "verifies"), cell.mounted(mounting(cell, LARGE)):
        cell.written("some", MANY_READS, "--direct")
        count, bad = int(cell.server("grep -c verified /tmp/responder; true")), cell.counter(BAD_MESSAGES)
        if count < VERIFIERS or cell.connects() != 1 or bad:
            raise progress.Failure(f"{count} Replies with data were verified, {cell.connects()} connections made, with {bad} bad "
                              "messages")


@provokes(LOST, BAD)
def test_server_invalidates_anothers_key(cell: Cell) -> None:
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


@provokes(LOST, BAD, NOT_RESPONDING)
def test_server_returns_what_nobody_offered(cell: Cell) -> None:
    """The first answer of a connection returns a chunk that the transport's own Call has not offered: its grant does not
    count, and the connection is not used (RFC 8166, section 3.3.3)."""
    cell.load_modules()
    with responding(cell, "returns-unoffered"), cell.mounted(mounting(cell, SMALL)):
        cell.still_works()
        returned, bad = int(cell.server("grep -c returned /tmp/responder; true")), cell.counter(BAD_MESSAGES)
        accepted = int(cell.server("grep -c accepted /tmp/responder; true"))
        if returned != 1 or accepted != 2 or bad != 1:
            raise progress.Failure(f"{returned} chunks were returned, {accepted} connections accepted, {bad} bad messages counted")


def test_server_scribbles_into_unused_chunks(cell: Cell) -> None:
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


@provokes(LOST, NOT_RESPONDING)
def test_server_comes_back_with_less_room(cell: Cell) -> None:
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


@provokes(LOST, BAD)
def test_server_returns_other_chunks(cell: Cell) -> None:
    """It costs the connection, but no byte is wrong."""
    cell.load_modules()
    with responding(cell, "returns"), cell.mounted(mounting(cell, LARGE)):
        cell.written("some", ODD, "--direct")
        if cell.connects() == 1:
            raise progress.Failure("the connection was kept")


@provokes(LOST, NOT_RESPONDING)
def test_server_writes_padding(cell: Cell) -> None:
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


def test_server_writes_padding_into_room_for_it(cell: Cell) -> None:
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


@long
@provokes(LOST, NOT_RESPONDING)
@pytest.mark.parametrize(("behaviour", "said"), [("hangs-up", "accepted"), ("rejects", "rejected")])
def test_server_refuses(cell: Cell, behaviour: str, said: str) -> None:
    """A server that gives no connection of use is asked again after a delay that grows; the mount recovers. Asked again
    after 5 seconds, and then after 10."""
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


@long
@provokes(LOST, NOT_RESPONDING)
def test_server_falls_silent(cell: Cell) -> None:
    """A server that falls silent is asked again over a new connection as soon as a Reply is overdue: it has been waited
    for already, and the RPC does not stand longer than by its own timeouts. On three connections, without delay."""
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


@long
@provokes(LOST, NOT_RESPONDING)
def test_server_is_late(cell: Cell) -> None:
    """An RPC whose own time was over before there was a connection costs none: the time that it was not sent does not
    count against the one over which it is sent. It is given a whole `timeo=` on the first connection that it takes
    again."""
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


@pytest.mark.parametrize("behaviour", ["errs", "errs-version"])
def test_server_errs(cell: Cell, behaviour: str) -> None:
    """ERR_CHUNK or ERR_VERS is the end of an RPC, and of nothing else. The Call (READDIR) comes once, the RPC ends with
    EIO and is counted."""
    cell.load_modules()
    prepare = "mkdir many && cd many && seq -f 'name-%0100g' 100 | xargs touch"
    with responding(cell, f"{behaviour} 4000"), cell.mounted(mounting(cell, SMALL), prepare=prepare):
        cell.client(FAILS_TO_LIST)
        _expect_refusals(cell, 1)
        cell.written("some", "100 2000")
        _expect_alone(cell, 1)


def test_server_refuses_at_once(cell: Cell) -> None:
    """An RDMA_ERROR ends its RPC, and nothing else, though it comes before the RPC waits for its Reply: that of another
    is being sent by the same task, or the processor was needed elsewhere. Each of 16 threads gets EIO."""
    cell.load_modules()
    reads = READERS * READS_OF_EACH
    with responding(cell, "refuses-reads"), cell.mounted(mounting(cell, SMALL), prepare="head -c 4096 /dev/urandom > a"):
        ended = cell.client(f"/lab/readers.py /mnt/t/a {READERS} {READS_OF_EACH}", LONG_SECONDS).split()
        if ended != [str(reads), "EIO"]:
            raise progress.Failure(f"the READs ended so: {' '.join(ended)}")
        _expect_refusals(cell, reads)
        _expect_alone(cell, reads)


def test_server_refuses_acls(cell: Cell) -> None:
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


def test_server_with_the_longest_acls(cell: Cell) -> None:
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


# Not with a session: nfsd keeps no Reply to a READ or WRITE, and says so when that is asked for again.
@long
@provokes(LOST, BAD, NOT_RESPONDING)
def test_server_garbles_replies(cell: Cell) -> None:
    """A Reply that cannot be made out is asked for again, on another connection; no byte is wrong. Seven kinds, of the
    header and of the RPC message."""
    cell.load_modules()
    with responding(cell, "garbles"), cell.mounted(mounting(cell, SMALL)):
        cell.written("some", FEW_SIZES, "--direct")
        cell.still_works()
        done, connects, bad = (int(cell.server("grep -c garbled /tmp/responder; true")), cell.connects(),
                               cell.counter(BAD_MESSAGES))
        if done != GARBLED or connects < GARBLED or bad < GARBLED - 1:
            raise progress.Failure(f"{done} Replies were garbled, {bad} bad messages counted, {connects} connections made")


@long
@provokes(LOST)
def test_server_ignores_being_asked(cell: Cell) -> None:
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


@long
def test_server_ignores_being_asked_once(cell: Cell) -> None:
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
