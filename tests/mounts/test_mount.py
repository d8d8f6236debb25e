"""The tests of one cell. Each mounts for itself and leaves nothing mounted."""

import contextlib
import dataclasses
import time

import progress
import test_acl as acl_tests
import test_callback as callback_tests
import test_pull as pull_tests
import test_versions as version_tests
from guests.cell import FEW_SIZES, LONG_SECONDS, MANY, NO_SECURITY, PORT, SUMS, Cell, files
from guests.machine import CLIENT, SERVER
from guests.pair import IN_TREE, OURS
from judges import capture, referee, trace_events, trace_requester, trace_responder
from judges.messages import SIW_GOODBYE
from plan import provokes
from provoked import CANCELS, DEBUGGED, LOST, NOT_RESPONDING
from test_keep_alive import LOSES_CONNECTION

SMALL_SIZES = "0 1 1023 4095 4096 4097 65537 1048577"
ODD_SIZE = 200_001
# One memory region with either client; the in-tree one has more for what is large, or has padding.
EVEN_SIZE = 65_536
# Enough for a Reply that fits no inline message.
NAMES = 300
MAKE_NAMES = f"{{ mkdir many && (cd many && seq -f 'name-%0100g' {NAMES} | xargs touch); }}"
MOUNTS = 50
# Enough for a call and a reply that fit no inline message.
ACL_ENTRIES = 400
SET_ACL = acl_tests.set_acl(ACL_ENTRIES)
# The longest extended attribute that there can be, whose value is no payload, and messages too short to take it in fragments.
LONGEST_VALUE, LEAST_INLINE = 65_536, 4096
# A connection has one transport for the reverse direction, whoever asks; the in-tree module loses track of the first.
ANOTHER_REFUSED = ("for switch in /sys/kernel/sunrpc/xprt-switches/switch-*; do ls -d $switch/xprt-*-rdma > /dev/null 2>&1 || "
                   "continue; found=y; if echo 1 2> /dev/null > $switch/add_xprt; then echo $switch has got another >&2; "
                   "exit 1; fi; done; test \"$found\"")
LOAD_SECONDS = 6
SILENT_SECONDS = 10
# Of the sysctl's range.
LEAST_REQUESTS = 4
# The fewest that a region of ours may have; so a WRITE of the largest of FEW_SIZES takes five.
REGION_PAGES, SEGMENTS = 17, 5
# Of so many regions, one of which may begin off a page boundary.
READ_SIZE = SEGMENTS * (REGION_PAGES - 1) * 4096
# In the line of mountstats.
READ_SEGMENTS, WRITE_SEGMENTS = 11, 12
# The end of a transport comes after umount has returned.
NO_QUEUE_PAIR = ("for try in $(seq 250); do rdma resource show qp | grep -q 'type RC' || exit 0; sleep 0.2; done; "
                 "rdma resource show qp >&2; exit 1")
IS_MOUNTED = "grep -q ' /mnt ' /proc/mounts"
SECURITIES = ("krb5", "krb5i", "krb5p")
FAULTS, FAULT_INTERVAL, LEAST_RECONNECTS = 20, 15, 6
# No more than the buffer of the trace holds the events of.
TRACED_FAULTS = 3
TAKE_LOCK = "python3 -IS -c \"import fcntl; fcntl.lockf(open('/mnt/t/a', 'r+'), fcntl.LOCK_EX)\""
# Until nfsd has executed a LOCK more: of NFS 4 it counts operations by their number, which is 12.
HOLD_LOCK = """{ python3 -IS -c "
import fcntl, time
def asked():
    return [line.split()[14] for line in open('/proc/net/rpc/nfsd') if line.startswith('proc4ops')]
file = open('/export/t/a', 'r+')
fcntl.lockf(file, fcntl.LOCK_EX)
before = asked()
print('held', flush=True)
while asked() == before:
    time.sleep(0.1)
" > /tmp/held 2>&1 < /dev/null & }; """ + (
    "for try in $(seq 250); do grep -q held /tmp/held && exit 0; sleep 0.2; done; cat /tmp/held >&2; exit 1")


def test_small_files(cell: Cell) -> None:
    """A few files, and links too long for an inline message. Files of 0 to 300001 bytes and links of up to 4095, as
    argument and as result: made at one end and read at both."""
    # nfsd 4 answers EIO to a krb5p Call with a longer target that is not in one piece, over TCP just as here. Between two
    # modules of ours it is, since it is shorter than their inline threshold.
    cut = cell.security == "krb5p" and cell.version != "3" and IN_TREE in (cell.server_module, cell.client_module)
    longest = 3800 if cut else max(files.LINKS)
    with cell.mounted(prepare=f"/lab/files.py make in {FEW_SIZES} then link there"):
        cell.client(f"/lab/files.py make /mnt/t/out {FEW_SIZES} then link /mnt/t/here {longest} then forget then "
                    "check /mnt/t/out then check /mnt/t/in --direct then follow /mnt/t/there", LONG_SECONDS)
        cell.judge("out", cell.server(SUMS.format("out")))
        # In the order of their names.
        made = sorted((size for size in files.LINKS if size <= longest), key=str)
        if cell.server("readlink /export/t/here/*").split() != ["x" * size for size in made]:
            raise progress.Failure("the server has other targets than the client gave its links")


def test_sizes(cell: Cell, largest: int, how: str) -> None:
    """Sizes around the limits of pages and of inline messages, through the page cache, or with O_DIRECT from the
    application's own pages."""
    with cell.mounted():
        cell.written("sizes", f"{SMALL_SIZES} {largest << 20}", how)


def test_direct_unaligned(cell: Cell) -> None:
    """Memory and offsets that no page boundary helps with. So regions begin and end anywhere."""
    with cell.mounted():
        cell.written("odd", SMALL_SIZES, "--direct --odd")


def test_written_by_the_server(cell: Cell) -> None:
    """Read into memory, and from offsets, that no page boundary helps with. It is what the client has never had in its
    cache."""
    with cell.mounted(prepare=f"/lab/files.py make in {SMALL_SIZES}"):
        cell.client("/lab/files.py check /mnt/t/in --odd then forget then check /mnt/t/in --direct --odd", LONG_SECONDS)


def test_large_directory(cell: Cell) -> None:
    """The names of 5,000 entries; asking for the attributes of each takes a minute on an emulated machine. Its Replies
    are long, and no file data."""
    with cell.mounted(prepare=MANY.format(5000)):
        cell.lists_the_same()


def test_large_acls(cell: Cell) -> None:
    """ACLs too long for an inline message, set at the server and read at the client, and back. Nothing of them is
    eligible for direct placement."""
    with cell.mounted(prepare=f"touch a b && {SET_ACL} a"):
        count = int(cell.client("nfs4_getfacl /mnt/t/a | grep -c '^A::1[0-9]*[:@]'"))
        cell.client("nfs4_getfacl /mnt/t/a > /tmp/acl && nfs4_setfacl -S /tmp/acl /mnt/t/b")
        if count != ACL_ENTRIES:
            raise progress.Failure(f"the client sees {count} of {ACL_ENTRIES} entries")
        there = int(cell.server("getfacl -n /export/t/b | grep -c '^user:1'"))
        if there != ACL_ENTRIES:
            raise progress.Failure(f"the server got {there} of {ACL_ENTRIES} entries")


def test_readers_and_writers(cell: Cell, count: int) -> None:
    """Processes write, read back and compare at the same time. Credits, send buffers and regions are used up."""
    with cell.mounted():
        cell.client(f"/lab/files.py workers /mnt/t/workers {count} 60000 then forget then check /mnt/t/workers",
                    LONG_SECONDS)
        cell.judge("workers", cell.server(SUMS.format("workers")))


@provokes(*CANCELS)
def test_killed(cell: Cell) -> None:
    """Processes killed in the middle of their I/O; the mount goes on working. RPCs end without a Reply, and their
    regions are fenced."""
    with cell.mounted():
        with cell.load():
            time.sleep(LOAD_SECONDS)
        cell.still_works()


@provokes(*CANCELS, NOT_RESPONDING)
def test_umount_forced(cell: Cell) -> None:
    """`umount -f` with a server that says nothing: what waits for it fails, and the mount can go."""
    with cell.mounted(unmount=f"if {IS_MOUNTED}; then umount /mnt; fi"), cell.load(ends=True):
        time.sleep(LOAD_SECONDS)
        with cell.silence():
            time.sleep(LOAD_SECONDS)
            # Each one ends the RPCs that wait at that moment, and a process may begin another before it gives up.
            cell.client("read -r group < /tmp/load.pid; for try in $(seq 50); do pgrep -g $group > /dev/null || exit 0; "
                        "umount -f /mnt; sleep 1; done; exit 1", 180)
    with cell.mounted():
        cell.still_works()


@provokes(*CANCELS)
def test_umount_lazy(cell: Cell) -> None:
    """`umount -l` under load: the load goes on, and its end is the end of the mount."""
    with cell.mounted(unmount=f"! {IS_MOUNTED}"), cell.load():
        time.sleep(LOAD_SECONDS)
        cell.client("umount -l /mnt")
        time.sleep(LOAD_SECONDS)
        cell.gets_further()


@provokes(LOST, callback_tests.RESTARTED)
def test_connection_broken(cell: Cell) -> None:
    """The kernel's fault injection breaks the connection again and again under load; no byte is wrong. Calls are in
    flight when it breaks, and are sent again."""
    # A lease after a CLOSE of NFS 4.0 nfsd answers the next OPEN with that CLOSE, if the client has not had its answer.
    lasting = callback_tests.patient(cell) if cell.version == "4.0" else contextlib.nullcontext()
    with lasting, cell.mounted():
        before = cell.connects()
        with contextlib.ExitStack() as stack:
            # Each end breaks connections of its own accord.
            for machine in cell.debugged:
                stack.enter_context(cell.broken(machine, FAULT_INTERVAL, FAULTS))
            cell.client("/lab/files.py workers /mnt/t/workers 24 200000", LONG_SECONDS)
        cell.same("workers")
        reconnects = cell.connects() - before
        if reconnects < LEAST_RECONNECTS:
            raise progress.Failure(f"only {reconnects} new connections; the faults did not reach the transport")


@provokes(*CANCELS, NOT_RESPONDING)
def test_server_silent(cell: Cell) -> None:
    """The server says nothing for longer than a queue pair retries; the mount recovers by itself. On rxe the adapter
    gives the connection up."""
    with cell.mounted():
        before = cell.connects()
        with cell.load():
            time.sleep(LOAD_SECONDS)
            with cell.silence():
                if cell.device == "rxe":
                    cell.client(LOSES_CONNECTION, LONG_SECONDS)
                else:
                    # That of siw is over TCP, which is more patient.
                    time.sleep(SILENT_SECONDS)
            cell.still_works()
        if cell.device == "rxe" and cell.connects() == before:
            raise progress.Failure("the connection outlived the silence")


@provokes(dataclasses.replace(SIW_GOODBYE, most=MOUNTS), on="siw")
def test_mounted_again(cell: Cell, count: int) -> None:
    """Mounted and unmounted many times, each time used."""
    with cell.mounted():
        pass
    cell.client(f"/lab/mounts.py {cell.mount_call()} {count}", LONG_SECONDS)
    if cell.server("cat /export/t/n").strip() != str(count):
        raise progress.Failure("the last mount's write is not on the server")


def test_over_ipv6(cell: Cell) -> None:
    """`proto=rdma6`: files, and a directory whose Reply is long."""
    with cell.mounted(cell.mount_command("[fd00:2::1]", "proto=rdma6"), prepare=MAKE_NAMES), pull_tests.used(cell):
        cell.written("six", FEW_SIZES)
        cell.lists_the_same(LONG_SECONDS)


def test_every_form(cell: Cell) -> None:
    """Every form of message is in a capture, and tshark finds none malformed. Inline, Read chunk, Position Zero Read
    chunk, Write chunk, Reply chunk and remote invalidation (on siw none); chunks carry no padding. tshark knows nothing
    of this module."""
    with cell.captured() as path, cell.mounted(prepare=f"touch a b && {SET_ACL} a"):
        # Past the page cache, which would read whole pages.
        cell.written("out", f"100 5000 {ODD_SIZE}", "--direct")
        # A long call that has nothing to reduce, and a long reply.
        cell.client("nfs4_getfacl /mnt/t/a > /tmp/acl && nfs4_setfacl -S /tmp/acl /mnt/t/b && ls -l /mnt/t/out")
    capture.judge(path, ODD_SIZE, cell.invalidates)


def test_every_header_type(cell: Cell) -> None:
    """Every header type of version 2 is in a capture, in which the referee finds nothing wrong; the trace events of
    version 2 tell of what is in no header of version 1. Calls and Replies are inline, in fragments and in chunks, with
    remote invalidation (on siw none). The referee judges every capture of a cell of version 2."""
    cell.load_modules()
    with cell.tunable("rdma_max_inline_write", LEAST_INLINE), cell.captured() as path, version_tests.traced(cell), \
            cell.mounted(prepare=f"{MAKE_NAMES} && touch a b && {SET_ACL} a"):
        # Past the page cache, which would read whole pages.
        cell.written("out", f"100 5000 {ODD_SIZE}", "--direct")
        cell.client("nfs4_getfacl /mnt/t/a > /tmp/acl && nfs4_setfacl -S /tmp/acl /mnt/t/b && ls -l /mnt/t/out")
        # Longer than what is sent as fragments.
        cell.client(f"python3 -c 'import os; os.setxattr(\"/mnt/t/b\", \"user.long\", bytes({LONGEST_VALUE}))'")
        cell.lists_the_same(LONG_SECONDS)
    referee.must_have(path, cell.invalidates)


def test_trace_events_of_the_server(cell: Cell) -> None:
    """The server's trace events are those of the documentation; they fire, and agree with each other. They have the
    fields of the in-tree module (tests/trace-fields), name the same thing alike from post to completion, and have right
    XIDs, Positions, lengths and keys."""
    server = cell.guests.server
    trace_events.must_be_those_documented(server)
    trace_events.must_have_fields(server)
    # Of all that is posted for Reply chunks, too.
    with trace_events.recorded(server, trace_responder.RPC_EVENT) as trace, pull_tests.offering(cell), \
            cell.mounted(prepare=MAKE_NAMES):
        cell.client(f"/lab/files.py make /mnt/t/out --direct {EVEN_SIZE} {ODD_SIZE}")
        cell.same("out", "--direct")
        # With more room than there is of the file.
        cell.client(f"dd if=/mnt/t/out/file-{EVEN_SIZE} of=/dev/null bs={2 * EVEN_SIZE} iflag=direct status=none")
        cell.client("ls /mnt/t/many")
    trace_responder.judge(trace, ODD_SIZE, cell.invalidates)


@provokes(LOST)
def test_trace_events_of_the_client(cell: Cell) -> None:
    """The client's trace events are those of the documentation, with the fields of the in-tree module; they fire for
    every form of message and when a connection breaks, and agree with each other and with the RPC layer. Each memory
    region goes from state to state and is unmapped; tasks and XIDs are those of the RPC layer's own events."""
    client = cell.guests.client
    trace_events.must_be_those_documented(client)
    trace_events.must_have_fields(client)
    peer = f"[{SERVER.address4}]:{PORT}"
    # As for the capture: NFS 3 has no such long Call.
    carried = trace_requester.Forms(peer, ODD_SIZE, long_call=cell.version != "3",
                                    callback=cell.version in callback_tests.CALLED_BACK, invalidated=cell.invalidates)
    prepare = f"{MAKE_NAMES} && touch a b && {SET_ACL} a" if carried.long_call else MAKE_NAMES
    with trace_events.recorded(client, trace_requester.RPC_EVENT) as trace:
        with pull_tests.offering(cell), cell.mounted(prepare=prepare):
            cell.client(f"/lab/files.py make /mnt/t/out --direct 100 {ODD_SIZE}")
            cell.same("out", "--direct")
            cell.client("ls /mnt/t/many")
            if carried.long_call:
                cell.client("nfs4_getfacl /mnt/t/a > /tmp/acl && nfs4_setfacl -S /tmp/acl /mnt/t/b")
            if carried.callback:
                # Whoever waits for a lock is told when it is free (CB_NOTIFY_LOCK).
                cell.server(callback_tests.UP)
                # At first when there is no grace period any more, in which nobody gets one.
                cell.client(TAKE_LOCK)
                cell.server(HOLD_LOCK)
                cell.client(TAKE_LOCK)
        cell.client(NO_QUEUE_PAIR)
    trace_requester.judge(trace, carried)
    with trace_events.recorded(client, trace_requester.RPC_EVENT) as trace:
        with cell.mounted(), contextlib.ExitStack() as stack:
            for machine in cell.debugged:
                stack.enter_context(cell.broken(machine, FAULT_INTERVAL, TRACED_FAULTS))
            cell.client("/lab/files.py workers /mnt/t/workers 8 100000", LONG_SECONDS)
        cell.client(NO_QUEUE_PAIR)
    trace_requester.judge_broken(trace, peer, injected=client in cell.debugged)


def test_protected(cell: Cell) -> None:
    """What crosses the link is protected as sec= says: by what tshark reads in it, and whether a file's bytes are in
    it. In version 2 tshark has the dissector of tools/wireshark. Flavor and service are looked for in every Call.

    Those of a mount without Kerberos are, which shows that they would be found."""
    name = f"file-{ODD_SIZE}"
    content = files.content(name, ODD_SIZE)
    with cell.captured() as path, cell.mounted():
        mounted = cell.client("grep ' /mnt ' /proc/mounts")
        cell.written("out", str(ODD_SIZE), "--direct")
    if f"sec={cell.security}," not in mounted:
        raise progress.Failure(f"the mount is not of sec={cell.security}: {mounted.strip()}")
    capture.judge_security(path, SECURITIES.index(cell.security) + 1, cell.protocol)
    found = capture.has_clear_text(path, content)
    if found != (cell.security != "krb5p"):
        raise progress.Failure(f"the file's bytes are {'' if found else 'not '}in {path} in clear text")
    with cell.captured() as path, cell.mounted(cell.mount_command(security=NO_SECURITY)):
        cell.client(f"/lab/files.py make /mnt/t/out {ODD_SIZE}")
    if not capture.has_clear_text(path, content):
        raise progress.Failure(f"the bytes of a mount with sec={NO_SECURITY} are not found in {path}")


def test_several_encryption_types(cell: Cell) -> None:
    """A user whose verifiers are longer than those of the machine, which the RPC layer has seen first and plans for, reads
    what the server places in chunks. (What is inline it reads no better than over TCP.)"""
    with cell.mounted():
        cell.written("out", "20000 300001 2000000", "--direct")
        tickets = cell.client("/lab/kerberos reader")
        if "(skey, tkt): aes256-cts-hmac-sha384-192" not in tickets.rpartition("nfs/server")[2]:
            raise progress.Failure(f"the user has other tickets: {tickets}")
        cell.client("setpriv --reuid=daemon --regid=daemon --clear-groups /lab/files.py check /mnt/t/out --direct")


def test_mountstats(cell: Cell) -> None:
    """The line that nfs-utils reads: the word rdma and 27 numbers, and the version behind them if it is ours."""
    with cell.mounted():
        cell.client("/lab/files.py make /mnt/t/some 100000")
        line = cell.client("grep 'xprt:' /proc/self/mountstats").split()
        version = [str(cell.protocol)] if cell.client_module == OURS else []
        whole = len(line) == 29 + len(version) and line[29:] == version
        if line[:2] != ["xprt:", "rdma"] or not whole or not all(word.isdigit() for word in line[2:]):
            raise progress.Failure(f"mountstats has: {' '.join(line)}")


def test_servers_tunables(cell: Cell) -> None:
    """What /proc/sys/sunrpc/svc_rdma of the server takes and refuses; new connections use it, and counters count.
    Ranges end with the error that scripts know; connections work with the least of everything, also by the grants in a
    capture; RDMA Reads, and RDMA Writes of a READ, are as many as the client counts segments."""
    directory = "cd /proc/sys/sunrpc/svc_rdma"
    least = f"echo {LEAST_REQUESTS} > max_requests && echo 4096 > max_req_size"
    usual = cell.server(f"{directory} && cat max_requests max_req_size").split()
    more = ("'max_version 0' 'max_version 3' 'reliable_reply 2' 'reliable_reply_timeout 0' 'reliable_reply_timeout 3601' 'reliable_reply_bytes 65535' 'reliable_reply_bytes 1073741825'"
            if cell.server_module == OURS else "")
    with progress.undoing(lambda: cell.server(f"{directory} && echo {usual[0]} > max_requests && "
                                         f"echo {usual[1]} > max_req_size")):
        taken = cell.server(f"{directory} && for line in 'max_requests 3' 'max_requests 16385' 'max_req_size 4095' "
                            "'max_req_size 65537' 'max_outbound_read_requests 0' 'max_outbound_read_requests 256' "
                            f"{more}; do "
                            # The shell's own echo calls any error an I/O error.
                            "set -- $line; { /bin/echo $2 > $1; } 2>&1 | grep -q 'Invalid argument' || echo $line; done; "
                            f"for counter in rdma_stat_*; do echo 0 > $counter || echo $counter; done; {least}").strip()
        if taken:
            raise progress.Failure(f"taken, or refused otherwise than with EINVAL, or a counter that cannot be set to zero: "
                              f"{' '.join(taken.split())}")
        with cell.captured() as path, _small_regions(cell), cell.mounted():
            cell.written("out", FEW_SIZES)
            _writes_counted(cell, directory)
            segments = cell.counter(READ_SEGMENTS)
        counters = cell.server(f"{directory} && cat rdma_stat_read rdma_stat_recv rdma_stat_write "
                               "rdma_stat_rq_poll").split()
    # What version 2 grants is a count that only grows.
    granted = capture.granted(path) if cell.protocol == 1 else {LEAST_REQUESTS}
    if max(granted, default=0) != LEAST_REQUESTS:
        raise progress.Failure(f"max_requests is {LEAST_REQUESTS}, but grants were {sorted(granted)}, in {path}")
    if 0 in map(int, counters[:3]) or int(counters[3]) != 0:
        raise progress.Failure(f"read, recv, write and rq_poll count {' '.join(counters)}")
    # As in the in-tree module, each segment counts.
    if int(counters[0]) != segments or cell.client_module == OURS and segments < SEGMENTS:
        raise progress.Failure(f"{counters[0]} RDMA Reads are counted, of {segments} segments of Read chunks sent")


def _writes_counted(cell: Cell, directory: str) -> None:
    """An RDMA Write for each segment of a READ's Write chunk counts, as in the in-tree module."""
    cell.client(f"dd if=/dev/zero of=/mnt/t/big bs={READ_SIZE} count=1 oflag=direct 2>&1")
    cell.server(f"{directory} && echo 0 > rdma_stat_write")
    before = cell.counter(WRITE_SEGMENTS)
    # No more than there is, so that each segment is filled.
    cell.client(f"dd if=/mnt/t/big of=/dev/null bs={READ_SIZE} count=1 iflag=direct 2>&1")
    segments, written = cell.counter(WRITE_SEGMENTS) - before, int(cell.server(f"{directory} && cat rdma_stat_write"))
    if written != segments or cell.client_module == OURS and segments < SEGMENTS:
        raise progress.Failure(f"{written} RDMA Writes are counted, of {segments} segments of Write chunks sent")


def _small_regions(cell: Cell) -> contextlib.AbstractContextManager[None]:
    """Regions of few pages, so that a chunk has several segments; the in-tree module takes as many as it likes."""
    if cell.client_module == IN_TREE:
        return contextlib.nullcontext()
    return cell.tunable("rdma_region_pages", REGION_PAGES)


def test_client_named_in_trace_events(cell: Cell) -> None:
    """The server's trace events name the client by its address alone, which scripts filter by; and so does nfsd."""
    cell.load_modules()
    instance = "/sys/kernel/tracing/instances/named"
    event = f"{instance}/events/sunrpc/svc_process"
    cell.server(f"mkdir {instance}")
    with progress.undoing(lambda: cell.server(f"echo 0 > {event}/enable; rmdir {instance}")):
        cell.server(f"echo 'addr == \"{CLIENT.address4}\"' > {event}/filter && echo 1 > {event}/enable")
        with cell.mounted():
            cell.written("named", "4097")
        found = int(cell.server(f"grep -c 'addr={CLIENT.address4} ' {instance}/trace || true"))
    if not found:
        raise progress.Failure("no Call is found by its client's address")


@provokes(DEBUGGED)
def test_connections_told(cell: Cell) -> None:
    """The server tells of a new connection when it is asked to (``rpcdebug``), in a line whose beginning scripts know; and
    only then."""
    cell.load_modules()

    def lines() -> int:
        with cell.mounted():
            return int(cell.server("dmesg | grep -c 'svcrdma: new connection accepted on device' || true"))

    before, again = lines(), lines()
    cell.server("rpcdebug -m rpc -s svcsock")
    with progress.undoing(lambda: cell.server("rpcdebug -m rpc -c svcsock")):
        asked = lines()
    if again != before or asked == again:
        raise progress.Failure(f"{again - before} lines without being asked, {asked - again} when asked")


def test_callback_channel(cell: Cell) -> None:
    """nfsd has made its client for callbacks on the mount's own connection; of these versions it sends no probe."""
    with cell.mounted():
        cell.server(callback_tests.UP)
        if cell.server_module == OURS:
            cell.server(ANOTHER_REFUSED)
