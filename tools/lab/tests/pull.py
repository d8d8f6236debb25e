"""Replies that the client pulls, since they are too long for what it has offered (Documentation/reliable-reply.rst)."""

import contextlib
from collections.abc import Iterator

import progress
from guests.cell import LONG_SECONDS, NO_SECURITY, Cell, Test
from guests.pair import OURS
from judges import trace_events

CLIENT_KNOB = "/proc/sys/sunrpc/rdma_reliable_reply"
COUNTERS = "/proc/sys/sunrpc/svc_rdma/rdma_stat_{}"
# Entries of directories, and of ACLs of NFS 4; nfsd has no room for longer ones of NFS 3 than a page.
DIRECTORIES, ACLS, ACLS_OF_3 = (4, 30, 300, 3000), (1, 10, 100, 1000), (1, 10, 60)
# Bytes of the target of a symbolic link: the most that there can be.
TARGET = 4095
# What one of each end has to say.
CLIENT_EVENTS = "reply_mechanism pull pulled done".split()
SERVER_EVENTS = "provide pulled".split()
PREPARE = "for n in {directories}; do mkdir d$n && (cd d$n && seq -f 'name-%0100g' $n | xargs touch) || exit 1; done; " \
    "for n in {acls}; do touch a$n && setfacl -m $(seq -f u:%g:rwx -s , 1001 $((1000 + n))) a$n || exit 1; done; " \
    "ln -s $(printf '%0*d' {target} 0) l"


def can(cell: Cell) -> bool:
    """Whether both ends know of it."""
    return cell.client_module == OURS and cell.server_module == OURS


@contextlib.contextmanager
def offering(cell: Cell) -> Iterator[None]:
    """Meanwhile a mount has room for every Reply, as with a server that provides none."""
    switch = f"[ ! -e {CLIENT_KNOB} ] || echo {{}} > {CLIENT_KNOB}"
    cell.client(switch.format(0))
    with progress.undoing(lambda: cell.client(switch.format(1))):
        yield


def pulled(cell: Cell) -> None:
    """Directories, ACLs and symbolic links of all lengths come at the first try, as they are at the server; long Replies are
    pulled, and nothing of them is left. With Kerberos the guests have no users that an ACL could name."""
    acls = () if cell.security != NO_SECURITY else ACLS_OF_3 if cell.version == "3" else ACLS
    prepare = PREPARE.format(directories=words(DIRECTORIES), acls=words(acls), target=TARGET)
    before = counters(cell)
    with trace_events.recorded(cell.guests.client, "sunrpc/rpc_task_end") as client, \
            trace_events.recorded(cell.guests.server, "sunrpc/svc_xdr_sendto") as server, cell.mounted(prepare=prepare):
        for n in DIRECTORIES:
            there, here = cell.guests.together(listing(f"/export/t/d{n}"), listing(f"/mnt/t/d{n}"), LONG_SECONDS)
            require(here == there and here.split()[0] == str(n), f"{n} names: the client has {here} and the server {there}")
        for n in acls:
            has_acl(cell, n)
        target = cell.client("readlink /mnt/t/l").strip()
        require(target == "0" * TARGET, f"a target of {len(target)} bytes")
        done = counters(cell)
    if not can(cell):
        return
    pulls, told, overdue, refused = (now - then for now, then in zip(done, before))
    progress.line(f"  {pulls} Replies were pulled")
    require(pulls > 0 and told == pulls and not overdue and not refused,
            f"{pulls} Replies provided, {told} pulled, {overdue} too late, {refused} refused")
    must_tell(client, CLIENT_EVENTS)
    must_tell(server, SERVER_EVENTS)
    require(len(client.named("pulled")) == len(server.named("provide")) == pulls, "the events tell of other pulls")


def has_acl(cell: Cell, n: int) -> None:
    """Fail unless the client sees so many entries of users in the ACL of a file."""
    if cell.version == "3":
        count = cell.client(f"getfacl -n /mnt/t/a{n} | grep -c '^user:1'")
    else:
        count = cell.client(f"nfs4_getfacl /mnt/t/a{n} | grep -c '^A::[1-9][0-9]*[:@]'")
    require(int(count) == n, f"the client sees {count.strip()} of {n} entries of an ACL")


def counters(cell: Cell) -> list[int]:
    """Of all Replies that the server has provided, if it can."""
    if not can(cell):
        return []
    names = (COUNTERS.format(name) for name in ("pull", "pull_done", "pull_overdue", "pull_refused"))
    return [int(cell.server(f"cat {name}")) for name in names]


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


PULLED = Test("Replies that are pulled", pulled)
