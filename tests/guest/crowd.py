#!/usr/bin/python3 -IS
"""Asks an NFS server over RDMA for many connections at once, and does its part until each has an answer.

crowd.py COUNT    prints "asked" when it has asked for all, then how many came to be
"""

import resource
import sys

# Without the site module, which takes a second in a guest.
sys.path.append("/usr/lib/python3/dist-packages")

import pyverbs.cm_enums as ce  # noqa: E402
import pyverbs.enums as e  # noqa: E402
from pyverbs.cmid import CMID, AddrInfo, CMEvent, CMEventChannel, ConnParam  # noqa: E402
from pyverbs.qp import QPCap, QPInitAttr  # noqa: E402

SERVER, PORT = "192.0.2.1", "20049"
# Of a connection: the channel of its events, those of its two completion queues, and some to spare.
FILES_EACH, FILES_BESIDE = 4, 100


class Caller:
    """One connection, and the channel of its events."""

    def __init__(self) -> None:
        self._channel = CMEventChannel()
        self._id = CMID(creator=self._channel, port_space=ce.RDMA_PS_TCP)
        self._id.resolve_addr(AddrInfo(dst=SERVER, dst_service=PORT, port_space=ce.RDMA_PS_TCP))
        self._event()
        self._id.resolve_route()
        self._event()
        self._id.create_qp(QPInitAttr(qp_type=e.IBV_QPT_RC, cap=QPCap(max_send_wr=1, max_recv_wr=1)))

    def ask(self) -> None:
        self._id.connect(ConnParam(resources=4, depth=4, retry=6, rnr_retry=7))

    def came(self) -> bool:
        """Wait for the answer. nfsd may have closed what it accepted by then: of those that have not authenticated, it
        keeps 64."""
        return self._event() == ce.RDMA_CM_EVENT_ESTABLISHED

    def _event(self) -> int:
        event = CMEvent(self._channel)
        found = event.event_type
        event.ack_cm_event()
        return found


def main() -> int:
    count = int(sys.argv[1])
    files = FILES_EACH * count + FILES_BESIDE
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    callers = [Caller() for _ in range(count)]
    for caller in callers:
        caller.ask()
    print("asked", flush=True)
    print(sum(caller.came() for caller in callers), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
