"""Replies that the client pulls, since they are too long for what it has offered (Documentation/reliable-reply.rst)."""

import contextlib
import time
from collections.abc import Iterator

import progress
from guests.cell import LONG_SECONDS, LOOK_SECONDS, NO_SECURITY, Cell
from guests.pair import OURS
from judges import capture, trace_events

CLIENT_KNOB = "/proc/sys/sunrpc/rdma_reliable_reply"
SERVER_KNOB = "/proc/sys/sunrpc/svc_rdma/reliable_reply"
SERVERS = "/proc/sys/sunrpc/svc_rdma/rdma_stat_pull"
CLIENTS = "/proc/sys/sunrpc/rdma_stat_pull"
# Entries of directories, and of ACLs of NFS 4; nfsd has no room for longer ones of NFS 3 than a page.
DIRECTORIES, ACLS, ACLS_OF_3 = (4, 30, 300, 10_000), (1, 10, 100, 1000), (1, 10, 60)
# Bytes of the values of extended attributes, up to the longest that there can be.
VALUES = (1, 100, 4000, 8000, 30_000, 65_536)
# Bytes of the target of a symbolic link: the most that there can be.
TARGET = 4095
# Entries of an ACL of which that is not so.
TOO_LONG = 600
# Names whose listing is pulled, and comes inline; how often the latter is listed before the former, and how often who lists
# the former is killed, each time a little later than the time before.
SOME, SHORT = 300, 4
SHORTS, KILLS = 4, 25
# At last after the time of so many listings, each as long as the first: most are over before they are killed.
KILLED_WITHIN = 3
LISTED = (f"echo 3 > /proc/sys/vm/drop_caches; read -r began rest < /proc/uptime; ls -U /mnt/t/d{SOME} > /dev/null && "
          "read -r ended rest < /proc/uptime && echo $began $ended")
# What one of each end has to say.
CLIENT_EVENTS = "reply_mechanism pull pulled done".split()
SERVER_EVENTS = "provide pulled".split()
PREPARE_NAMES = "for n in {}; do mkdir d$n && (cd d$n && seq -f 'name-%0100g' $n | xargs touch) || exit 1; done"
PREPARE = "; for n in {acls}; do touch a$n && setfacl -m $(seq -f u:%g:rwx -s , 1001 $((1000 + n))) a$n || exit 1; done; " \
    "ln -s $(printf '%0*d' {target} 0) l; touch v; for n in {values}; do python3 -c 'import os, sys; " \
    "os.setxattr(\"v\", \"user.\" + sys.argv[1], os.urandom(int(sys.argv[1])))' $n || exit 1; done"
SUMS = "for n in {1}; do getfattr --only-values -n user.$n {0}/v | sha256sum || exit 1; done"
# The users that an ACL names, one in a line.
USERS, USERS_OF_4 = "getfacl -n {} | sed -n 's/^user:\\([1-9][0-9]*\\):.*/\\1/p'", \
    "nfs4_getfacl {} | sed -n 's/^A::\\([1-9][0-9]*\\)[:@].*/\\1/p'"


def can(cell: Cell) -> bool:
    """Whether both ends know of it; version 2 continues a long Reply instead."""
    return cell.client_module == OURS and cell.server_module == OURS and cell.protocol == 1


@contextlib.contextmanager
def offering(cell: Cell) -> Iterator[None]:
    """Meanwhile a mount has room for every Reply, as with a server that provides none."""
    switch = f"[ ! -e {CLIENT_KNOB} ] || echo {{}} > {CLIENT_KNOB}"
    cell.client(switch.format(0))
    with progress.undoing(lambda: cell.client(switch.format(1))):
        yield


def test_replies_that_are_pulled(cell: Cell) -> None:
    """Directories, ACLs, extended attributes and symbolic links of all lengths come at the first try, as they are at
    the server; long Replies are pulled, and nothing of them is left. With Kerberos the guests have no users that an ACL
    could name, and only NFS 4.2 has the attributes. Directories of 4 to 10,000 entries, ACLs of 1 to 1,000, attributes
    of 1 byte to 64 KiB (4.2), the longest link. By counters and trace events of both ends; none is pulled where either
    end is told not to."""
    acls = () if cell.security != NO_SECURITY else ACLS_OF_3 if cell.version == "3" else ACLS
    values = VALUES if cell.version == "4.2" else ()
    prepare = PREPARE_NAMES.format(words(DIRECTORIES)) + PREPARE.format(acls=words(acls), target=TARGET, values=words(values))
    if can(cell):
        count_anew(cell)
    before = counters(cell)
    with trace_events.recorded(cell.guests.client, "sunrpc/rpc_task_end") as client, \
            trace_events.recorded(cell.guests.server, "sunrpc/svc_xdr_sendto") as server, cell.mounted(prepare=prepare):
        for n in DIRECTORIES:
            lists_the_same(cell, n)
        there, here = (SUMS.format(place, words(values)) for place in ("/export/t", "/mnt/t"))
        there, here = cell.guests.together(there, here)
        require(here == there and len(here.splitlines()) == len(values), f"the client has other values: {here} and not {there}")
        for n in acls:
            has_acl(cell, n)
        target = cell.client("readlink /mnt/t/l").strip()
        require(target == "0" * TARGET, f"a target of {len(target)} bytes")
        # A Reply that was not to be had at the first try costs the connection.
        require(cell.connects() == 1, f"{cell.connects()} connections were made")
        done = counters(cell)
    if not can(cell):
        return
    pulls, told, overdue, refused, provided = (now - then for now, then in zip(done, before))
    progress.line(f"  {pulls} Replies were pulled, {provided} bytes")
    require(pulls > 0 and told == pulls and not overdue and not refused,
            f"{pulls} Replies provided, {told} pulled, {overdue} too late, {refused} refused")
    of_client, done_of_client, bytes_of_client = counted(cell)
    require((of_client, done_of_client, bytes_of_client) == (pulls, pulls, provided),
            f"the client counts {of_client} Replies of {bytes_of_client} bytes, and told the server {done_of_client} times")
    must_tell(client, CLIENT_EVENTS)
    must_tell(server, SERVER_EVENTS)
    require(len(client.named("pulled")) == len(server.named("provide")) == pulls, "the events tell of other pulls")
    with offering(cell):
        not_pulled(cell)
    with progress.undoing(lambda: cell.server(f"echo 1 > {SERVER_KNOB}")):
        cell.server(f"echo 0 > {SERVER_KNOB}")
        not_pulled(cell)


def test_acl_that_nfs_has_no_room_for(cell: Cell) -> None:
    """An ACL for which nfsd has no room in a Reply of NFS 3 fails as it does over TCP."""
    beside = "/tmp/tcp"
    cell.load_modules()
    with cell.mounted(prepare=f"touch a && setfacl -m $(seq -f u:%g:rwx -s , 1001 {1000 + TOO_LONG}) a"):
        cell.client(f"mkdir -p {beside} && mount -t nfs -o vers=3,proto=tcp,nolock,mountproto=tcp server:/export {beside}")
        with progress.undoing(lambda: cell.client(f"umount {beside}")):
            rdma, tcp = (cell.client(f"cd {place}/t && getfacl -n a 2>&1; echo status $?") for place in ("/mnt", beside))
    progress.line(f"  {len(rdma.splitlines())} lines, the last: {rdma.splitlines()[-1]}")
    require(rdma == tcp and "user:1001" not in rdma, f"over RDMA: {rdma[:300]}; over TCP: {tcp[:300]}")


def test_agreement_on_pulls(cell: Cell) -> None:
    """Each end says in its private data what it can do, and the server nothing where the client cannot; only then
    Replies are pulled. By a capture; on rxe also the keys that the client makes invalid with the word that it has
    pulled a Reply."""
    with cell.captured() as path, cell.mounted(prepare=PREPARE_NAMES.format(SOME)):
        lists_the_same(cell, SOME)
    capture.judge_agreement(path, cell.client_module == OURS, can(cell))
    if can(cell) and cell.device == "rxe":
        capture.judge_pulled(path)


def test_killed_while_replies_are_pulled(cell: Cell) -> None:
    """Processes killed while they list a directory: whatever became of their Replies, the server is told of each once. The
    next Reply is pulled, too, since most listings are short. In version 2 they are continued, and nobody is told."""
    cell.load_modules()
    with cell.mounted(prepare=PREPARE_NAMES.format(f"{SHORT} {SOME}")):
        began, ended = map(float, cell.client(LISTED).split())
        every = (ended - began) * KILLED_WITHIN / KILLS
        before = counters(cell)
        for number in range(KILLS):
            cell.client("for i in $(seq %d); do echo 3 > /proc/sys/vm/drop_caches; ls -U /mnt/t/d%d > /dev/null || exit 1; done; "
                        "echo 3 > /proc/sys/vm/drop_caches; { setsid ls -U /mnt/t/d%d > /dev/null 2>&1 < /dev/null & }; "
                        "sleep %.3f; kill -9 $!; wait $! 2> /dev/null || true" % (SHORTS, SHORT, SOME, number * every))
        lists_the_same(cell, SOME)
    if not can(cell):
        return
    pulls, told, overdue, refused, _ = (now - then for now, then in zip(counters(cell), before))
    progress.line(f"  {pulls} Replies were provided, and {told} pulled")
    require(told == pulls > KILLS // 2 and not overdue and not refused,
            f"{pulls} Replies provided, {told} pulled, {overdue} too late, {refused} refused")


def not_pulled(cell: Cell) -> None:
    """Fail unless a new mount has the same names without a Reply that is pulled."""
    before = counters(cell)
    with cell.mounted(prepare=PREPARE_NAMES.format(words(DIRECTORIES[:-1]))):
        for n in DIRECTORIES[:-1]:
            lists_the_same(cell, n)
        require(counters(cell) == before, "Replies are pulled, though one end does not want that")


def lists_the_same(cell: Cell, n: int) -> None:
    """Fail unless both ends list the same names in the directory of so many."""
    there, here = cell.guests.together(listing(f"/export/t/d{n}"), listing(f"/mnt/t/d{n}"), LONG_SECONDS)
    require(here == there and here.split()[0] == str(n), f"{n} names: the client has {here} and the server {there}")


@contextlib.contextmanager
def used(cell: Cell) -> Iterator[None]:
    """Fail unless Replies are pulled during a block in which the server keeps its module, if both ends can."""
    before = counters(cell)
    yield
    if before:
        pulls, told, overdue, refused, provided = (now - then for now, then in zip(counters(cell), before))
        progress.line(f"  {pulls} Replies of {provided} bytes were provided, {told} pulled; {overdue} too late, {refused} refused")
        require(told > 0, "no Reply was pulled")


@contextlib.contextmanager
def loaded(cell: Cell) -> Iterator[None]:
    """A load for the length of a block, for which Replies are pulled from the beginning on."""
    with used(cell), cell.load():
        await_one(cell)
        yield


def await_one(cell: Cell) -> None:
    """Wait until a Reply more was pulled, if both ends can, so that others are being pulled about now."""
    before, deadline = counters(cell), cell.guests.clock.now() + LONG_SECONDS
    while before and counters(cell)[1] == before[1]:
        require(cell.guests.clock.now() < deadline, "no Reply is pulled any more")
        time.sleep(LOOK_SECONDS)


def has_acl(cell: Cell, n: int) -> None:
    """Fail unless the client sees the users in the ACL of a file, who are so many."""
    users = USERS if cell.version == "3" else USERS_OF_4
    there, here = cell.guests.together(USERS.format(f"/export/t/a{n}"), users.format(f"/mnt/t/a{n}"))
    require(sorted(here.split()) == sorted(there.split()) and len(there.split()) == n,
            f"the client sees {len(here.split())} of {n} users in an ACL")


def count_anew(cell: Cell) -> None:
    """Make the client's counters zero, as a write of anything does."""
    cell.client(f"for counter in {CLIENTS}*; do echo 1 > $counter || exit 1; done")


def counted(cell: Cell) -> list[int]:
    """How many Replies the client has pulled, how often it has said so, and their bytes."""
    return [int(cell.client(f"cat {CLIENTS}{name}")) for name in ("", "_done", "_bytes")]


def counters(cell: Cell) -> list[int]:
    """Of all Replies that the server has provided, if it can."""
    if not can(cell):
        return []
    return [int(cell.server(f"cat {SERVERS}{name}")) for name in ("", "_done", "_overdue", "_refused", "_bytes")]


def listing(directory: str) -> str:
    return f"ls -U {directory} | sort | (tee /tmp/names | wc -l; sha256sum < /tmp/names)"


def words(numbers: tuple[int, ...]) -> str:
    return " ".join(map(str, numbers))


def must_tell(trace: trace_events.Trace, names: list[str]) -> None:
    silent = [name for name in names if not trace.named(name)]
    require(not silent, f"did not fire: {' '.join(silent)}")


def require(holds: bool, what: str) -> None:
    if not holds:
        raise progress.Failure(what)
