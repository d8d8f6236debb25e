"""drgn: what each request waits for, where the machine runs, in a dump of it, and where there is nothing to tell."""

import re

import progress
from guests import system as guest_system
from observed import IN_TREE_ALONE, OURS_ALONE, Observed
from observers.machine import INSTALLED
from test_status_command import status_of

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


@OURS_ALONE
def test_what_waits_for_credits_and_replies(observed: Observed) -> None:
    """The list while the server cannot write, as the kernel lists RPCs itself, and as the other end has them. XIDs are
    those of the kernel's debugfs, those that were sent are those that the server has, and credits and regions in use
    are as many."""
    observed.system.must(STALL)
    observed.system.must(STALLED)
    text, tasks = observed.system.must(LIVE), observed.system.must(TASKS)
    (observed.directory / "drgn").write_text(text)
    client, _, server = text.partition("\nserver of ")
    sent = _xids(client, "waits for the Reply")
    waiting = _xids(client, "waits for a credit")
    said = {f"0x{int(xid, 16):08x}" for xid in re.findall(r" 0x[0-9a-f]+ 0x([0-9a-f]+) ", tasks)}
    _same("RPCs", sent | waiting, said)
    _same("RPCs that the server has", sent, _xids(server, "is being executed"))
    client_status = status_of(observed.system)[0]
    if client_status["outstanding"] != len(sent) or sum(client_status["waiting"].values()) != len(said):
        raise progress.Failure(f"rpcrdma-status has {client_status}, and {len(said)} RPCs there are, of which {len(sent)} were sent")
    in_use = int(_one(r"(\d+) in use", client))
    regions = int(_one(r"regions: (\d+) of", client))
    if not (len(sent) == in_use == regions and waiting):
        raise progress.Failure(f"{len(sent)} were sent, {in_use} credits and {regions} regions are in use, {len(waiting)} wait")
    observed.stalled = text


@OURS_ALONE
def test_the_same_in_a_dump(observed: Observed) -> None:
    """A dump tells the same as the machine did. It is read outside of the machine."""
    dump = observed.system.dump("dump")
    root = guest_system.root(INSTALLED)
    said = root.output(["sh", "-c", SCRIPT.format(f"-c {dump} ", place=observed.system.share)], observed.system.directory)
    if said != observed.stalled:
        raise progress.Failure(f"the dump tells:\n{said}")
    dump.unlink()


@OURS_ALONE
def test_nothing_waits_when_all_is_done(observed: Observed) -> None:
    """Nothing, when all is done. No RPC, credit or region is in use then."""
    observed.system.must(GO_ON)
    text = observed.system.must(LIVE)
    (observed.directory / "drgn-idle").write_text(text)
    if _xids(text, "") or "regions: 0 of" not in text or " 0 in use" not in text:
        raise progress.Failure(f"when all is done there is:\n{text}")


@OURS_ALONE
def test_what_waits_for_a_connection(observed: Observed) -> None:
    """What waits for a connection. There is no connection to tell of, and it says what the RPC waits for."""
    observed.system.must(ALONE)
    text = observed.system.must(LIVE)
    (observed.directory / "drgn-alone").write_text(text)
    if "no connection" not in text or not _xids(text, "waits for a connection") or "server of" in text:
        raise progress.Failure(f"without a server there is:\n{text}")


@IN_TREE_ALONE
def test_drgn_of_the_in_tree_module(observed: Observed) -> None:
    """It says that there is nothing to tell."""
    result = observed.system.run(LIVE)
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
