"""The tests of what one request that a healthy server is slow with does to all others: nothing."""

import functools
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import progress
from guests import roots
from guests.cell import PORT, Cell
from guests.pair import OURS
from judges.messages import Expected
from plan import provokes
from provoked import CANCELS, LOST, NOT_RESPONDING

VERSION = "4.2"
# Of the whole test, in which an RPC is overdue once. A look at a file takes no longer than the other.
SECONDS, GAP_SECONDS = 150, 3
# Each has a transport of its own, and loses so many connections: with NFS 4 an RPC waits as long as the server says anything.
LOSSES = {"3": 1, "4.0": 0, "4.2": 0}
VERSIONS = tuple(LOSSES)
# A server of ours ends no more of a client.
LOSSES_A_MINUTE = 1
# A file system of the server's that can be frozen, below what it exports; and threads enough for what waits in it.
BEGIN = ("echo 0 > /proc/sys/kernel/hung_task_timeout_secs; cp /lab/slow.img /tmp && modprobe loop && "
         "mkdir -p /export/slow && mount -o loop /tmp/slow.img /export/slow && chmod 777 /export/slow && "
         "exportfs -o rw,no_root_squash,insecure,fsid=7,no_subtree_check '*:/export/slow' && echo 16 > /proc/fs/nfsd/threads && "
         "mkdir -p -m 777 /export/t && echo > /export/t/looked-at")
END = ("exportfs -u '*:/export/slow' && exportfs -f && umount /export/slow && rmdir /export/slow && rm /tmp/slow.img && "
       "echo 4 > /proc/fs/nfsd/threads")
STARTS = "setsid touch /slow{version}/{name} > /tmp/touch{version} 2>&1 < /dev/null & echo $! >> /tmp/waiting.pids"
# Nobody waits any more, and nobody has complained.
ENDED = ("for pid in $(cat /tmp/waiting.pids); do for try in $(seq 300); do test -e /proc/$pid || break; sleep 0.2; done; "
         "test ! -e /proc/$pid || { ps -o pid,stat,wchan,args $pid >&2; exit 1; }; done; ! grep . /tmp/touch[34]*")
# Of a mount, how many connections its transport has made so far.
CONNECTS = "awk '$5 == \"{0}\" {{its = 1}} its && $1 == \"xprt:\" {{print $5; exit}}' /proc/self/mountstats"
FROZEN = Expected(12, re.compile(r"loop\d+: .*|EXT4-fs \(loop\d+\): .*|loop: module loaded|"
                                 r"nfsd4_process_open2 failed to open newly-created file: status=10008|"
                                 r"rpcrdma: connection from \S+ closed: all credits are with dropped requests"),
                  "a file system in a file, that is frozen while a file is made there; what is sent again is dropped")


@dataclass(frozen=True)
class Looks:
    """What came of the looks at a file of a mount."""

    version: str
    count: int
    longest: float
    when: float

    @classmethod
    def read(cls, line: str) -> "Looks":
        longest, when, count, path = line.split()
        return cls(path.split("/")[1].removeprefix("mnt"), int(count), float(longest), float(when))


def _mounts(version: str) -> str:
    """The commands that mount what is looked at, and what is frozen."""
    more = ",nolock,mountproto=tcp" if version == "3" else ""
    top = "/export" if version == "3" else "/"
    slow = f"{top.rstrip('/')}/slow"
    options = f"vers={version},proto=rdma,port={PORT},actimeo=0{more}"
    return (f"mkdir -p /mnt{version} /slow{version} && mount -t nfs -o {options} server:{top} /mnt{version} && "
            f"mount -t nfs -o {options} server:{slow} /slow{version}")


@contextmanager
def _mounted(cell: Cell) -> Iterator[None]:
    """All versions mounted for the length of a block, with a file system of the server's that can be frozen."""
    cell.load_modules()
    cell.client("echo 0 > /proc/sys/kernel/hung_task_timeout_secs; rm -f /tmp/touch* /tmp/waiting.pids")
    # The guests have no program for that.
    image = cell.guests.server.share / "slow.img"
    roots.tool_root().run(["mke2fs", "-q", "-F", "-t", "ext4", str(image), "16M"], cell.guests.run / "slow.log",
                          "the file system that is to be frozen could not be made")
    cell.server(BEGIN)
    with ExitStack() as stack:
        stack.enter_context(progress.undoing(lambda: cell.server(END)))
        for version in VERSIONS:
            cell.client(_mounts(version))
            stack.enter_context(progress.undoing(functools.partial(cell.client, f"umount /slow{version} /mnt{version}")))
        yield


@provokes(*CANCELS, LOST, NOT_RESPONDING, FROZEN)
def test_one_file_system_frozen(cell: Cell) -> None:
    """While one file system of the server is frozen, and one process of the client waits for it, files of another one
    are there as ever. What waits is done once the file system goes on. For two and a half minutes; no look takes more
    than 3 s, NFS 3 alone loses a connection, once. NFS 3, 4.0 and 4.2 at a time; of the in-tree client NFS 3 alone is
    looked at for that."""
    with _mounted(cell):
        cell.guests.prove_modules()
        before = {version: int(cell.client(CONNECTS.format(f"/mnt{version}"))) for version in VERSIONS}
        with progress.undoing(lambda: cell.server("fsfreeze -u /export/slow")):
            cell.server("fsfreeze -f /export/slow")
            cell.client("; ".join(STARTS.format(version=version, name=f"made-by-{version}") for version in VERSIONS))
            paths = " ".join(f"/mnt{version}/t/looked-at" for version in VERSIONS)
            said = cell.client(f"/lab/gaps.py {SECONDS} {paths}", 3 * SECONDS)
            lost = {version: int(cell.client(CONNECTS.format(f"/mnt{version}"))) - before[version] for version in VERSIONS}
        looks = [Looks.read(line) for line in said.splitlines()]
        for each in looks:
            progress.line(f"  NFS {each.version}: {each.count} looks, the longest {each.longest} s (at {each.when} s); "
                          f"{lost[each.version]} connections lost")
        cell.client(ENDED)
        cell.server("; ".join(f"test -e /export/slow/made-by-{version}" for version in VERSIONS))
        cell.guests.prove_modules()
    if cell.client_module == OURS:
        judge(looks, lost, LOSSES)
    else:
        most = 1 + SECONDS * LOSSES_A_MINUTE // 60
        judge([each for each in looks if each.version == "3"], lost, dict.fromkeys(VERSIONS, most))


def judge(looks: list[Looks], lost: dict[str, int], most: dict[str, int]) -> None:
    """Fail if a look took too long, or a mount has lost more connections than that."""
    bad = [f"NFS {each.version}: a look took {each.longest} s" for each in looks if each.longest > GAP_SECONDS]
    bad += [f"NFS {version}: {count} connections were lost" for version, count in lost.items() if count > most[version]]
    if bad:
        raise progress.Failure("; ".join(bad))
