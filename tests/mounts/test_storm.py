"""The storm: everything that writes, reads, moves, deletes and locks at once, on one connection and on many, while
everything is broken that can be: connections, links, devices, nfsd, and the server's power. Nothing is lost."""

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import objects
import progress
import random
import test_callback as callback_tests
import test_client as client_tests
import test_client_life as client_life_tests
import test_life as life_tests
import test_loading as loading
import test_pull as pull_tests
from guests.cell import CONNECTS, GONE, LONG_SECONDS, SENDS, TRANSPORTS, Cell
from guests.machine import CLIENT
from judges.messages import Expected
from plan import Case, Test, provokes
from provoked import TERMINATED
from totals import TOTALS, Kind

VERSION = "4.2"
CONNECTIONS = (1, 4, 16)
# Everything is done once in any case; with less there would be little else.
LEAST_SECONDS = 300
# RPCs from one broken connection to the next.
INTERVAL = 300
# Between what is done to it the mount gets somewhere.
PEACE_SECONDS = 15
DOWN_SECONDS = 3
# Files that the server itself opens, so that it recalls those that are delegated.
TOUCHED = 20
RECALL, RECALL_DONE = "nfsd_cb_recall", "nfsd_cb_recall_done"
ANSWERED = re.compile(rf": {RECALL_DONE}: .*\bstatus=0\b")
# One that comes to nothing, because a connection was just broken, is made again, or not at all: nfsd forgets one for which it
# has no connection at the moment (Documentation/patches/nfsd).
ANSWER = (f"for try in $(seq 100); do grep -q '{RECALL_DONE}: .*status=0' {callback_tests.TRACE}/trace && exit 0; sleep 0.2; done; "
          "exit 0")
# Where nothing is delegated, after a loss of power, say, nothing is recalled; soon something is delegated again.
RECALL_TRIES = 8
# A server without power, and then the client's delay between attempts, may take longer than the kernel calls a hang.
HANG_SECONDS = 900
HANG = "/proc/sys/kernel/hung_task_timeout_secs"
# fio's own words for the ways to read and write.
WAYS = {"buffered": "bs=4k\\nioengine=psync\\nfsync=32\\nsize=4m",
        "direct": "bs=12k\\nioengine=psync\\ndirect=1\\nsize=3m",
        "large": "bs=256k\\nioengine=psync\\ndirect=1\\nsize=8m",
        "mapped": "bs=4k\\nioengine=mmap\\nfsync=32\\nsize=4m"}
GLOBAL = ("[global]\\ndirectory=/mnt/t/fio\\nrw=randwrite\\nverify=crc32c\\nverify_backlog=32\\nverify_fatal=1\\n"
          "fallocate=none\\nthread=1\\ntime_based=1\\nruntime={}\\n")
JOBS = "".join(f"[{name}]\\n{options}\\n" for name, options in WAYS.items())
PROCESSES = 4
SUMS = "(cd {0} && sha256sum *)"
# Lists directories until it is killed; says only what is wrong.
LISTER = "/lab/files.py load /mnt/t/lists 1"
# Each in a group; those that end leave their status behind.
START = ("mkdir -m 777 /mnt/t/fio && printf '{0}' > /tmp/storm.fio && rm -f /tmp/fio.status /tmp/tree.status && "
         "{{ setsid sh -c 'fio --output-format=json --output=/tmp/fio.json /tmp/storm.fio > /tmp/fio.out 2>&1; "
         "echo $? > /tmp/fio.status' < /dev/null > /dev/null 2>&1 & echo $! > /tmp/fio.pid; "
         "setsid sh -c '/lab/tree.py work /mnt/t/tree {1} {2} > /tmp/tree.json 2> /tmp/tree.err; "
         "echo $? > /tmp/tree.status' < /dev/null > /dev/null 2>&1 & echo $! > /tmp/tree.pid; "
         f"setsid {LISTER} < /dev/null > /dev/null 2> /tmp/lists.err & echo $! > /tmp/lists.pid; }}}}")
ENDED = ("for try in $(seq {0}); do test -s /tmp/fio.status -a -s /tmp/tree.status && exit 0; sleep 1; done; "
         "ps axl >&2; exit 1")
STATUS = "cat /tmp/{0}.status; test $(cat /tmp/{0}.status) = 0 || {{ cat {1} >&2; exit 1; }}"
END = f"read -r group < /tmp/{{}}.pid; kill -9 -$group 2> /dev/null; {GONE.format('$group')}"
BOOTED = Expected(1000, re.compile(r"RPC: Registered .* module\.|rpcrdma: version .*|Loading iSCSI .*|iwpm_register_pid: .*|"
                                   r"(rpcrdma|rdma_rxe|siw): (loading out-of-tree module|module verification failed).*"),
                  "modules are loaded after each boot")
DISK = Expected(100, re.compile(r"EXT4-fs \(vdb\): .*"), "the server's disk is mounted, after a loss of power too")
STORMY = (life_tests.LEFT, life_tests.DEVICE_GONE, life_tests.RESTARTED, life_tests.WAITED, client_life_tests.BROKEN,
          client_life_tests.AWAY, client_tests.LINK, TERMINATED, BOOTED, DISK)


@dataclass(frozen=True)
class Deed:
    """Something that is done to the mount."""

    name: str
    # Says how often it was done this time.
    do: Callable[[Cell, random.Random], int]
    # Whether it costs connections.
    breaks: bool = True


def _restart(cell: Cell, luck: random.Random) -> int:
    cell.server("rpc.nfsd 0 && /lab/nfs-server", LONG_SECONDS)
    return 1


def _link_down(cell: Cell, luck: random.Random) -> int:
    cell.client(f"ip link set eth0 down; sleep {luck.randrange(DOWN_SECONDS + 1)}; ip link set eth0 up && "
                f"ip addr replace {CLIENT.address6}/64 dev eth0 nodad")
    return 1


def _remove_clients(cell: Cell, luck: random.Random) -> int:
    way = f"{luck.choice(client_life_tests.WAYS)} {cell.device}"
    cell.client(f"/lab/removal go {way}", LONG_SECONDS)
    time.sleep(luck.randrange(DOWN_SECONDS + 1))
    cell.client(f"/lab/removal come {way}", LONG_SECONDS)
    TOTALS.add(Kind.REMOVALS, 1)
    return 1


def _remove_servers(cell: Cell, luck: random.Random) -> int:
    cell.server(f"rdma link delete {cell.device}0", LONG_SECONDS)
    time.sleep(luck.randrange(DOWN_SECONDS + 1))
    cell.server(f"/lab/rdma-device {cell.device}", LONG_SECONDS)
    TOTALS.add(Kind.REMOVALS, 1)
    return 1


def _power_off(cell: Cell, luck: random.Random) -> int:
    cell.guests.reboot_server()
    return 1


def _recall(cell: Cell, luck: random.Random) -> int:
    asked = answered = 0
    for _ in range(RECALL_TRIES):
        with callback_tests.recorded(cell, RECALL, RECALL_DONE) as lines:
            if int(cell.server(f"/lab/tree.py touch /export/t/tree {TOUCHED}", LONG_SECONDS)):
                cell.server(ANSWER)
        asked += sum(f": {RECALL}: " in line for line in lines)
        answered += sum(bool(ANSWERED.search(line)) for line in lines)
        if answered:
            break
        time.sleep(PEACE_SECONDS)
    progress.line(f"  {asked} recalls were sent, {answered} were answered")
    return answered


DEEDS = [Deed("restarts of nfsd", _restart), Deed("times the link was down", _link_down),
         Deed("removals of the client's device", _remove_clients),
         Deed("removals of the server's device", _remove_servers), Deed("losses of the server's power", _power_off),
         Deed("recalls of delegations answered", _recall, breaks=False)]


@provokes(*STORMY)
def test_storm(cell: Cell, connections: int, seconds: int) -> None:
    """One mount with so many connections, for so long at least: each thing is done to it once in any case. At rest the
    client has as many queue pairs, completion queues, protection domains and ids as before; no more regions than its
    slots may need, and none more in new connections. Now and then the server opens small files, and so recalls what it
    has delegated. It prints how many RPCs, connections and bytes there were, and how often each thing was done."""
    cell.load_modules()
    with (_patience(cell), cell.mounted(cell.mount_command(option=f"proto=rdma,nconnect={connections}"),
                                        prepare="mkdir -m 777 tree")):
        before = objects.at_rest(cell, connections)
        pull_tests.count_anew(cell)
        began = time.monotonic()
        with _work(cell, seconds) as verified:
            with cell.broken(cell.guests.client, INTERVAL):
                done = _do_all(cell, random.Random(connections), began + seconds)
            cell.client(ENDED.format(LONG_SECONDS), LONG_SECONDS + seconds)
        cell.still_works()
        pulls = pull_tests.counted(cell)[0]
        lines = [line.split() for line in cell.client(TRANSPORTS).splitlines()]
        seconds_taken = time.monotonic() - began
        objects.judge(cell, connections, before)
        objects.judge_anew(cell, connections, before)
    made, sent = (sum(int(words[column]) for words in lines) for column in (CONNECTS, SENDS))
    deeds = ", ".join(f"{count} {name}" for name, count in done.items())
    progress.line(f"  {progress.duration(seconds_taken)}: {sent} RPCs; {made} connections made, {made - len(lines)} "
             f"of them anew; {deeds}; {verified} bytes compared; {pulls} Replies pulled")
    # What was done to all of them at once explains so many; broken ones are beyond that.
    broken = sum(done[deed.name] for deed in DEEDS if deed.breaks)
    if len(lines) != connections or made - len(lines) <= connections * broken:
        raise progress.Failure(f"{len(lines)} transports made {made} connections")
    if pull_tests.can(cell) and not pulls:
        raise progress.Failure("no Reply was pulled")
    undone = [deed.name for deed in DEEDS if not done[deed.name]]
    if undone:
        raise progress.Failure(f"there were none of: {', '.join(undone)}")


def _do_all(cell: Cell, luck: random.Random, deadline: float) -> Counter[str]:
    """Everything in an order of luck, again and again; how often each was done."""
    done: Counter[str] = Counter()
    while not done or time.monotonic() < deadline:
        for deed in luck.sample(DEEDS, len(DEEDS)):
            done[deed.name] += deed.do(cell, luck)
            # What opens a file has a connection, and the client its state again: that has to be done before a server's
            # period of grace is over.
            cell.client("touch /mnt/t/opened && rm /mnt/t/opened", LONG_SECONDS)
            time.sleep(PEACE_SECONDS)
    return done


class Bytes:
    """How many were compared."""

    def __init__(self) -> None:
        self.count = 0

    def __str__(self) -> str:
        return str(self.count)


@contextmanager
def _work(cell: Cell, seconds: int) -> Iterator[Bytes]:
    """Programs that use the mount, for so long; at the end of the block all of them have to be done, and have found
    nothing wrong."""
    verified = Bytes()
    cell.client(START.format(GLOBAL.format(seconds) + JOBS, PROCESSES, seconds))
    # As a rule they have ended by themselves by then.
    with (progress.undoing(lambda: cell.client(END.format("fio"), LONG_SECONDS)),
          progress.undoing(lambda: cell.client(END.format("tree"), LONG_SECONDS)),
          progress.undoing(lambda: cell.client(END.format("lists"), LONG_SECONDS))):
        yield verified
        cell.client("test ! -s /tmp/lists.err || { cat /tmp/lists.err >&2; exit 1; }")
        cell.client(STATUS.format("fio", "/tmp/fio.out /tmp/fio.json"))
        cell.client(STATUS.format("tree", "/tmp/tree.err"))
    # What fio has compared may have come from the page cache.
    here = cell.client(f"{SUMS} && /lab/files.py forget && {SUMS}".format("/mnt/t/fio"), LONG_SECONDS).splitlines()
    there = cell.server(SUMS.format("/export/t/fio"), LONG_SECONDS).splitlines()
    if here != 2 * there or len(there) != len(WAYS):
        raise progress.Failure(f"fio's files are not the same at both ends: {here}, {there}")
    tree = json.loads(cell.client("cat /tmp/tree.json"))
    verified.count = judge(cell.client("cat /tmp/fio.json"), tree)
    TOTALS.add(Kind.BYTES, verified.count)
    names = cell.server("/lab/tree.py look /export/t/tree", LONG_SECONDS).strip()
    if names != tree["names"]:
        raise progress.Failure("the server has other files than the client left")
    progress.line(f"  {tree['operations']} operations on small files, {tree['counted']} times under a lock; "
             f"{tree.get('repeated', 0)} had been done already")


def judge(fio: str, tree: dict) -> int:
    """Bytes compared; a Failure unless every way of reading and writing did, without error."""
    jobs = json.loads(fio[fio.index("{"):])["jobs"]
    amounts = {job["jobname"]: job["read"]["io_bytes"] for job in jobs}
    wrong = [job["jobname"] for job in jobs if job["error"]]
    idle = [name for name in WAYS if not amounts.get(name)]
    if wrong or idle:
        raise progress.Failure(f"with errors: {' '.join(wrong) or 'none'}; compared nothing: {' '.join(idle) or 'none'}")
    if not tree.get("bytes") or not tree.get("counted"):
        raise progress.Failure("no small file was compared, or no lock taken")
    return sum(amounts.values()) + tree["bytes"]


@contextmanager
def _patience(cell: Cell) -> Iterator[None]:
    """The client's kernel calls nothing a hang for the length of a block that is not longer than a server's boot."""
    usual = cell.client(f"cat {HANG}").strip()
    with progress.undoing(lambda: cell.client(f"echo {usual} > {HANG}")):
        cell.client(f"echo {HANG_SECONDS} > {HANG}")
        yield


def cases(seconds: int) -> list[Test]:
    """For so long in all, if that is enough for each."""
    seconds = max(LEAST_SECONDS, seconds // len(CONNECTIONS))
    storms = [Case(test_storm, (connections, seconds)) for connections in CONNECTIONS]
    return [*storms, Case(life_tests.test_nothing_left, provokes=(DISK,)), Case(loading.test_no_leak, provokes=(DISK,))]
