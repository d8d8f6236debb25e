"""A responder that makes Calls of its own of which a client can serve none."""

from dataclasses import replace

from behaviours import Behaviour, null, own_xid
from header import RDMA_MSG, RDMA_MSGP, RDMA_NOMSG, Header, Segment

# More segments than the client looks at, in a message that its Receives have room for.
MANY = 100


class CallsBackWithChunks(Behaviour):
    """Sends a Call of its own that has a chunk now and then, or that cannot be decoded, of each kind in turn. They come in front of
    a Reply: those of which it is known that they are Calls under its XID (RFC 8167, section 2.4.1), as with a Read list, whatever
    is wrong with that (RFC 8166, section 4.3.1); the others under one that no Call has."""

    # A client that has no memory at hand to answer with ends the connection. It has some again when it has sent 12 times,
    # and has been told of it; on a busy machine others come first.
    EVERY = 30

    def __init__(self) -> None:
        self._replies = 0
        self._count = 0

    def reply(self, proxy, offer: Header, message: bytes) -> None:
        self._replies += 1
        if self._replies % self.EVERY == 0:
            forms = self._forms(offer)
            proxy.call_back([forms[self._count % len(forms)]])
            self._count += 1
        proxy.reply(offer, message)

    def _forms(self, offer: Header) -> list[tuple[str, Header, bytes]]:
        call, segment = null(offer.xid), Segment(0x1234, 200, 0x100000)
        header = Header(offer.xid, RDMA_MSG, self.credits)
        read = replace(header, reads=[(len(call), segment)])
        unknown, other_call = replace(header, xid=own_xid(offer, 0)), null(own_xid(offer, 0))
        return [("Read chunk", read, call),
                ("Write chunk", replace(header, writes=[[segment]]), call),
                ("Reply chunk", replace(header, reply=[segment]), call),
                ("very many Read segments", replace(header, reads=[(len(call), segment)] * MANY), call),
                ("very many Write chunks", replace(header, writes=[[]] * MANY), call),
                ("Position off a word", replace(header, reads=[(len(call) + 1, segment)]), call),
                ("Read chunk without a message", read, b""),
                # Under the XID of a Call it counts for a Reply that is provided.
                ("Position Zero Read chunk", replace(unknown, procedure=RDMA_NOMSG, reads=[(0, segment)]), b""),
                ("another version", replace(unknown, version=2), other_call),
                ("a procedure that is none", replace(unknown, procedure=77), other_call),
                ("RDMA_MSGP", replace(unknown, procedure=RDMA_MSGP), bytes(8) + other_call),
                ("RDMA_NOMSG without a chunk", replace(unknown, procedure=RDMA_NOMSG), b""),
                ("a Write chunk that wraps", replace(unknown, writes=[[replace(segment, offset=(1 << 64) - 1)]]), other_call)]


BY_NAME = {"calls-back-with-chunks": CallsBackWithChunks}
