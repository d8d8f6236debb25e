"""Our responder on raw verbs as a server of version 2 that calls the client back, which takes a session (tools/responder)."""

import progress
from guests.cell import FEW_SIZES, LONG_SECONDS, Cell
from plan import long, provokes
from test_calls_back import ANSWERED_SECONDS
from test_responder import BAD, SMALL, mounting, responding
from test_responder_2 import said, unanswered

# The same for Calls of the server.
CALLS = {"NULL": "answered", "NULL in fragments": "answered", "NULL in ten messages": "answered",
         "NULL in small fragments": "answered", "Read chunk": "refused 6 0", "Call chunk": "refused 6 0",
         "Read chunk and Reply chunk": "refused 6 0",
         "Write chunk": "refused 7 0",
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


@provokes(BAD)
def test_server_calls_back_in_version_2(cell: Cell) -> None:
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


@long
@provokes(BAD)
def test_server_calls_back_at_once(cell: Cell) -> None:
    """More Calls of the server than are kept, each within its credits, cost no connection: some are refused (section
    7.4.1), since the service gets no time of the processor. Some are refused, and the connection is kept."""
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


@long
@provokes(BAD)
def test_server_calls_back_at_length(cell: Cell) -> None:
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
