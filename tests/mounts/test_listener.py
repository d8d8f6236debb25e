"""The tests of listeners: each way to start one, and addresses and network namespaces that they are in."""

import time

import progress
import test_callback as callback_tests
from guests.cell import NO_SECURITY, OTHER_PORT, Cell
from guests.machine import SERVER
from guests.pair import IN_TREE
from plan import provokes
from provoked import BONDED, CANCELS, MOVED

LOAD_SECONDS = 6
MOVES = 2
# A listener whose address is free a moment late may be lucky.
ANEW = 10
# Each has another number.
LISTENER = f"rdma resource show cm_id | grep -o 'cm-idn [0-9]* .*state LISTEN.*:{OTHER_PORT}'"


@provokes(MOVED)
def test_listeners(cell: Cell) -> None:
    """Each way to start one; and the statistics of nfsd's pools count what comes in. `rpc.nfsd --rdma`, `rdma=y` in
    nfs.conf, and netlink (nfsdctl) with port 0."""
    cell.load_modules()
    netlink, tcp = f"rdma:{SERVER.address4}", f"tcp:{SERVER.address4}:{OTHER_PORT + 1}"
    configured = f"[nfsd]\\nrdma=y\\nrdma-port={OTHER_PORT}\\n"
    starts = [f"rpc.nfsd --rdma={OTHER_PORT} 4",
              f"cp /etc/nfs.conf /tmp && printf '{configured}' > /etc/nfs.conf && rpc.nfsd 4 && cp /tmp/nfs.conf /etc"]
    # With Kerberos, rpc.gssd wants a listener for TCP.
    if cell.security == NO_SECURITY:
        # Whatever port is free; and the kernel makes all listeners anew when one is taken away.
        starts.append(f"nfsdctl listener +{netlink}:0 && for time in $(seq {ANEW}); do "
                      f"nfsdctl listener +{tcp} && nfsdctl listener -{tcp} || exit 1; done; "
                      f"nfsdctl listener | grep -F {netlink}: && nfsdctl threads 4")
    for start in starts:
        cell.guests.stop_serving()
        cell.server(start)
        port = int(cell.server("sed -n 's/^rdma //p' /proc/fs/nfsd/portlist | head -n 1"))
        before = _enqueued(cell)
        with cell.mounted(cell.mount_command(port=port)):
            cell.written("other", "4097")
        if _enqueued(cell) <= before:
            raise progress.Failure(f"pool_stats counts {before} transports with work before, {_enqueued(cell)} after")
    # What netlink added goes with nfsd alone.
    cell.guests.stop_serving()
    cell.load_modules()


def _enqueued(cell: Cell) -> int:
    """How often a transport of nfsd's had something to do: the third number of each pool."""
    return sum(int(line.split()[2]) for line in cell.server("cat /proc/fs/nfsd/pool_stats").splitlines()
               if not line.startswith("#"))


def _listener(cell: Cell, before: str = "") -> str:
    """The one of now. Where the device does not know an address yet, it comes with the next try, after a second."""
    return cell.server(f"for try in $(seq 250); do now=$({LISTENER}) && test \"$now\" != '{before}' && echo \"$now\" && "
                       f"exit; sleep 0.2; done; echo 'no listener, or that of before: {before}' >&2; exit 1").strip()


@provokes(*CANCELS, MOVED, BONDED)
def test_servers_address_moves(cell: Cell) -> None:
    """The listener's address goes to another link and back (ADDR_CHANGE): it listens again, and the mount goes on. A
    bond's active link changes under load; it wants the stock kernel at the server, which has bonding."""
    cell.load_modules()
    cell.guests.stop_serving()
    cell.server(f"/lab/bond enter {cell.device}")
    with progress.undoing(lambda: cell.server(f"rpc.nfsd 0; /lab/bond leave {cell.device}")):
        # One on all addresses does not hear of it.
        cell.server(f"nfsdctl listener +rdma:{SERVER.address4}:{OTHER_PORT} && nfsdctl threads 4")
        with cell.mounted(cell.mount_command(port=OTHER_PORT)):
            before = cell.connects()
            with cell.load():
                for _ in range(MOVES):
                    time.sleep(LOAD_SECONDS)
                    listener = _listener(cell)
                    cell.server("/lab/bond move")
                    _listener(cell, listener)
                cell.still_works()
            progress.line(f"  {MOVES} moves, {cell.connects() - before} new connections")
    cell.load_modules()


@provokes(MOVED)
def test_server_in_a_network_namespace(cell: Cell) -> None:
    """nfsd, its RDMA device and the link are in a network namespace, of which nothing is left when nfsd has ended."""
    cell.load_modules()
    cell.guests.stop_serving()
    cell.server(f"/lab/namespace enter {cell.device}")
    leave = f"/lab/namespace leave {cell.device}"
    if cell.server_module == IN_TREE and cell.version in callback_tests.CALLED_BACK:
        # That forgets a reference of each transport for callbacks, and with it the namespace.
        leave = f"! {leave}"
    with progress.undoing(lambda: cell.server(leave)), cell.mounted():
        cell.written("inner", "4097 300001")
    cell.load_modules()
