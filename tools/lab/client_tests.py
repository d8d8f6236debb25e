"""Tests of what concerns the client alone: several connections, addresses of several kinds, network namespaces."""

import re

import say
from cell import FEW_SIZES, LONG_SECONDS, OTHER_PORT, PORT, Cell, Test
from machine import SERVER
from mount_tests import FAULT_INTERVAL, FAULTS, LOST, MOVED

VERSION = "4.2"
CONNECTIONS = 16
# Another address of the same server.
SECOND_ADDRESS = "192.0.2.101"
# The transports of the mount: name, port, and so on; the seventh word counts Calls.
TRANSPORTS = "grep 'xprt:.*rdma' /proc/self/mountstats"
SENDS = 7
INNER = "ip netns exec inner"
# Resolving an address takes 5 s; programs are slow in a guest.
REFUSED_SECONDS = 40


def many_connections(cell: Cell) -> None:
    """`nconnect=16`: each connection is used, and replaced when it breaks."""
    cell.load_modules()
    with cell.mounted(cell.mount_command(option=f"proto=rdma,nconnect={CONNECTIONS}")):
        with cell.broken(cell.guests.client, FAULT_INTERVAL, FAULTS):
            cell.client(f"/lab/files.py workers /mnt/t/workers {2 * CONNECTIONS} 200000", LONG_SECONDS)
        cell.same("workers")
        transports = [line.split() for line in cell.client(TRANSPORTS).splitlines()]
        if len(transports) != CONNECTIONS or any(int(words[SENDS]) == 0 for words in transports):
            raise say.Failure(f"{len(transports)} connections, which sent {[words[SENDS] for words in transports]} Calls")


def trunked(cell: Cell) -> None:
    """`max_connect=2`: a second address of the same server becomes a second connection of the first mount."""
    cell.load_modules()
    cell.server(f"ip addr add {SECOND_ADDRESS}/24 dev eth0")
    with say.undoing(lambda: cell.server(f"ip addr delete {SECOND_ADDRESS}/24 dev eth0")):
        option = "proto=rdma,max_connect=2"
        with cell.mounted(cell.mount_command(option=option)):
            cell.client(f"mkdir -p /mnt2 && mount -t nfs -o vers={VERSION},{option},port={PORT} {SECOND_ADDRESS}:/ /mnt2")
            with say.undoing(lambda: cell.client("umount /mnt2")):
                counts = cell.client("cat /sys/kernel/sunrpc/xprt-switches/*/xprt_switch_info")
                if "num_xprts=2" not in counts:
                    raise say.Failure(f"no switch has two transports: {counts.strip()}")
                cell.written("one", FEW_SIZES)
                cell.client("/lab/files.py check /mnt2/t/one", LONG_SECONDS)


def link_local(cell: Cell) -> None:
    """An address that is one only together with an interface."""
    cell.load_modules()
    found = re.search(r"inet6 (fe80:\S+)/", cell.server("ip -6 addr show dev eth0 scope link"))
    if found is None:
        raise say.Failure("the server has no link-local address")
    with cell.mounted(cell.mount_command(f"[{found[1]}%eth0]", "proto=rdma6")):
        cell.written("local", FEW_SIZES)


def in_namespace(cell: Cell) -> None:
    """A mount in a network namespace that is deleted under it: it goes on, and nothing is left when it has gone."""
    cell.load_modules()
    cell.server("rm -rf /export/t && mkdir -m 777 /export/t")
    cell.client(f"/lab/namespace take {cell.device}")
    with say.undoing(lambda: cell.client(f"/lab/namespace give {cell.device}")):
        # The mount is seen by those alone who share its mount namespace, and lives as long as they do.
        cell.client(f"{{ setsid {INNER} sh -c 'mkdir -p /mnt && {cell.mount_command(SERVER.address4)} && "
                    "/lab/files.py make /mnt/t/inner 4097 300001 && touch /tmp/mounted && "
                    "/lab/files.py load /mnt/t/load 4' > /tmp/inside 2>&1 < /dev/null & echo $! > /tmp/inside.pid; }; "
                    "for try in $(seq 300); do test -e /tmp/mounted && exit 0; sleep 0.2; done; cat /tmp/inside >&2; exit 1")
        cell.client("ip netns del inner; sleep 5; read -r group < /tmp/inside.pid; pgrep -g $group > /dev/null && "
                    "! test -s /tmp/inside || { cat /tmp/inside >&2; exit 1; }")
        cell.client("read -r group < /tmp/inside.pid; kill -9 -$group; rm /tmp/mounted")
    cell.judge("inner", cell.server("cd /export/t/inner && sha256sum *"))
    with cell.mounted():
        cell.still_works()


def refused(cell: Cell) -> None:
    """What a mount says, and how soon, where there is no listener, no device for the address, or no such address."""
    cell.load_modules()
    for port, host, word in ((OTHER_PORT, SERVER.address4, "Connection refused"), (PORT, "192.0.2.77", "No route to host"),
                             (PORT, "198.51.100.1", "Network is unreachable")):
        said = cell.client(f"mkdir -p /mnt; ! mount -t nfs -o vers={cell.version},proto=rdma,port={port},retry=0 {host}:/ /mnt "
                           "2>&1", REFUSED_SECONDS)
        if word not in said:
            raise say.Failure(f"mount from {host}, port {port}: {said.strip()}, and not: {word}")


# For every check.
QUICK = [Test("trunking", trunked), Test("over a link-local address", link_local), Test("errors of mount", refused)]
TESTS = [*QUICK, Test(f"nconnect={CONNECTIONS}", many_connections, (LOST,)),
         Test("client in a network namespace", in_namespace, (LOST, MOVED))]
