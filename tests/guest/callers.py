#!/usr/bin/python3 -IS
"""Connects to an NFS server over RDMA, again and again, and leaves at a random moment.

callers.py COUNT SEED [WORKERS]    WORKERS processes make COUNT connections; prints how many were refused meanwhile

It leaves while the connection is asked for, just after it is there, with Calls unanswered, or while the server is
reading a Read chunk; now and then it waits for the answer, and says good-bye.
"""

import contextlib
import os
import random
import signal
import struct
import sys
import time
from collections.abc import Iterator

# Without the site module, which takes a second in a guest.
sys.path.append("/usr/lib/python3/dist-packages")

import pyverbs.cm_enums as ce  # noqa: E402
import pyverbs.enums as e  # noqa: E402
from pyverbs.cmid import CMID, AddrInfo, CMEvent, CMEventChannel, ConnParam  # noqa: E402
from pyverbs.pyverbs_error import PyverbsError  # noqa: E402
from pyverbs.qp import QPCap, QPInitAttr  # noqa: E402

SERVER, PORT = "192.0.2.1", "20049"
CALLS = 8
CHUNK = 200_000
# A server that has gone does not answer at all.
PATIENCE_SECONDS = 3
LONGEST_PAUSE_SECONDS = 0.03
# NULL of NFS 3, with AUTH_NONE twice.
NULL = struct.pack(">8I", 2, 100003, 3, 0, 0, 0, 0, 0)


def rpc(xid: int) -> bytes:
    return struct.pack(">2I", xid, 0) + NULL


def inline(xid: int) -> bytes:
    """A Call without chunks."""
    return struct.pack(">7I", xid, 1, 32, 0, 0, 0, 0) + rpc(xid)


def long(xid: int, key: int, address: int) -> bytes:
    """A Call that is in a Position Zero Read chunk."""
    return struct.pack(">4I", xid, 1, 32, 1) + struct.pack(">4IQ", 1, 0, key, CHUNK, address) + struct.pack(">3I", 0, 0, 0)


@contextlib.contextmanager
def patience() -> Iterator[None]:
    """A call that waits ends after a while."""
    signal.setitimer(signal.ITIMER_REAL, PATIENCE_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


class Refused(Exception):
    """The server did not take the connection."""


class Connection:
    """One connection, from the first question on."""

    def __init__(self) -> None:
        self._channel = CMEventChannel()
        self._id = CMID(creator=self._channel, port_space=ce.RDMA_PS_TCP)
        self._id.resolve_addr(AddrInfo(dst=SERVER, dst_service=PORT, port_space=ce.RDMA_PS_TCP))
        self._await(ce.RDMA_CM_EVENT_ADDR_RESOLVED)
        self._id.resolve_route()
        self._await(ce.RDMA_CM_EVENT_ROUTE_RESOLVED)
        self._id.create_qp(QPInitAttr(qp_type=e.IBV_QPT_RC, cap=QPCap(max_send_wr=2 * CALLS, max_recv_wr=2 * CALLS)))
        self._receive = self._id.reg_msgs(4096 * CALLS)
        self._send = self._id.reg_msgs(4096)
        self._chunk = self._id.reg_read(CHUNK)
        for _ in range(CALLS):
            self._id.post_recv(self._receive, 4096)

    def ask(self) -> None:
        self._id.connect(ConnParam(resources=4, depth=4, retry=6, rnr_retry=7))

    def established(self) -> None:
        self._await(ce.RDMA_CM_EVENT_ESTABLISHED)

    def call(self, message: bytes) -> None:
        self._send.write(message, len(message))
        self._id.post_send(self._send, 0, len(message))

    def call_long(self, xid: int) -> None:
        self._chunk.write(rpc(xid), 40)
        self.call(long(xid, self._chunk.rkey, self._chunk.buf))

    def reply(self) -> None:
        # The server may end before it answers.
        with patience():
            completion = self._id.get_recv_comp()
        if completion is None or completion.status != 0:
            raise Refused

    def goodbye(self) -> None:
        self._id.disconnect()

    def leave(self) -> None:
        """Whatever is under way."""
        for resource in (self._receive, self._send, self._chunk, self._id, self._channel):
            resource.close()

    def _await(self, wanted: int) -> None:
        with patience():
            event = CMEvent(self._channel)
        found = event.event_type
        event.ack_cm_event()
        if found != wanted:
            raise Refused


def pause(luck: random.Random) -> None:
    time.sleep(luck.random() * LONGEST_PAUSE_SECONDS)


def use(connection: Connection, luck: random.Random) -> None:
    """What is done with a connection before it is left; ends anywhere."""
    connection.ask()
    if luck.random() < 0.25:
        return pause(luck)
    connection.established()
    if luck.random() < 0.2:
        return None
    for xid in range(luck.randint(1, CALLS)):
        if luck.random() < 0.3:
            connection.call_long(xid)
        else:
            connection.call(inline(xid))
    if luck.random() < 0.3:
        connection.reply()
        connection.goodbye()
    pause(luck)


def come_and_go(count: int, seed: str) -> int:
    """Make so many that go as far as they are to; how often the server did not take part."""
    luck = random.Random(seed)
    made = refused = 0
    while made < count:
        connection = None
        try:
            connection = Connection()
            use(connection, luck)
            made += 1
        except (Refused, PyverbsError, OSError):
            refused += 1
        finally:
            if connection is not None:
                connection.leave()
    return refused


def main() -> int:
    count, seed, workers = int(sys.argv[1]), sys.argv[2], int((sys.argv[3:] or ["4"])[0])
    signal.signal(signal.SIGALRM, lambda *_: None)
    pipe, end = os.pipe()
    for worker in range(workers):
        if os.fork() == 0:
            refused = come_and_go(count // workers + (worker < count % workers), f"{seed} {worker}")
            os.write(end, struct.pack("I", refused))
            os._exit(0)
    status = [os.wait()[1] for _ in range(workers)]
    os.close(end)
    with os.fdopen(pipe, "rb") as results:
        print(sum(refused for refused, in struct.iter_unpack("I", results.read())))
    return 1 if any(status) else 0


if __name__ == "__main__":
    sys.exit(main())
