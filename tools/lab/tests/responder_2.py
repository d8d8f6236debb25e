"""Our responder on raw verbs (tools/responder), which speaks version 2 with the referee's ends, against a client that may."""

import contextlib
import dataclasses
import functools
import re
from collections import Counter
from collections.abc import Iterator, Sequence

import progress
from guests.cell import FEW_SIZES, LONG_SECONDS, OTHER_PORT, Cell, Test
from judges.messages import Expected
from tests import acl as acl_tests, version
from tests.keep_alive import KEEPALIVE, KEEPALIVE_SECONDS
from tests.mount import NOT_RESPONDING
from tests.requester import left_alone
from tests.responder import ANSWERED_SECONDS, BAD, BAD_MESSAGES, HASTY, LARGE, LOST, SMALL, mounting, responding, switch

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
# The same for Calls of the server.
CALLS = {"NULL": "answered", "NULL in fragments": "answered", "NULL in ten messages": "answered",
         "NULL in small fragments": "answered", "Read chunk": "refused 6 0", "Call chunk": "refused 6 0", "Read chunk and Reply chunk": "refused 6 0", "Write chunk": "refused 7 0",
         "empty Write chunk": "refused 7 0", "Reply chunk": "refused 7 0", "two XIDs": "refused 2",
         "Reply in a Call": "refused 2", "half a word": "refused 2", "a handle of nothing": "refused 2",
         "unknown type": "refused 4", "nothing remains": "refused 5", "too much remains": "refused 5",
         "an end too early": "refused 5"}
# The callback service gets what time a busy process leaves.
IDLE_SERVICE = "for task in $(pgrep NFSv4); do chrt --idle --pid 0 $task; done; pgrep NFSv4"
BUSY = "{ setsid timeout 300 sh -c 'while :; do :; done' > /dev/null 2>&1 < /dev/null & }; echo $!"
REFUSED_AT_ONCE = "refused 100 NULL at once"
# The kind of those that have as many messages as one may have: one of them with each Reply.
IN_TEN, LOOKS, HELD_SECONDS = "2 1 1", 200, 60
# Buffers of a connection beside one for each slot to send and to receive; of these, what a Call may have in place of each (user
# guide); and how many more there are when Calls are held.
SENDS_BESIDE, RECEIVES_BESIDE, MESSAGES_OF_ONE, LEAST_HELD = 28, 33, 10, 80
# Pieces of memory of the size of a buffer.
BUFFERS = "awk '/^kmalloc-8k / {print $2}' /proc/slabinfo"
# How many faults tools/responder/faults_2.py has.
FAULTS = 13
# Messages with something wrong, in a check and otherwise; what the client does meanwhile, whatever comes of it, and for how long.
FEW_MUTATED, MUTATED, MUTATED_SECONDS, TRIES_AT_ONCE = 2000, 100_000, 7200, 10
ALL_SENT = "grep -c 'all was sent' /tmp/responder || true"
BESIDE, IN_FILE = "/beside", "head -c 200000 /dev/urandom > in"
# Many RPCs at once, so that there are buffers for the answers.
TRIES = ("for try in $(seq {0}); do {{ ls -l /mnt/t > /dev/null; cat /mnt/t/in > /dev/null; dd if=/dev/zero of=/mnt/t/out bs=200k count=1; "
         f"}}}} 2> /dev/null; echo 3 > /proc/sys/vm/drop_caches; cmp {BESIDE}/t/in /tmp/in || exit 1; done")
# The versions in which a client comes to version 1 over another connection.
AGAIN = [[2], [1]]


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


def honest(size: int, cell: Cell) -> None:
    """Files are right over one connection of version 2, and the referee finds nothing wrong in a capture of it."""
    cell.load_modules()
    with responding(cell, "honest-2"), cell.captured(), cell.mounted(mounting(cell, size)):
        cell.written("some", FEW_SIZES, "--direct")
        must_be_one(cell)


def fallen_back(behaviour: str, first: list[list[int]], after: int, cell: Cell) -> None:
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


def promised_nothing(cell: Cell) -> None:
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


def small(behaviour: str, kinds: Sequence[str], size: int, entries: Sequence[int], cell: Cell) -> None:
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


def erring(codes: list[int], times: int, cell: Cell) -> None:
    """Each error is the end of its RPC, after the Call has come so often, and of nothing else."""
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


def takes_few(limits: str, code: int, size: int, cell: Cell) -> None:
    """A Call that is refused for its chunks comes once more within what the error says, as do all after it (sections 7.3.1
    to 7.3.3)."""
    cell.load_modules()
    with responding(cell, f"takes-few {limits}"), cell.mounted(mounting(cell, size)):
        cell.written("some", FEW_SIZES, "--direct")
        # What is continued in place of a chunk waits for credits where many want some.
        cell.client(f"/lab/files.py workers /mnt/t/workers {TOGETHER}", LONG_SECONDS)
        must_speak(cell, [2])
        refused = Counter(line for line in said(cell) if line.startswith("refused "))
        # Those that were under way when the first error came.
        if list(refused) != [f"refused {code}"] or refused.total() > MOST_REFUSED or cell.connects() != 1:
            raise progress.Failure(f"refused: {dict(refused)}; {cell.connects()} connections were made")


def in_no_way(cell: Cell) -> None:
    """A Call of as many messages as the server ever takes leaves no credit for another: it does not wait for that in front of
    all others, but fails where the server takes no chunk either (section 5.4.2 of the binding)."""
    cell.load_modules()
    with responding(cell, f"takes-few 0 16 16 {IN_FOUR[0]}"), cell.mounted(mounting(cell, IN_FOUR[1])):
        cell.client(f"! dd if=/dev/zero of=/mnt/t/a bs={IN_FOUR[1]} count=1 oflag=direct 2> /tmp/dd && "
                    "grep -q 'Input/output error' /tmp/dd", LONG_SECONDS)
        cell.written("some", EVEN_FEWER, "--direct")
        must_speak(cell, [2])


def without_room(cell: Cell) -> None:
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


def borne(behaviour: str, cell: Cell) -> None:
    """What a server sends beside its Replies, or between their parts, costs nothing; what is to be answered is, with the error
    for that."""
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


def garbled(numbers: list[int], cell: Cell) -> None:
    """A Reply that is wrong, or a promise, costs the connection; the RPC is made again on the next, and no byte is wrong."""
    cell.load_modules()
    with responding(cell, f"garbles-2 {' '.join(map(str, numbers))}"), cell.mounted(mounting(cell, SMALL)):
        with cell.load():
            cell.await_connects(1 + len(numbers), LONG_SECONDS)
        cell.written("some", SIZES, "--direct")
        must_speak(cell, *[[2]] * (1 + len(numbers)))
        count = len([line for line in said(cell) if line.startswith("garbled: ")])
        if count != len(numbers) or cell.connects() != 1 + count:
            raise progress.Failure(f"{count} Replies were garbled, {cell.connects()} connections made")


def mutated(count: int, cell: Cell) -> None:
    """So many messages with something wrong, and now and then a Reply, cost connections and RPCs at most, and a few lines a minute; all
    that the client's device had made for them goes, and a mount of another server has its files."""
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


def called_back(cell: Cell) -> None:
    """Calls of the server are answered, also in fragments; those with chunks, and those that are wrong, are refused with the
    error for that (sections 4.6.4 and 7)."""
    cell.load_modules()
    with responding(cell, "calls-back-2"), cell.mounted(mounting(cell, SMALL)):
        cell.written("some", FEW_SIZES, "--direct")
        deadline = cell.guests.clock.now() + ANSWERED_SECONDS
        while (wrong := unanswered(said(cell), CALLS)) and cell.guests.clock.now() < deadline:
            cell.written("more", FEW_SIZES, "--direct")
        if wrong or cell.connects() != 1:
            raise progress.Failure("; ".join([*wrong, f"{cell.connects()} connections were made"]))


def called_at_once(cell: Cell) -> None:
    """More Calls of the server than are kept, each within its credits, cost no connection: some are refused (section 7.4.1),
    since the service gets no time of the processor."""
    cell.load_modules()
    with responding(cell, "calls-back-at-once"), cell.mounted(mounting(cell, SMALL)):
        cell.client(IDLE_SERVICE)
        busy = cell.client(BUSY).strip()
        with progress.undoing(lambda: cell.client(f"kill {busy} || true")):
            deadline = cell.guests.clock.now() + ANSWERED_SECONDS
            while REFUSED_AT_ONCE not in said(cell):
                if cell.guests.clock.now() > deadline:
                    raise progress.Failure("no Call is refused")
                cell.written("some", FEW_SIZES, "--direct")
        _must_stay(cell)


def held_calls(cell: Cell) -> None:
    """Calls in ten messages each that wait hold buffers of the client, but no more than the user guide says."""
    cell.load_modules()
    with responding(cell, f"calls-back-at-once {IN_TEN}"), cell.mounted(mounting(cell, SMALL), prepare=f"seq {LOOKS} | xargs touch"):
        slots, before = map(int, cell.client(f"cat /proc/sys/sunrpc/rdma_slot_table_entries; {BUFFERS}").split())
        cell.client("/lab/starved begin")
        with progress.undoing(lambda: cell.client("/lab/starved end")):
            # Receives in place of those that are held are made for each Call that is sent; Replies have to wait for them.
            looks = cell.guests.client.start(f"for n in $(seq {LOOKS}); do stat /mnt/t/$n > /dev/null & sleep 0.1; done; wait")
            made, deadline = 0, cell.guests.clock.now() + HELD_SECONDS
            while cell.guests.clock.now() < deadline:
                made = max(made, int(cell.client(BUFFERS)) - before)
        cell.guests.client.wait(looks, LONG_SECONDS, "the looks")
        _must_stay(cell)
    most = 2 * slots + SENDS_BESIDE + RECEIVES_BESIDE * (1 + MESSAGES_OF_ONE)
    progress.line(f"  {made} buffers were made, of {most}")
    if not LEAST_HELD < made <= most:
        raise progress.Failure(f"{made} buffers were made of which there may be {most}")


def _must_stay(cell: Cell) -> None:
    """Fail unless the one connection still works."""
    cell.still_works()
    if cell.connects() != 1:
        raise progress.Failure(f"{cell.connects()} connections were made")


def _falls_back(what: str, behaviour: str, first: list[list[int]], after: int) -> Test:
    return Test(f"a server that {what}", functools.partial(fallen_back, behaviour, first, after), (LOST, BAD, NOT_RESPONDING))


def _small(what: str, behaviour: str, kinds: Sequence[str] = (), size: int = SMALL, entries: Sequence[int] = ()) -> Test:
    return Test(f"a server with {what}", functools.partial(small, behaviour, kinds, size, entries))


FEW_SEGMENTS = [_small("small segments", "small 3 8192", (), LARGE), _small("few segments", "small 3 4096 4 2"),
                # So that no chunk has room for the longest ACL, nor have several messages.
                _small("few segments and small messages", "small 1 1024 2 1024 3 4096 4 2", ["CALL_MIDDLE"], entries=[CUT]),
                _small("one segment", "small 4 1", (), LARGE)]
ERRS = Test("a server that errs in version 2", functools.partial(erring, ENDS, 1))
ERRS_AGAIN = Test("a server that errs again in version 2", functools.partial(erring, RETRIED, 2))
ERRS_UNKNOWN = Test("a server that errs with a code that nobody knows", functools.partial(borne, "errs-unknown"), (BAD,))
TAKES_FEW = [Test("a server that takes no Read chunks", functools.partial(takes_few, "0 16 16", 6, SMALL)),
             Test("a server that takes no Write chunks", functools.partial(takes_few, "16 0 16", 7, SMALL)),
             Test("a server that takes no segments", functools.partial(takes_few, "16 16 0", 8, SMALL)),
             Test("a server that takes neither Read chunks nor many messages", in_no_way)]
# None of them by a mistake of the client's own.
HOSTILE = Expected(10_000, re.compile(r"rpcrdma: (connection to \S+ lost: (?!local (length|protection|access)|bad ).*|"
                                      r"\d+ lines about \S+ were left out)"), "the server breaks the protocol")
NO_ROOM = Test("a server that has no room for Replies of version 2", without_room)
MUTATES, MUTATES_MUCH = (Test(f"a server that sends {count} mutated messages", functools.partial(mutated, count),
                              (HOSTILE, *(dataclasses.replace(each, most=10_000) for each in (BAD, NOT_RESPONDING))))
                         for count in (FEW_MUTATED, MUTATED))
# For every check.
QUICK = [MUTATES,
         Test("a server that uses Write chunks in version 2", functools.partial(honest, LARGE)),
         _falls_back("hangs up on version 2", "hangs-up-2", AGAIN, 1),
         _small("small messages", "small 1 1024 2 1024", ["CALL_MIDDLE"], entries=[CUT]),
         ERRS,
         Test("a server that says something between fragments", functools.partial(borne, "splits-2"), (BAD,))]
TESTS = [Test("a server that makes no mistake in version 2", functools.partial(honest, SMALL)),
         *(test for test in QUICK if test != MUTATES), MUTATES_MUCH, *FEW_SEGMENTS, *TAKES_FEW, ERRS_AGAIN, ERRS_UNKNOWN,
         Test("a server that promises nothing for a while", promised_nothing),
         # A Call in fragments would wait for ever.
         _small("small messages and few credits", "promises-few 2 1 1024 2 1024", ["CALL_EXTERNAL"], entries=[CUT]),
         _small("support for any reverse Call", "small 5 3"),
         NO_ROOM,
         Test("a server that floods in version 2", functools.partial(borne, "floods-2"), (BAD,)),
         Test("a server that babbles in version 2", functools.partial(borne, "babbles-2"), (BAD,)),
         Test("a server that garbles Replies of version 2", functools.partial(garbled, list(range(FAULTS))),
              (LOST, BAD, NOT_RESPONDING)),
         _falls_back("says nothing to version 2", "ignores-2", AGAIN, 1),
         _falls_back("does not know version 2", "errs-version-2 1 1", [[2, 1]], 2),
         _falls_back("speaks versions that nobody knows", "errs-version-2 3 4", AGAIN, 1),
         _falls_back("answers version 2 with too little", "answers-otherwise 0", AGAIN, 1),
         _falls_back("answers version 2 with a Reply of version 1", "answers-otherwise 1", AGAIN, 1),
         _falls_back("answers version 2 with version 3", "answers-otherwise 2", AGAIN, 1),
         _falls_back("answers version 2 with an unknown header type", "answers-oddly 0", [[2]], 2),
         _falls_back("answers version 2 with a Reply of version 2", "answers-oddly 1", [[2]], 2),
         _falls_back("answers version 2 with RDMA2_GRANT", "answers-oddly 2", [[2]], 2)]
# With a session, over which the server may call.
QUICK_SESSIONS = [Test("a server that calls back in version 2", called_back, (BAD,)), NO_ROOM]
SESSIONS = [*QUICK_SESSIONS, Test("a server that calls back at once", called_at_once, (BAD,))]
# Wants a client's kernel that has groups for the processor, which is the stock one.
HELD = Test("a server that calls back at length", held_calls, (BAD,))
