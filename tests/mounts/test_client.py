"""Tests of what concerns the client alone: several connections, addresses of several kinds and such as change, network
namespaces, tunables."""

import re
import sys
import time
from collections.abc import Callable

import progress
import test_life as life_tests
from guests.cell import FEW_SIZES, LONG_SECONDS, PORT, SENDS, TRANSPORTS, Cell
from guests.machine import CLIENT, SERVER
from judges import capture
from judges.messages import Expected
from plan import Test, long, provokes, of
from provoked import BONDED, CANCELS, LOST, MOVED, NOT_RESPONDING
from test_listener import MOVES
from test_mount import FAULT_INTERVAL, FAULTS, LOAD_SECONDS, LOSES_CONNECTION

VERSION = "4.2"
CONNECTIONS = 16
TCP_PORT = 2049
# Another address of the same server, and of the client.
SECOND_ADDRESS, CLIENT_ADDRESS = "192.0.2.101", "192.0.2.102"
INNER = "ip netns exec inner"
# The least and the most of each tunable, and its default.
TUNABLES = {"rdma_slot_table_entries": (4, 16384, 128), "rdma_max_inline_read": (1024, 65536, 8192),
            "rdma_max_inline_write": (1024, 65536, 8192), "rdma_keepalive_time": (0, 3600, 30),
            "rdma_pad_optimize": (-1 << 31, (1 << 31) - 1, 0), "rdma_inline_write_padding": (0, 4096, 0),
            "rdma_memreg_strategy": (0, 6, 5), "rdma_reliable_reply": (0, 1, 1), "rdma_max_version": (1, 2, 1),
            "rdma_write_chunk_padding": (0, 1, 0)}
# That of the one whose range has a gap, which is a test of its own.
REGION_PAGES, REGION_PAGES_DEFAULT = "rdma_region_pages", 0
# What counts, which a write of anything makes zero.
COUNTERS = ("rdma_stat_pull", "rdma_stat_pull_bytes", "rdma_stat_pull_done")
TRY_TUNABLE = ("try() {{ for bad in $(($2 - 1)) $(($3 + 1)); do echo $bad 2> /dev/null > $1 && echo $1 takes $bad; "
               "done; for good in $2 $3; do echo $good > $1; now=$(cat $1); test $now = $good || "
               "echo $1 has $now, not $good; done; }}; cd /proc/sys/sunrpc; {0}; true")
SLOTS, INLINE = "rdma_slot_table_entries", ("rdma_max_inline_read", "rdma_max_inline_write")
# What is tried: the least of all, and much.
LITTLE, MUCH = (4, 1024), (1024, 65536)
# Fits inline where the server's own limit rules, and not into the least.
MIDDLING = 3000
# Of the line in mountstats: segments of Read chunks, of Write chunks.
READ_SEGMENTS, WRITE_SEGMENTS = 12, 13
# The thread that a workqueue has for when memory is short; its name is cut to 15 bytes.
RESCUERS = "cat /proc/[0-9]*/comm | grep -c '^kworker/R-rpcrd' || true"
# The transports in sysfs.
DIRECTORIES = "/sys/kernel/sunrpc/xprt-switches/*/xprt-*-rdma"
EACH_DIRECTORY = f"for directory in {DIRECTORIES}; do {{}}; done"
SWITCHED = 4
CONNECTED = ("for try in $(seq 300); do test $(cat {0}/xprt_state | grep -cw CONNECTED) = {1} && exit 0; "
             f"sleep 0.2; done; cat {DIRECTORIES}/xprt_state >&2; exit 1")
# Nobody has anything to do with it any more.
UNUSED = ("for try in $(seq 300); do grep -qx tasks_queuelen=0 {0}/xprt_info && exit 0; sleep 0.2; done; "
          "cat {0}/xprt_info >&2; exit 1")
REMAIN = ("for try in $(seq 300); do set -- {0}; test $# = {1} && exit 0; sleep 0.2; done; ls -d {0} >&2; exit 1")
# The link is down for so long.
DOWN_SECONDS = 3
# Says so of each state of its port, and of what it could not send without address or link.
LINK = Expected(200, re.compile(r"infiniband (rxe|siw)0: .*|(rxe|siw)0: .*|virtio_net virtio\d+ .*|"
                                r"(make_send_cqe|do_complete|rxe_\w+): \d+ callbacks suppressed"),
                "the link comes and goes")


def on_one_network() -> list[Test]:
    """What needs neither NFS 3 nor a bond."""
    return of(sys.modules[__name__], test_nconnect, test_tcp_and_rdma_side_by_side, test_clients_address_moves)


@long
@provokes(LOST)
def test_nconnect(cell: Cell) -> None:
    """`nconnect=16`: each connection is used, and replaced when it breaks."""
    cell.load_modules()
    with cell.mounted(cell.mount_command(option=f"proto=rdma,nconnect={CONNECTIONS}")):
        with cell.broken(cell.guests.client, FAULT_INTERVAL, FAULTS):
            cell.client(f"/lab/files.py workers /mnt/t/workers {2 * CONNECTIONS} 200000", LONG_SECONDS)
        cell.same("workers")
        transports = [line.split() for line in cell.client(TRANSPORTS).splitlines()]
        if len(transports) != CONNECTIONS or any(int(words[SENDS]) == 0 for words in transports):
            raise progress.Failure(f"{len(transports)} connections, which sent {[words[SENDS] for words in transports]} Calls")


def test_trunking(cell: Cell) -> None:
    """`max_connect=2`: a second address of the same server becomes a second connection of the first mount. One
    workqueue does the work of both. The second connection has a protection domain of its own."""
    cell.load_modules()
    cell.server(f"ip addr add {SECOND_ADDRESS}/24 dev eth0")
    with progress.undoing(lambda: cell.server(f"ip addr delete {SECOND_ADDRESS}/24 dev eth0")):
        option = "proto=rdma,max_connect=2"
        with cell.mounted(cell.mount_command(option=option)):
            cell.client(f"mkdir -p /mnt2 && mount -t nfs -o vers={VERSION},{option},port={PORT} {SECOND_ADDRESS}:/ /mnt2")
            with progress.undoing(lambda: cell.client("umount /mnt2")):
                counts = cell.client("cat /sys/kernel/sunrpc/xprt-switches/*/xprt_switch_info")
                if "num_xprts=2" not in counts:
                    raise progress.Failure(f"no switch has two transports: {counts.strip()}")
                rescuers = cell.client(RESCUERS).strip()
                if rescuers != "1":
                    raise progress.Failure(f"the module's transports have {rescuers} workqueues")
                # A server must not reach by one connection what another one has offered (RFC 8166, section 8.1.1).
                # That of the mount before may be on its way out.
                cell.client("for try in $(seq 250); do test $(rdma resource show pd | grep -c 'comm \\[rpcrdma\\]') = 2 && "
                            "exit 0; sleep 0.2; done; rdma resource show pd >&2; exit 1")
                cell.written("one", FEW_SIZES)
                cell.client("/lab/files.py check /mnt2/t/one", LONG_SECONDS)


def test_tcp_and_rdma_side_by_side(cell: Cell) -> None:
    """The same server mounted over TCP as well: each mount has its own transport, and reads what the other has written.
    A client of NFS 4.1 or later would find that it knows the server, and use one transport for both."""
    cell.load_modules()
    with cell.mounted():
        cell.client(f"mkdir -p /mnt2 && mount -t nfs -o vers=3,proto=tcp,port={TCP_PORT},nolock,mountproto=tcp "
                    "server:/export /mnt2")
        with progress.undoing(lambda: cell.client("umount /mnt2", LONG_SECONDS)):
            kinds = cell.client("awk '$1 == \"xprt:\" {print $2}' /proc/self/mountstats").split()
            if sorted(kinds) != ["rdma", "tcp"]:
                raise progress.Failure(f"the transports of two mounts are: {' '.join(kinds) or 'none'}")
            cell.written("one", FEW_SIZES)
            cell.client(f"/lab/files.py check /mnt2/t/one then make /mnt2/t/two {FEW_SIZES}", LONG_SECONDS)
            cell.same("two")


def test_over_a_link_local_address(cell: Cell) -> None:
    """An address that is one only together with an interface."""
    cell.load_modules()
    found = re.search(r"inet6 (fe80:\S+)/", cell.server("ip -6 addr show dev eth0 scope link"))
    if found is None:
        raise progress.Failure("the server has no link-local address")
    with cell.mounted(cell.mount_command(f"[{found[1]}%eth0]", "proto=rdma6")):
        cell.written("local", FEW_SIZES)


@long
@provokes(LOST, MOVED)
def test_client_in_a_network_namespace(cell: Cell) -> None:
    """A mount in a network namespace that is deleted under it: it goes on, and nothing is left when it has gone."""
    cell.load_modules()
    cell.server("rm -rf /export/t && mkdir -m 777 /export/t")
    cell.client(f"/lab/namespace take {cell.device}")
    with progress.undoing(lambda: cell.client(f"/lab/namespace give {cell.device}")):
        # The mount is seen by those alone who share its mount namespace, and lives as long as they do.
        cell.client(f"rm -f /tmp/load.ready; {{ setsid {INNER} sh -c 'mkdir -p /mnt && {cell.mount_command(SERVER.address4)} && "
                    "/lab/files.py make /mnt/t/inner 4097 300001 && "
                    "/lab/files.py load /mnt/t/load 4' > /tmp/inside 2>&1 < /dev/null & echo $! > /tmp/inside.pid; }; "
                    "for try in $(seq 300); do test -e /tmp/load.ready && exit 0; sleep 0.2; done; cat /tmp/inside >&2; exit 1")
        cell.client("ip netns del inner; sleep 5; read -r group < /tmp/inside.pid; pgrep -g $group > /dev/null && "
                    "! test -s /tmp/inside || { cat /tmp/inside >&2; exit 1; }")
        cell.client("read -r group < /tmp/inside.pid; kill -9 -$group")
    cell.judge("inner", cell.server("cd /export/t/inner && sha256sum *"))
    with cell.mounted():
        cell.still_works()


def test_clients_tunables(cell: Cell) -> None:
    """What /proc/sys/sunrpc of the client has at first, takes and refuses; new mounts and connections use it. Names,
    defaults and ranges; slots and inline sizes have their effect, by the credits asked for in a capture, and by the
    chunks counted."""
    cell.load_modules()
    # As they are when nobody has changed them yet.
    cell.guests.unload_client()
    cell.load_modules()
    wanted = {name: default for name, (_, _, default) in TUNABLES.items()} | {REGION_PAGES: REGION_PAGES_DEFAULT}
    there = dict(zip(wanted, map(int, cell.client(f"cd /proc/sys/sunrpc && cat {' '.join(wanted)}").split())))
    if there != wanted:
        raise progress.Failure(f"defaults are {there}, and not {wanted}")
    # Also none that is not here.
    listed = set(cell.client("cd /proc/sys/sunrpc && ls -d rdma_*").split())
    if listed != wanted.keys() | set(COUNTERS):
        raise progress.Failure(f"tunables are {' '.join(sorted(listed))}, and not {' '.join(sorted(wanted))}")
    usual = {name: there[name] for name in TUNABLES}
    with progress.undoing(lambda: _set(cell, usual)):
        wrong = cell.client(TRY_TUNABLE.format("; ".join(f"try {name} {least} {most}"
                                                         for name, (least, most, _) in TUNABLES.items())))
        if wrong:
            raise progress.Failure("; ".join(wrong.splitlines()))
        for slots, inline in (LITTLE, MUCH):
            _set(cell, {**usual, SLOTS: slots, **dict.fromkeys(INLINE, inline)})
            with cell.captured() as path, cell.mounted():
                cell.written("out", str(MIDDLING))
                words = cell.client("grep -m 1 'xprt:.*rdma' /proc/self/mountstats").split()
            if (asked := capture.asked(path)) != {slots}:
                raise progress.Failure(f"{SLOTS} is {slots}, but asked for were {sorted(asked)}, in {path}")
            reads, writes = int(words[READ_SEGMENTS]), int(words[WRITE_SEGMENTS])
            if bool(reads) != (inline < MIDDLING) or bool(writes) != (inline < MIDDLING):
                raise progress.Failure(f"{MIDDLING} bytes each way, {inline} inline: {reads} segments of Read chunks, "
                                  f"{writes} of Write chunks")


def _set(cell: Cell, values: dict[str, int]) -> None:
    cell.client("cd /proc/sys/sunrpc && " + " && ".join(f"echo {value} > {name}" for name, value in values.items()))


@long
@provokes(MOVED)
def test_referral(cell: Cell) -> None:
    """A directory of a server mounted over TCP is said to be on another one: the client goes there over RDMA."""
    cell.load_modules()
    with progress.undoing(lambda: cell.client("/lab/referral end")):
        cell.client(f"/lab/referral begin /t@{SERVER.address4}")
        with cell.mounted(cell.mount_command("127.0.0.1", "proto=tcp", port=2049),
                          "umount /mnt/elsewhere && umount /mnt", f"/lab/files.py make in {FEW_SIZES}"):
            cell.client(f"/lab/files.py check /mnt/elsewhere/in then make /mnt/elsewhere/out {FEW_SIZES}", LONG_SECONDS)
            found = cell.client("grep ' /mnt/elsewhere ' /proc/mounts")
            if not re.match(rf"{re.escape(SERVER.address4)}:/t \S+ nfs4 \S*\bproto=rdma\b", found):
                raise progress.Failure(f"the directory is mounted thus: {found.strip()}")
            cell.judge("out", cell.server("cd /export/t/out && sha256sum *"))


@long
@provokes(LOST)
def test_another_address_by_sysfs(cell: Cell) -> None:
    """Another address written to `dstaddr` in sysfs: the mount goes on there, and back again."""
    cell.load_modules()
    cell.server(f"ip addr add {SECOND_ADDRESS}/24 dev eth0")
    with progress.undoing(lambda: cell.server(f"ip addr delete {SECOND_ADDRESS}/24 dev eth0")), cell.mounted():
        for address in (SECOND_ADDRESS, SERVER.address4):
            before = cell.connects()
            # Not under load: sunrpc waits until the transport is unlocked, and that goes from task to task.
            cell.client(f"sync; {EACH_DIRECTORY.format(f'echo {address} > $directory/dstaddr')}", LONG_SECONDS)
            with cell.load():
                cell.await_connects(before + 1, LONG_SECONDS)
                _must_be_connected(cell.client, f"dst-addr {address}:{PORT}")
            cell.still_works()


def _must_be_connected(end: Callable[..., str], text: str) -> None:
    """Fail unless an id of a connection at this end says so, which it may do a moment later."""
    end(f"for try in $(seq 250); do rdma resource show cm_id | grep -Eq '{text}( |$)' && exit 0; sleep 0.2; done; "
        "rdma resource show cm_id >&2; exit 1")


@long
@provokes(LOST)
def test_transports_taken_out_by_sysfs(cell: Cell) -> None:
    """Transports are set aside in sysfs; under load they are taken back, removed and added. The first one stays."""
    cell.load_modules()
    with cell.mounted(cell.mount_command(option=f"proto=rdma,nconnect={SWITCHED}")):
        with cell.load():
            cell.client(CONNECTED.format(DIRECTORIES, SWITCHED), LONG_SECONDS)
        # Not under load: sunrpc forgets to count down for a task that it moves to another transport, and then waits for
        # that task for ever.
        offline = "echo offline 2> /dev/null > $directory/xprt_state && echo $directory"
        aside = cell.client(f"sync; {EACH_DIRECTORY.format(offline)}; true", LONG_SECONDS).split()
        if len(aside) != SWITCHED - 1:
            raise progress.Failure(f"{len(aside)} of {SWITCHED} transports can be set aside")
        back, removed, deleted = aside
        for directory in aside:
            cell.client(UNUSED.format(directory), LONG_SECONDS)
        with cell.load():
            cell.client(f"echo online > {back}/xprt_state && echo remove > {removed}/xprt_state && "
                        f"echo 1 > {deleted}/del_xprt")
            cell.client(REMAIN.format(DIRECTORIES, SWITCHED - 2), LONG_SECONDS)
            cell.client(f"echo 1 > {back.rpartition('/')[0]}/add_xprt")
            cell.client(CONNECTED.format(DIRECTORIES, SWITCHED - 1), LONG_SECONDS)
        cell.still_works()


# Of RoCE, where an address that goes takes the connection with it; that of siw lives as long as its TCP is patient.
@long
@provokes(*CANCELS, LINK, NOT_RESPONDING)
def test_client_has_another_address(cell: Cell) -> None:
    """The client has another address from one moment to the next; the mount goes on from there, and back again."""
    cell.load_modules()
    restore = (f"ip addr replace {CLIENT.address4}/24 dev eth0; "
               f"ip addr show dev eth0 | grep -qF {CLIENT_ADDRESS}/ || exit 0; "
               f"ip addr delete {CLIENT_ADDRESS}/24 dev eth0")
    with progress.undoing(lambda: cell.client(restore)), cell.mounted():
        with cell.load():
            for old, new in ((CLIENT.address4, CLIENT_ADDRESS), (CLIENT_ADDRESS, CLIENT.address4)):
                time.sleep(LOAD_SECONDS)
                before = cell.connects()
                cell.client(f"ip addr delete {old}/24 dev eth0 && ip addr add {new}/24 dev eth0")
                cell.await_connects(before + 1, LONG_SECONDS)
                _must_be_connected(cell.server, f"dst-addr {new}:[0-9]*")
        cell.still_works()


@long
@provokes(*CANCELS, LINK, NOT_RESPONDING)
def test_clients_link_down_and_up(cell: Cell) -> None:
    """The client's link goes down under load and comes up again; the mount goes on."""
    cell.load_modules()
    # What an interface that is down forgets.
    up = f"ip link set eth0 up && ip addr replace {CLIENT.address6}/64 dev eth0 nodad"
    with cell.mounted():
        with cell.load():
            for seconds in (0, DOWN_SECONDS):
                time.sleep(LOAD_SECONDS)
                before = cell.connects()
                cell.client("ip link set eth0 down")
                with progress.undoing(lambda: cell.client(up)):
                    time.sleep(seconds)
                    # The connection of siw is one of TCP, which is more patient.
                    if seconds and cell.device == "rxe":
                        cell.client(LOSES_CONNECTION, LONG_SECONDS)
                if seconds and cell.device == "rxe":
                    cell.await_connects(before + 1, LONG_SECONDS)
                life_tests.await_connection(cell)
        cell.still_works()


# Wants a kernel with bonding at the client, which is the stock one.
@long
@provokes(*CANCELS, MOVED, BONDED)
def test_clients_address_moves(cell: Cell) -> None:
    """The client's address goes to another link and back (ADDR_CHANGE); the mount goes on. A bond at the client changes
    its active link; only the stock kernel has bonding."""
    cell.load_modules()
    cell.client(f"/lab/bond enter {cell.device}")
    with progress.undoing(lambda: cell.client(f"/lab/bond leave {cell.device}")), cell.mounted():
        with cell.load():
            for _ in range(MOVES):
                time.sleep(LOAD_SECONDS)
                before = cell.connects()
                cell.client("/lab/bond move")
                cell.await_connects(before + 1, LONG_SECONDS)
        cell.still_works()
