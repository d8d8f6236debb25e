"""Version 2 of RPC-over-RDMA: draft-ietf-nfsv4-rpcrdma-version-two-07 ("the draft"), and draft-ietf-nfsv4-nfs-ulb-v2-07 ("the
binding"). The interpretations are those of Documentation/version-2.rst."""

import credits_2
import errors_2
import messages_2
import negotiation_2
import reverse_2

CASES = [*negotiation_2.CASES, *messages_2.CASES, *credits_2.CASES, *errors_2.CASES]
REVERSE = reverse_2.CASES
