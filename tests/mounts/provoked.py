"""What kernels say when tests of several files provoke it."""

import re

from judges.messages import Expected

LOST = Expected(40, re.compile(r"rpcrdma: (connection (to|from) \S+ lost: .*|\d+ callbacks suppressed)"),
                "the test breaks connections")
# Its process was killed, so a region was taken back that the server may still write into: the adapter refuses that, and
# the connection ends.
TERMINATED = Expected(10, re.compile(r"siw: got TERMINATE\. layer [01], type 1, code 0"), "no such region any more")
DEBUGGED = Expected(1000, re.compile(r"(rpcrdma: )?(svc|svcrdma): .*"), "the RPC layer of the server is asked to tell")
NOT_RESPONDING = Expected(20, re.compile(r"nfs: server \S+ (not responding, still trying|OK)"), "the server is silent")
# ERESTARTSYS: a killed process was giving back its delegation.
KILLED_IN_RECALL = Expected(10, re.compile(r"NFS: nfs4_handle_delegation_recall_error: unhandled error -512\."),
                            "its process was killed")
# A client of NFS 4.0 cannot say good-bye, so that nfsd waits for it.
MOVED = Expected(12, re.compile(r"NFSD: (Using .* tracking.*|.*no clients to reclaim.*|starting \d+-second grace period.*)|"
                                r"infiniband (rxe|siw)0: .*"),
                 "nfsd and the device come and go")
BONDED = Expected(60, re.compile(r"(bond0|eth0)( \(unregistering\))?: .*|virtio_net virtio\d+ (link0|eth0): renamed from \w+|"
                                 r"RDMA CM addr change for ndev eth0 used by id \w+|"
                                 r"rpcrdma: cannot listen on \S+ any more: ENODEV; trying again"),
                  "a bond is made, changed and unmade")
CANCELS = (LOST, TERMINATED, KILLED_IN_RECALL)
