"""Our responder on raw verbs as a server that calls the client back, which takes a session (tools/responder)."""

import re
from collections import Counter

import pytest

import progress
from guests.cell import FEW_SIZES, LONG_SECONDS, Cell
from judges.messages import Expected
from plan import long, provokes
from provoked import NOT_RESPONDING
from test_responder import BAD, LOST, SMALL, mounting, responding

# The kinds of Calls that are refused, and the error if it is not ERR_CHUNK.
KINDS, OTHER_ERRORS = 13, {"another version": 1}
# More Calls of the server than the client keeps.
FLOOD = 40
# Calls of the server that are cut off.
CUT_CALLS = 2
# How often a server that withholds Replies does so, at least.
WITHHELD = 2
ANSWERED_SECONDS = 90
# Calls of a server that makes so many at a time, and waits for the answers, and how many are answered at least.
IN_TURN, LEAST_ANSWERED = 4, 12
# The RPC layer of the client says so.
UNSENT = Expected(10, re.compile(r"RPC: Could not send backchannel reply error: -\d+"), "Replies of a lost connection")


@provokes(BAD)
def test_server_calls_back_with_chunks(cell: Cell) -> None:
    """Calls of the server that have chunks are answered with ERR_CHUNK (RFC 8167, section 5.3), those of another
    version with ERR_VERS, and nothing more; the client's own Calls under the same XIDs are not touched. Each kind of
    chunk, very many, and malformed Read lists; what does not tell that it is a Call, under XIDs of none."""
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


@pytest.mark.parametrize(("behaviour", "most", "least"), [
    pytest.param("calls-alike", 1, 1, id="under-the-same-xids"),
    pytest.param(f"calls-in-turn {IN_TURN}", IN_TURN, LEAST_ANSWERED, id="in-turn", marks=long)])
def test_server_calls_back(cell: Cell, behaviour: str, most: int, least: int) -> None:
    """The Calls of a server are answered, `least` of them, on one connection; `most` may be under way at the end."""
    cell.load_modules()
    with responding(cell, behaviour), cell.mounted(mounting(cell, SMALL)):
        cell.written("some", FEW_SIZES, "--direct")
        cell.still_works()
        lines = Counter(cell.server("cat /tmp/responder").splitlines())
        called, answered = lines["called NULL"], lines["answered NULL"]
        if answered < least or called - answered > most or cell.connects() != 1:
            raise progress.Failure(f"{called} Calls, {answered} answered, {cell.connects()} connections")


@pytest.mark.parametrize(("behaviour", "reconnects"), [
    pytest.param("withholds", False, id="until-it-is-answered"),
    pytest.param("withholds-first", True, id="the-first-until-it-is-answered", marks=provokes(LOST, NOT_RESPONDING))])
def test_server_withholds_replies(cell: Cell, behaviour: str, reconnects: bool) -> None:
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


@provokes(LOST, NOT_RESPONDING)
def test_server_whose_call_is_dropped(cell: Cell) -> None:
    """A Call of the server that the callback service drops costs the connection, since there is no Reply (RFC 8166, section
    4.5.4); the mount goes on."""
    cell.load_modules()
    with responding(cell, f"cuts-calls-off {CUT_CALLS}"), cell.mounted(mounting(cell, SMALL)):
        cell.written("some", FEW_SIZES, "--direct")
        cell.still_works()
        called, connects = int(cell.server("grep -c called /tmp/responder; true")), cell.connects()
        if called != CUT_CALLS or connects != 1 + CUT_CALLS:
            raise progress.Failure(f"{called} Calls were cut off, {connects} connections made")


@long
@provokes(LOST, UNSENT, NOT_RESPONDING)
def test_server_calls_back_too_often(cell: Cell) -> None:
    """More Calls at once than can be kept cost the server its connection; the mount goes on. 40 at once."""
    cell.load_modules()
    with responding(cell, f"floods {FLOOD}"), cell.mounted(mounting(cell, SMALL)):
        cell.written("some", FEW_SIZES, "--direct")
        cell.still_works()
        if cell.connects() == 1:
            raise progress.Failure("the connection was kept")
