"""drgn: what each request waits for, where the machine runs, in a dump of it, and where there is nothing to tell."""

import functools
import re
from pathlib import Path

import progress
from guests import roots, system as guest_system
from guests.pair import OURS
from guests.system import System
from observers import status
from observers.machine import INSTALLED
from results import Results

SCRIPT = "drgn -q --no-default-symbols {}{place}/rpcrdma.py {place}/rpcrdma.ko"
LIVE = SCRIPT.format("", place="/lab")
# More than there are credits at first, and each with a region.
WRITERS = 18
# What has to be written waits for the server's file system. RPCs wait for a minute before they are sent again.
STALL = f"""cd /mnt && for n in $(seq {WRITERS}); do truncate -s 64K stuck-$n; done && sync && fsfreeze -f /srv &&
for n in $(seq {WRITERS}); do
	setsid dd if=/dev/zero of=stuck-$n bs=64k count=1 oflag=direct conv=notrunc > /dev/null 2>&1 < /dev/null &
done"""
TASKS = "cat /sys/kernel/debug/sunrpc/rpc_clnt/*/tasks"
STALLED = f"for try in $(seq 100); do test $({TASKS} | grep -c ' 0x') -ge {WRITERS} && exit; sleep 0.2; done; exit 1"
GO_ON = "fsfreeze -u /srv && while pgrep -x dd > /dev/null; do sleep 0.2; done"
# The server ends its connections and takes no others, and who asks has to wait.
ALONE = f"""echo 0 > /proc/fs/nfsd/threads; setsid stat -f /mnt > /dev/null 2>&1 < /dev/null &
for try in $(seq 100); do {TASKS} | grep -q ' 0x' && exit; sleep 0.2; done; exit 1"""
XID = re.compile(r"xid (0x[0-9a-f]{8})")


def check(results: Results, system: System, whose: str, directory: Path) -> None:
    """All of it, on a machine with a mount."""
    if whose != OURS:
        results.test("drgn, with the in-tree module: says that there is nothing to tell", lambda: _refuses(system))
        return
    listed: list[str] = []
    results.test("drgn: what waits for credits and Replies", lambda: listed.append(_stalled(system, directory)))
    if listed:
        results.test("drgn: the same in a dump", functools.partial(_in_dump, system, listed[0]))
    results.test("drgn: nothing, when all is done", lambda: _idle(system, directory))
    results.test("drgn: what waits for a connection", lambda: _alone(system, directory))


def _stalled(system: System, directory: Path) -> str:
    """The list while the server cannot write, as the kernel lists RPCs itself, and as the other end has them."""
    system.must(STALL)
    system.must(STALLED)
    text, tasks = system.must(LIVE), system.must(TASKS)
    (directory / "drgn").write_text(text)
    client, _, server = text.partition("\nserver of ")
    sent = _xids(client, "waits for the Reply")
    waiting = _xids(client, "waits for a credit")
    said = {f"0x{int(xid, 16):08x}" for xid in re.findall(r" 0x[0-9a-f]+ 0x([0-9a-f]+) ", tasks)}
    _same("RPCs", sent | waiting, said)
    _same("RPCs that the server has", sent, _xids(server, "is being executed"))
    client_status = status.of(system)[0]
    if client_status["outstanding"] != len(sent) or sum(client_status["waiting"].values()) != len(said):
        raise progress.Failure(f"rpcrdma-status has {client_status}, and {len(said)} RPCs there are, of which {len(sent)} were sent")
    in_use = int(_one(r"(\d+) in use", client))
    regions = int(_one(r"regions: (\d+) of", client))
    if not (len(sent) == in_use == regions and waiting):
        raise progress.Failure(f"{len(sent)} were sent, {in_use} credits and {regions} regions are in use, {len(waiting)} wait")
    return text


def _in_dump(system: System, live: str) -> None:
    """A dump tells the same as the machine did."""
    dump = system.dump("dump")
    root = guest_system.root(INSTALLED)
    said = root.output(["sh", "-c", SCRIPT.format(f"-c {dump} ", place=system.share)], system.directory)
    if said != live:
        raise progress.Failure(f"the dump tells:\n{said}")
    dump.unlink()


def _idle(system: System, directory: Path) -> None:
    system.must(GO_ON)
    text = system.must(LIVE)
    (directory / "drgn-idle").write_text(text)
    if _xids(text, "") or "regions: 0 of" not in text or " 0 in use" not in text:
        raise progress.Failure(f"when all is done there is:\n{text}")


def _alone(system: System, directory: Path) -> None:
    system.must(ALONE)
    text = system.must(LIVE)
    (directory / "drgn-alone").write_text(text)
    if "no connection" not in text or not _xids(text, "waits for a connection") or "server of" in text:
        raise progress.Failure(f"without a server there is:\n{text}")


def _refuses(system: System) -> None:
    result = system.run(LIVE)
    if result.status != 1 or "is not that of" not in result.err:
        raise progress.Failure(f"status {result.status}: {result.err.strip()}")


def _xids(text: str, what: str) -> set[str]:
    """The XIDs of lines that say that."""
    return {found[1] for line in text.splitlines() if what in line and (found := XID.search(line))}


def _one(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    if found is None:
        raise progress.Failure(f"nothing like {pattern} in:\n{text}")
    return found[1]


def _same(what: str, listed: set[str], wanted: set[str]) -> None:
    if listed != wanted:
        raise progress.Failure(f"{what}: {sorted(listed - wanted)} too many, {sorted(wanted - listed)} too few")
