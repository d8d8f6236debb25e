"""Our requester on raw verbs (tools/requester) against a server: `make requester`, and a part of `make check-mount`."""

import functools
import re
import time

import kernels
import module
import pair
import say
import settings
from messages import Expected
from mount_tests import Cell, Test

# The program's own words for its parts, and the messages that they provoke.
QUIET = ("Read lists", "Write lists", "Reply chunks", "errors")
LOUD = "connections"
LOST = Expected(60, re.compile(r"rpcrdma: (connection from \S+ lost: .*|\d+ callbacks suppressed)"),
                "the requester breaks connections")
REFUSED = Expected(30, re.compile(r"rxe0: qp#\d+ make_send_cqe: non-flush error status = \d+"), LOST.reason)
# The requester's own adapter refuses what the server was told to do.
TERMINATED = Expected(60, re.compile(r"siw: got TERMINATE\. layer [012], type \d, code \d+"), "a key that is none")
# siw says so, and not that it was flushed, of what the server had posted when a client said good-bye.
LEFT = Expected(8, re.compile(r"rpcrdma: connection from \S+ lost: local QP operation error"), "a client leaves")
SECONDS = 180
# The longest READ and WRITE of nfsd follow from it.
MEMORY = "1500M"


def run() -> int:
    """All parts against one server, ours or the in-tree one; of the latter, the known differences are expected."""
    device = settings.choice("DEVICE", ("rxe", "siw"))
    whose = settings.choice("SERVER", (pair.OURS, pair.IN_TREE))
    kernel = kernels.by_name(settings.choice("KERNEL", ("stock", "debug")))
    server = pair.End(kernel, module.build(kernel) if whose == pair.OURS else None, MEMORY)
    client = pair.End(kernels.stock(), module.build(kernels.stock()), MEMORY)
    failed = 0
    with pair.running(pair.Setup("requester", server, client)) as guests:
        with say.step(f"setting up {device}, nfsd and the modules (server: {whose})"):
            guests.load(device, whose, pair.OURS)
        cell = Cell(guests, device, None, whose, pair.OURS)
        for test in TESTS:
            began = time.monotonic()
            try:
                test.function(cell)
            except say.Failure as failure:
                say.line(f"FAILED {test.name}: {failure.what}")
                failed += 1
            # What the in-tree server makes its kernel say is shown, but is no mistake of ours.
            troubles = guests.tell_troubles(test.provokes)
            failed += troubles if whose == pair.OURS else 0
            say.line(f"{test.name}: {say.duration(time.monotonic() - began)}")
    say.line("FAILED" if failed else "PASS")
    return 1 if failed else 0


def part(name: str, cell: Cell) -> None:
    """One part of the program, case by case."""
    command = f"python3 -B /lab/requester 192.0.2.1 {cell.server_module} '{name}' 2>&1"
    result = cell.guests.client.run(command, SECONDS)
    lines = result.out.splitlines()
    for line in lines:
        say.line(f"  {line}")
    failed = [line for line in lines if line.startswith("FAILED ")]
    if failed or result.status != 0:
        why = failed[0].removeprefix("FAILED ") if failed else f"ended with status {result.status}"
        more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
        raise say.Failure(f"{why}{more}")


TESTS = [Test(name, functools.partial(part, name), (LOST, REFUSED, TERMINATED) if name == LOUD else (LEFT,))
         for name in (*QUIET, LOUD)]
