"""A server that has a key come to be invalid before it is valid, over iWARP: the client posts more than its device can send."""

import progress
import test_payload as payload_tests
from guests.cell import LONG_SECONDS, Cell
from guests.pair import OURS
from plan import provokes
from provoked import MOVED, NOT_RESPONDING
from test_responder import LOST, mounted_behind

# The lengths of a READ and of a WRITE, and how often the responder wants both beside each other. Nothing else is to be asked.
FILES, TIMES, OPTIONS = "head -c 65536 /dev/urandom > a; head -c 1048576 /dev/zero > b", 3, ",wsize=1048576,actimeo=600"


@provokes(LOST, NOT_RESPONDING, MOVED)
def test_server_forges_a_key(cell: Cell) -> None:
    """The memory of a READ that seems to be answered, with a key that seems to be invalid, is given back only when the
    server cannot reach it any more; the in-tree client gives it back at once. Of the in-tree client that is known from
    its source; with CLIENT=c it has not been seen to fail."""
    cell.load_modules()
    with payload_tests.largest_payloads(cell), mounted_behind(cell, "forges", FILES, OPTIONS):
        found = cell.client(f"/lab/overlapping.py /mnt/t/a /mnt/t/b {TIMES}", LONG_SECONDS).strip()
        said = cell.server("cat /tmp/responder").splitlines()
        missed = [line for line in said if line.startswith("missed")]
        if "written" not in said or missed:
            raise progress.Failure(missed[0] if missed else "the server has not written into the memory of a READ")
        if (found == "kept") != (cell.client_module == OURS):
            raise progress.Failure(f"memory that was given back is {found}")
