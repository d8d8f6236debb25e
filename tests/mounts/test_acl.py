"""The tests of ACLs that are longer than the client guesses (Documentation/short-reply-chunk.rst)."""

from dataclasses import dataclass

import progress
from guests.cell import Cell
from guests.pair import OURS

# How many bytes READs ask for, and so the client's guess when it is asked for the length of an ACL alone.
GUESS = 4096
# The longest attribute that getxattr(2) takes, and so the client's guess when it asks again.
LONGEST = 65536
# Of 20 bytes each: more than the first guess has room for, and more than the second.
LONG, TOO_LONG = 2000, 4000
ENTRY_BYTES = 20
FIRST_USER = 1001
# How the length of an ACL is written below.
LENGTH = "its length"
# RPCs, and how often they were sent.
CALLS = "awk '$1 == \"GETACL:\" {print $2, $3}' /proc/self/mountstats"


@dataclass(frozen=True)
class Step:
    """What is asked for, with how much room, how that ends, and after how many Calls."""

    file: str
    size: int
    end: str
    calls: int


def set_acl(entries: int) -> str:
    """The command that gives so many users a right to a file, whose name is to follow."""
    return f"setfacl -m $(seq -f 'u:%g:rwx' -s , {FIRST_USER} {FIRST_USER + entries - 1})"


def asks_again(cell: Cell) -> bool:
    """Whether the client does: our kernels are patched, Debian's is not, and the in-tree module knows nothing of it."""
    patched = cell.guests.client.kernel.flavour != "stock"
    return patched and cell.client_module == OURS and cell.version == "4.0"


def pulls(cell: Cell) -> bool:
    """Whether the client pulls what its chunk has no room for (Documentation/reliable-reply.rst)."""
    return cell.client_module == OURS and cell.server_module == OURS


def test_acl_longer_than_guessed(cell: Cell) -> None:
    """A Reply that is longer than the client has guessed is pulled where both ends can do that. Elsewhere, who guessed
    too little asks once more where it can, and never a third time; every other RPC just ends. Judged by the count of
    Calls: the length, ERANGE or the ACL after two at most; without the patch of the kernel, and with a session, EIO
    after one. Both ends of ours: one Call, whose Reply is pulled."""
    prepare = f"touch long too-long && {set_acl(LONG)} long && {set_acl(TOO_LONG)} too-long"
    with cell.mounted(cell.mount_command(option=f"proto=rdma,rsize={GUESS},wsize={GUESS}"), prepare=prepare):
        for step in _steps(cell):
            _take(cell, step)
        if asks_again(cell) or pulls(cell):
            # It asks for the length, and then for as much.
            count = int(cell.client("nfs4_getfacl /mnt/t/long | grep -c '^A::[1-9][0-9]*[:@]'"))
            if count != LONG:
                raise progress.Failure(f"the client sees {count} of {LONG} entries")
        cell.still_works()
        if cell.connects() != 1:
            raise progress.Failure(f"{cell.connects()} connections were made")


def _steps(cell: Cell) -> list[Step]:
    if pulls(cell):
        return [Step("long", 0, LENGTH, 1), Step("long", GUESS, "ERANGE", 1), Step("long", LONGEST, LENGTH, 1),
                Step("too-long", 0, LENGTH, 1)]
    if asks_again(cell):
        return [Step("long", 0, LENGTH, 2), Step("long", GUESS, "ERANGE", 2), Step("long", LONGEST, LENGTH, 1),
                Step("too-long", 0, "EIO", 2)]
    if cell.version == "4.0":
        return [Step("long", 0, "EIO", 1), Step("long", GUESS, "EIO", 1), Step("long", LONGEST, LENGTH, 1),
                Step("too-long", 0, "EIO", 1)]
    # After the first such error the session's slot has to be put in order, which may take Calls of its own.
    return [Step("long", GUESS, "EIO", 1)]


def _take(cell: Cell, step: Step) -> None:
    before = _calls(cell)
    end = cell.client(f"/lab/xattr.py /mnt/t/{step.file} system.nfs4_acl {step.size}").strip()
    calls = [now - then for now, then in zip(_calls(cell), before)]
    right = end.isdigit() and int(end) > LONG * ENTRY_BYTES if step.end == LENGTH else end == step.end
    if not right or calls != [step.calls, step.calls]:
        raise progress.Failure(f"{step.file} with {step.size} bytes: {end} after {calls[0]} RPCs, sent {calls[1]} times, and "
                          f"not {step.end} after {step.calls}")


def _calls(cell: Cell) -> list[int]:
    return [int(word) for word in cell.client(CALLS).split()]
