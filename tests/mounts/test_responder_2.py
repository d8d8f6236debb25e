"""Our responder on raw verbs (tools/responder), which speaks version 2 with the referee's ends, against a client that may."""

import contextlib
import dataclasses
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence

import pytest

import progress
import test_acl as acl_tests
import test_versions as version
from guests.cell import FEW_SIZES, LONG_SECONDS, Cell
from judges.messages import Expected
from plan import long, provokes
from provoked import NOT_RESPONDING
from test_keep_alive import KEEPALIVE, KEEPALIVE_SECONDS
from test_requester import left_alone
from test_calls_back import ANSWERED_SECONDS
from test_responder import BAD, BAD_MESSAGES, HASTY, LARGE, LOST, SMALL, mounting, responding, switch

# Some that are inline, and one that is not.
SIZES = "100 5000"
# In small pieces, with fewer files: so many Calls that a server promises nothing so often.
MANY_CALLS, TIMES = "250000", 2
# The same in the smallest pieces, for which no Call has chunks.
LEAST, LEAST_SIZE = 1024, "60000"
IDLE_SECONDS = 4
# Packets that a client has sent over RoCE.
SENT_PACKETS = "cat /sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts"

ENTRIES = "getfacl -n {} | grep -c '^user:[12]...:'"
# Of an ACL that is set with a Call of more than 1024 octets. nfsd takes and sends none of more than a page.
CUT = 200
# FSSTAT so often, and how each ended.
ASK = """import errno, os, sys
for count in range(int(sys.argv[1])):
    try:
        os.statvfs("/mnt")
        print("well")
    except OSError as error:
        print(errno.errorcode[error.errno])"""
SHORT_ONES = 10
# Calls that a client has under way at a time.
MOST_REFUSED = 32
# Messages, and the octets of a WRITE that takes so many; and of one that takes fewer.
IN_FOUR, EVEN_FEWER = (4, 12288), "100 5000"
# Processes side by side, and the octets that each writes and reads.
TOGETHER = "20 60000"
# The codes of errors that end an RPC at once, and of those after which a Call comes once more (section 7).
ENDS, RETRIED = [1, 2, 3, 4, 5, 9, 10, 11, 100], [6, 7, 8]
# What is answered to what is no answer, by its name: wherever it comes, and between fragments.
BABBLED = {"unknown type": "refused 4", "a type of version 1": "refused 4", "version 3": "refused 11", "version 1": "refused 11",
           "properties": "refused 5", "more properties": "refused 5"}
BETWEEN = BABBLED | {"another Reply": "refused 5", "another fragment": "refused 5", "another Call": "refused 5",
                     "a long Reply": "refused 5"}
NOISES: dict[str, dict[str, str]] = {"errs-unknown": {}, "floods-2": {}, "babbles-2": BABBLED, "splits-2": BETWEEN}
# How many faults tools/responder/faults_2.py has.
FAULTS = 13
# What the client does while messages with something wrong come, whatever comes of it, and for how long.
MUTATED_SECONDS, TRIES_AT_ONCE = 7200, 10
ALL_SENT = "grep -c 'all was sent' /tmp/responder || true"
BESIDE, IN_FILE = "/beside", "head -c 200000 /dev/urandom > in"
# Many RPCs at once, so that there are buffers for the answers.
TRIES = ("for try in $(seq {0}); do {{ ls -l /mnt/t > /dev/null; cat /mnt/t/in > /dev/null; dd if=/dev/zero of=/mnt/t/out bs=200k count=1; "
         f"}}}} 2> /dev/null; echo 3 > /proc/sys/vm/drop_caches; cmp {BESIDE}/t/in /tmp/in || exit 1; done")
# The versions in which a client comes to version 1 over another connection.
AGAIN = [[2], [1]]
# None of them by a mistake of the client's own.
HOSTILE = Expected(10_000, re.compile(r"rpcrdma: (connection to \S+ lost: (?!local (length|protection|access)|bad ).*|"
                                      r"\d+ lines about \S+ were left out)"), "the server breaks the protocol")


def said(cell: Cell) -> list[str]:
    """What the responder has printed."""
    return cell.server("cat /tmp/responder").splitlines()


def spoken(lines: list[str]) -> list[list[int]]:
    """By connection, the versions in which a client has spoken to the responder while it was open which one it is."""
    connections: list[list[int]] = []
    for line in lines:
        if line.startswith("accepted"):
            connections.append([])
        elif line.startswith("spoken to in version "):
            connections[-1].append(int(line.split()[-1]))
    return connections


def must_speak(cell: Cell, *connections: list[int]) -> None:
    """Fail unless there were these connections, with these versions."""
    found = spoken(said(cell))
    if found != list(connections):
        raise progress.Failure(f"by connection, the client spoke in the versions {found}, and not {list(connections)}")


def must_be_one(cell: Cell, bad_messages: int = 0) -> None:
    """Fail unless one connection was made, which speaks version 2, with so many bad messages counted."""
    must_speak(cell, [2])
    connects, bad = cell.connects(), cell.counter(BAD_MESSAGES)
    if connects != 1 or bad != bad_messages:
        raise progress.Failure(f"{connects} connections were made, {bad} bad messages counted")


@pytest.mark.parametrize("size", [pytest.param(SMALL, id="small", marks=long), pytest.param(LARGE, id="write-chunks")])
def test_server_makes_no_mistake_in_version_2(cell: Cell, size: int) -> None:
    """Files are right over one connection of version 2, and the referee finds nothing wrong in a capture of it."""
    cell.load_modules()
    with responding(cell, "honest-2"), cell.captured(), cell.mounted(mounting(cell, size)):
        cell.written("some", FEW_SIZES, "--direct")
        must_be_one(cell)


@provokes(LOST, BAD, NOT_RESPONDING)
@pytest.mark.parametrize(("behaviour", "first", "after"), [
    pytest.param("hangs-up-2", AGAIN, 1, id="hangs-up"),
    pytest.param("ignores-2", AGAIN, 1, id="says-nothing", marks=long),
    pytest.param("errs-version-2 1 1", [[2, 1]], 2, id="does-not-know-it", marks=long),
    pytest.param("errs-version-2 3 4", AGAIN, 1, id="speaks-versions-that-nobody-knows", marks=long),
    pytest.param("answers-otherwise 0", AGAIN, 1, id="answers-too-little", marks=long),
    pytest.param("answers-otherwise 1", AGAIN, 1, id="answers-a-reply-of-version-1", marks=long),
    pytest.param("answers-otherwise 2", AGAIN, 1, id="answers-version-3", marks=long),
    pytest.param("answers-oddly 0", [[2]], 2, id="answers-an-unknown-header-type", marks=long),
    pytest.param("answers-oddly 1", [[2]], 2, id="answers-a-reply-of-version-2", marks=long),
    pytest.param("answers-oddly 2", [[2]], 2, id="answers-a-grant", marks=long)])
def test_falls_back_to_version_1(cell: Cell, behaviour: str, first: list[list[int]], after: int) -> None:
    """A client that wanted version 2 comes to version 1 over these connections, or not, and begins the next one so."""
    cell.load_modules()
    with cell.tunable(KEEPALIVE, KEEPALIVE_SECONDS), responding(cell, behaviour), cell.mounted(mounting(cell, SMALL)):
        cell.client("touch /mnt/t/a")
        must_speak(cell, *first)
        switch(cell, "honest-2")
        cell.written("after", SIZES, "--direct")
        must_speak(cell, [after])
        if after == 1:
            cell.client(f"grep -q 'version 1, not answered before' {version.LIST} || {{ cat {version.LIST} >&2; exit 1; }}")


@long
def test_server_promises_nothing_for_a_while(cell: Cell) -> None:
    """A client waits for a server that promises nothing, and goes on with its GRANT; both are silent with nothing to do."""
    cell.load_modules()
    with responding(cell, "promises-nothing"), cell.mounted(mounting(cell, SMALL)):
        cell.written("some", MANY_CALLS, "--direct")
        must_be_one(cell)
        count = said(cell).count("promised nothing")
        if count != TIMES:
            raise progress.Failure(f"{count} times the server promised nothing")
        before = cell.client(f"sleep 1; {SENT_PACKETS}")
        after = cell.client(f"sleep {IDLE_SECONDS}; {SENT_PACKETS}")
        if before != after:
            raise progress.Failure(f"an idle client has sent {int(after) - int(before)} packets")


@pytest.mark.parametrize(("behaviour", "kinds", "size", "entries"), [
    pytest.param("small 1 1024 2 1024", ["CALL_MIDDLE"], SMALL, [CUT], id="messages"),
    pytest.param("small 3 8192", [], LARGE, [], id="segments", marks=long),
    pytest.param("small 3 4096 4 2", [], SMALL, [], id="few-segments", marks=long),
    # So that no chunk has room for the longest ACL, nor have several messages.
    pytest.param("small 1 1024 2 1024 3 4096 4 2", ["CALL_MIDDLE"], SMALL, [CUT], id="few-segments-and-messages", marks=long),
    pytest.param("small 4 1", [], LARGE, [], id="one-segment", marks=long),
    # A Call in fragments would wait for ever.
    pytest.param("promises-few 2 1 1024 2 1024", ["CALL_EXTERNAL"], SMALL, [CUT], id="messages-and-few-credits", marks=long),
    pytest.param("small 5 3", [], SMALL, [], id="any-reverse-call", marks=long)])
def test_small_room(cell: Cell, behaviour: str, kinds: Sequence[str], size: int, entries: Sequence[int]) -> None:
    """A client keeps to what a server tells of itself, which ends a connection where it does not; messages of these types come.
    Files are right, and ACLs of so many entries, that no chunk of data moves: the Calls that set them are long."""
    cell.load_modules()
    with responding(cell, behaviour), cell.captured(), cell.mounted(mounting(cell, size), prepare="touch a"):
        cell.written("some", FEW_SIZES, "--direct")
        for count in entries:
            cell.client(f"{acl_tests.set_acl(count)} /mnt/t/a && echo 3 > /proc/sys/vm/drop_caches")
            for found in cell.guests.together(ENTRIES.format("/export/t/a"), ENTRIES.format("/mnt/t/a"), LONG_SECONDS):
                if int(found) != count:
                    raise progress.Failure(f"{int(found)} of {count} entries are in the ACL")
        must_be_one(cell)
        absent = [kind for kind in kinds if f"came RDMA2_{kind}" not in said(cell)]
        if absent:
            raise progress.Failure(f"no message came of {', '.join(absent)}")


@pytest.mark.parametrize(("codes", "times"), [pytest.param(ENDS, 1, id="once"), pytest.param(RETRIED, 2, id="again", marks=long)])
def test_server_errs_in_version_2(cell: Cell, codes: list[int], times: int) -> None:
    """Each error is the end of its RPC, after the Call has come so often, and of nothing else. The RPC (FSSTAT) ends
    with EIO; after three of the codes the Call comes once more."""
    cell.load_modules()
    numbers = " ".join(map(str, codes))
    with responding(cell, f"refuses-fsstats {numbers}"), cell.mounted(mounting(cell, SMALL)):
        ended = cell.client(f"python3 -c '{ASK}' {len(codes) + 1}").split()
        if ended != ["EIO"] * len(codes) + ["well"]:
            raise progress.Failure(f"the RPCs end so: {' '.join(ended)}")
        _must_refuse(cell, {str(code): times for code in codes})
        cell.written("some", SIZES, "--direct")
        must_be_one(cell, times * len(codes))


def _must_refuse(cell: Cell, wanted: dict[str, int]) -> None:
    """Fail unless the responder has sent these errors so often."""
    found = Counter(line.removeprefix("refused ") for line in said(cell) if line.startswith("refused "))
    if found != wanted:
        raise progress.Failure(f"errors by code: {dict(found)}, and not {wanted}")


@long
@pytest.mark.parametrize(("limits", "code"), [
    pytest.param("0 16 16", 6, id="no-read-chunks"), pytest.param("16 0 16", 7, id="no-write-chunks"),
    pytest.param("16 16 0", 8, id="no-segments")])
def test_server_takes_few_chunks(cell: Cell, limits: str, code: int) -> None:
    """A Call that is refused for its chunks comes once more within what the error says, as do all after it (sections 7.3.1
    to 7.3.3)."""
    cell.load_modules()
    with responding(cell, f"takes-few {limits}"), cell.mounted(mounting(cell, SMALL)):
        cell.written("some", FEW_SIZES, "--direct")
        # What is continued in place of a chunk waits for credits where many want some.
        cell.client(f"/lab/files.py workers /mnt/t/workers {TOGETHER}", LONG_SECONDS)
        must_speak(cell, [2])
        refused = Counter(line for line in said(cell) if line.startswith("refused "))
        # Those that were under way when the first error came.
        if list(refused) != [f"refused {code}"] or refused.total() > MOST_REFUSED or cell.connects() != 1:
            raise progress.Failure(f"refused: {dict(refused)}; {cell.connects()} connections were made")


@long
def test_server_takes_neither_read_chunks_nor_many_messages(cell: Cell) -> None:
    """A Call of as many messages as the server ever takes leaves no credit for another: it does not wait for that in front of
    all others, but fails where the server takes no chunk either (section 5.4.2 of the binding)."""
    cell.load_modules()
    with responding(cell, f"takes-few 0 16 16 {IN_FOUR[0]}"), cell.mounted(mounting(cell, IN_FOUR[1])):
        cell.client(f"! dd if=/dev/zero of=/mnt/t/a bs={IN_FOUR[1]} count=1 oflag=direct 2> /tmp/dd && "
                    "grep -q 'Input/output error' /tmp/dd", LONG_SECONDS)
        cell.written("some", EVEN_FEWER, "--direct")
        must_speak(cell, [2])


def test_server_has_no_room_for_replies_of_version_2(cell: Cell) -> None:
    """A Call whose Reply has no room is made once more with a Reply chunk, where the client may (section 7.3.5)."""
    cell.load_modules()
    prepare = "mkdir many few && cd many && seq -f 'name-%0100g' 100 | xargs touch"
    with responding(cell, "has-no-room 2000"), cell.mounted(mounting(cell, SMALL), prepare=prepare):
        # After these no chunk is offered. With NFS 4.1 the server has no Reply any more when the Call comes once more.
        cell.client(f"for try in $(seq {SHORT_ONES}); do ls /mnt/t/few && echo 3 > /proc/sys/vm/drop_caches; done")
        cell.lists_the_same(ANSWERED_SECONDS)
        must_speak(cell, [2])
        refused = said(cell).count("refused 10")
        if not 0 < refused <= MOST_REFUSED or cell.connects() != 1:
            raise progress.Failure(f"{refused} Calls were refused, {cell.connects()} connections were made")


@pytest.mark.parametrize("behaviour", [
    pytest.param("errs-unknown", id="errs-with-a-code-that-nobody-knows", marks=long), pytest.param("floods-2", id="floods", marks=long),
    pytest.param("babbles-2", id="babbles", marks=long), pytest.param("splits-2", id="says-something-between-fragments")])
@provokes(BAD)
def test_server_is_odd_in_version_2(cell: Cell, behaviour: str) -> None:
    """What a server sends beside its Replies, or between their parts, costs nothing; what is to be answered is, with
    the error for that. 200 GRANTs in a row or one message more than it may cost nothing; RPC messages between fragments
    are answered with RDMA2_ERR_INVAL_CONT."""
    cell.load_modules()
    with responding(cell, behaviour), cell.mounted(mounting(cell, LEAST)):
        cell.written("some", LEAST_SIZE, "--direct")
        must_speak(cell, [2])
        wrong = unanswered(said(cell), NOISES[behaviour])
        if wrong or cell.connects() != 1:
            raise progress.Failure("; ".join([*wrong, f"{cell.connects()} connections were made"]))


def unanswered(lines: list[str], wanted: dict[str, str]) -> list[str]:
    """What is wrong with the answers to messages of the responder, by what it printed: each of them may be on its way."""
    found = Counter(lines)
    wrong = []
    for name, answer in wanted.items():
        called, answered = found[f"called {name}"], found[f"{answer} {name}"]
        others = sorted(line for line in found if re.fullmatch(rf"(answered|refused [0-9 ]+) {name}", line)
                        and line != f"{answer} {name}")
        if not called or answered < called - 1 or others:
            wrong.append(f"{name}: {called} sent, {answered} {answer}{''.join(f', {found[line]} {line}' for line in others)}")
    strange = sorted({line.removeprefix("called ") for line in lines if line.startswith("called ")} - set(wanted))
    return [*wrong, *(f"{name}: no answer is known" for name in strange)]


@long
@provokes(LOST, BAD, NOT_RESPONDING)
def test_server_garbles_replies_of_version_2(cell: Cell) -> None:
    """A Reply that is wrong, or a promise, costs the connection; the RPC is made again on the next, and no byte is
    wrong. Fragments that do not add up or are too many, chunks that nobody offered, other XIDs, credits that go back or
    have no end."""
    cell.load_modules()
    with responding(cell, f"garbles-2 {' '.join(map(str, range(FAULTS)))}"), cell.mounted(mounting(cell, SMALL)):
        with cell.load():
            cell.await_connects(1 + len(range(FAULTS)), LONG_SECONDS)
        cell.written("some", SIZES, "--direct")
        must_speak(cell, *[[2]] * (1 + len(range(FAULTS))))
        count = len([line for line in said(cell) if line.startswith("garbled: ")])
        if count != len(range(FAULTS)) or cell.connects() != 1 + count:
            raise progress.Failure(f"{count} Replies were garbled, {cell.connects()} connections made")


@provokes(HOSTILE, *(dataclasses.replace(each, most=10_000) for each in (BAD, NOT_RESPONDING)))
def test_server_sends_mutated_messages(cell: Cell, count: int) -> None:
    """So many messages with something wrong, and now and then a Reply, cost connections and RPCs at most, and a few
    lines a minute; all that the client's device had made for them goes, and a mount of another server has its files.
    100,000, or few in a check."""
    cell.load_modules()
    cell.settled()
    with left_alone(cell, cell.client), responding(cell, f"mutates-2 {count}"), \
            cell.mounted(mounting(cell, SMALL, HASTY), prepare=IN_FILE):
        with _mounted_beside(cell):
            deadline = cell.guests.clock.now() + MUTATED_SECONDS
            while not int(cell.server(ALL_SENT)) and cell.guests.clock.now() < deadline:
                cell.client(TRIES.format(TRIES_AT_ONCE), LONG_SECONDS)
        # From now on all is well.
        cell.written("some", SIZES, "--direct")
        lines, connects = said(cell), cell.connects()
        progress.line(f"  {connects} connections, {lines.count('spoilt a Reply')} Replies with something wrong")
        if "all was sent" not in lines:
            raise progress.Failure("not all was sent in time")


@contextlib.contextmanager
def _mounted_beside(cell: Cell) -> Iterator[None]:
    """Another mount for the length of a block, of the real server."""
    cell.client(f"mkdir -p {BESIDE} && {cell.mount_command().removesuffix('/mnt')}{BESIDE} && cp {BESIDE}/t/in /tmp/in", LONG_SECONDS)
    with progress.undoing(lambda: cell.client(f"umount -f {BESIDE}", LONG_SECONDS)):
        yield
