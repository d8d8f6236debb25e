"""The rules of a sender that the judge knows, each with its name and what it says."""

from dataclasses import dataclass

RULES = {
    # The opening (the draft, section 4.3).
    "first-sender": "the client sends the first message",
    "first-type": "the first message is RDMA2_CONNPROP_FINAL",
    "first-size": "the first message has at most 1,024 octets",
    "first-xid": "the first message has an XID that is not 0",
    "patience": "the client sends nothing before the first message is answered",
    "version": "each message has the version that was agreed (section 4.3.3)",
    # Encoding (sections 6.1, 7.2).
    "type": "each message has a known header type",
    "encoding": "a message is exactly what its value encodes to",
    "xid": "the Payload stream of a message begins with the XID of the header",
    "payload-type": "the header type and the RPC message agree whether it is a Call",
    "chunks": "chunk lists are well formed (sections 4.5.1, 6.3.5 to 6.3.8)",
    "inv-handle": "the handle to invalidate is 0 or one of the header (section 6.5)",
    # Flow control (section 4.2.1).
    "credit": "a message is sent only on a credit",
    "grant-credit": "RDMA2_GRANT goes beyond the credits by one at most",
    "credit-backward": "a credit value goes back by no more than what is not used of it",
    "credit-advance": "the credits that are not used are less than 2^31 - 1",
    "grant-answer": "RDMA2_GRANT alone is not answered with RDMA2_GRANT that gives fewer than two more",
    "grant-xid": "the XID of RDMA2_GRANT is 0 (section 6.3.2)",
    # Continuation (sections 6.3.6, 6.3.9).
    "interleaved": "only RDMA2_GRANT and RDMA2_ERROR come between fragments",
    "remaining": "rdma_remaining is what is still to come",
    # Properties (sections 5.1, 6.3.3, 6.3.4).
    "second-final": "no properties follow RDMA2_CONNPROP_FINAL",
    "property-sequence": "only properties follow RDMA2_CONNPROP_MIDDLE",
    "property-size": "a message with properties has at most 4,096 octets, and fits into the Receives of the other end",
    "property-total": "the messages with properties of one end have at most 16,384 octets in all",
    "property-value": "a property has a value of its type",
    # What the other end can take (section 5.2).
    "size": "a message fits into the Receives of the other end",
    "send-size": "a message is no longer than the sender said",
    "segment-size": "a segment is no longer than the other end takes",
    "segment-count": "a Call has no more segments than the other end takes",
    "reverse": "a reverse Call is of a kind that the client takes (section 5.2.5)",
    # Calls, Replies and errors.
    "xid-in-use": "a Call has an XID that no other Call of its sender has that is not answered (section 3.1.3)",
    "reply": "a Reply answers a Call that is not answered yet",
    "returned-chunks": "a Reply returns the chunks of its Call (section 4.5.2.1)",
    "reply-chunk-unused": "a long Reply goes into the Reply chunk if that can hold it (section 6.6.3)",
    "invalidation": "only the end of a Reply invalidates (section 6.5)",
    "invalidated-handle": "what is invalidated is the handle that the Call named (section 6.5)",
    "error": "an error answers a request",
    "error-code": "an error has a known code",
}


@dataclass(frozen=True)
class Finding:
    """A rule that a message breaks, and how."""

    rule: str
    how: str

    def __post_init__(self) -> None:
        assert self.rule in RULES

    def __str__(self) -> str:
        return f"breaks {self.rule}: {RULES[self.rule]}; {self.how}"
