"""What the log and rpcrdma-status say of connections that cannot be made, are lost, and are there again."""

import json
import re
from typing import Any

import progress
from guests.cell import LONG_SECONDS, OTHER_PORT, PORT, Cell
from guests.machine import CLIENT, SERVER, Machine
from plan import provokes
from provoked import LOST, NOT_RESPONDING

# Resolving an address takes 5 s; programs are slow in a guest.
REFUSED_SECONDS = 40
# An address without an RDMA device, on a link whose other end need not answer.
ELSEWHERE = "203.0.113.2"
LINK = ("ip link add away type veth peer name home && ip addr add 203.0.113.1/24 dev away && ip link set home up && "
        f"ip link set away up && ip neigh add {ELSEWHERE} lladdr 02:00:00:00:00:02 dev away")
# From where a mount is refused: what mount says, and what the log does.
WHERE = ((OTHER_PORT, SERVER.address4, "Connection refused", "it is refused"),
         (PORT, "192.0.2.77", "No route to host", "there is no answer"),
         (PORT, "198.51.100.1", "Network is unreachable", "there is no route"),
         (PORT, ELSEWHERE, "Protocol error", "no RDMA device leads there"))
# What is said of a mount with a connection, of one without, and of a client of this server.
STATUS = "/lab/rpcrdma_status.py --json"
CONNECTED = {"end": CLIENT.name, "peer": f"{SERVER.address4}:{PORT}", "netid": "rdma", "connected": True, "state": "connected",
             "inline_send": 8192, "inline_receive": 8192}
LOST_STATUS = {"end": CLIENT.name, "peer": f"{SERVER.address4}:{PORT}", "connected": False, "version": None}
SERVING = {"end": SERVER.name, "netid": "rdma", "connected": True, "transport": None, "inline_send": 8192}
# Between two attempts the RPC layer has it sleep for a moment. The NFS client may have something of its own to send.
WAITS = {"for a connection", "to try again"}
LINES = "dmesg | grep -o 'rpcrdma: connection to .*' || true"
UNMADE = "for try in $(seq 100); do dmesg | grep -q 'cannot be made: it is refused' && exit 0; sleep 0.2; done; exit 1"


def test_errors_of_mount(cell: Cell) -> None:
    """What a mount says, and how soon, where there is no listener, no such address, or no device for the address; and
    the log. Without listener, address, route, or RDMA device. What else can happen to an attempt has its error in the
    suites rpcrdma_cm_state and rpcrdma_retriable."""
    _counted_anew(cell)
    cell.client(LINK)
    with progress.undoing(lambda: cell.client("ip link del away")):
        for port, host, word, reason in WHERE:
            said = cell.client(f"mkdir -p /mnt; ! mount -t nfs -o vers={cell.version},proto=rdma,port={port},retry=0 {host}:/ /mnt "
                               "2>&1", REFUSED_SECONDS)
            if word not in said:
                raise progress.Failure(f"mount from {host}, port {port}: {said.strip()}, and not: {word}")
            line = f"rpcrdma: connection to {host}:{port} cannot be made: {reason}"
            if line not in cell.client(LINES).splitlines():
                raise progress.Failure(f"the log lacks: {line}")


@provokes(LOST, NOT_RESPONDING)
def test_outage_in_log_and_status(cell: Cell) -> None:
    """Of an outage the log has its beginning, why it lasts, once, and its end; of a first connection nothing. The status of a
    mount says the same meanwhile, and counts the loss."""
    _counted_anew(cell)
    with cell.mounted():
        _must_be(cell.guests.client, CONNECTED | {"device": f"{cell.device}0/1", "losses": {}, "attempts": 1})
        _must_be(cell.guests.server, SERVING | {"device": f"{cell.device}0/1"})
        cell.guests.stop_serving()
        touched = cell.guests.client.start("touch /mnt/t/meanwhile")
        cell.client(UNMADE, LONG_SECONDS)
        lost = _must_be(cell.guests.client, LOST_STATUS)
        if not re.fullmatch(r"no connection for \d+ s, it is refused", str(lost["state"])) or not WAITS & lost["waiting"].keys():
            raise progress.Failure(f"the status without a server is: {lost}")
        cell.load_modules()
        cell.guests.client.wait(touched, LONG_SECONDS, "a file")
        cell.still_works()
        again = _must_be(cell.guests.client, CONNECTED | {"losses": lost["losses"]})
        if sum(again["losses"].values()) != 1 or again["attempts"] < 3:
            raise progress.Failure(f"the status after an outage is: {again}")
    lines = cell.client(LINES).splitlines()
    wanted = [r"lost: .*", r"cannot be made: it is refused", rf"is up again after \d+ s, on {cell.device}0/1"]
    if len(lines) != len(wanted) or not all(re.search(rf"{SERVER.address4}:{PORT} {pattern}$", line)
                                            for pattern, line in zip(wanted, lines)):
        raise progress.Failure(f"the log has: {'; '.join(lines)}")


def _must_be(machine: Machine, wanted: dict[str, object]) -> dict[str, Any]:
    """The only connection that a machine has, which is as wanted."""
    text = machine.must(STATUS)
    listed = json.loads(text)
    if len(listed) != 1 or any(listed[0][name] != value for name, value in wanted.items()):
        raise progress.Failure(f"{machine.role.name}: the status has not {wanted}: {text}")
    return dict(listed[0])


def _counted_anew(cell: Cell) -> None:
    """Have a module that has not said anything of anybody, since there may be so many lines a minute; and nothing of what it has
    said before, which the lab has read elsewhere."""
    cell.load_modules()
    cell.guests.unload_client()
    cell.load_modules()
    cell.client("dmesg -C")
