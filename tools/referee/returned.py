"""How the chunks of a Call come back in its Reply (the draft, section 4.5.2.1)."""

from message import Chunk, Message
from receiver import octets_of


def fault(call: Message, reply: Message) -> str | None:
    """What is wrong with the chunks of a Reply."""
    if len(reply.writes) != len(call.writes):
        return f"{len(reply.writes)} Write chunks come back of {len(call.writes)}"
    for number, (offered, came) in enumerate(zip(call.writes, reply.writes, strict=True), 1):
        # An empty chunk says that there is no result for it (the binding, section 5.1.2.1).
        if came and (wrong := _difference(offered, came)):
            return f"Write chunk {number} {wrong}"
    if reply.reply_chunk is not None:
        if call.reply_chunk is None:
            return "there was no Reply chunk"
        if wrong := _difference(call.reply_chunk, reply.reply_chunk):
            return f"the Reply chunk {wrong}"
        if octets_of(reply.reply_chunk) == 0:
            return "the Reply chunk holds nothing"
    return None


def _difference(offered: Chunk, came: Chunk) -> str | None:
    if len(came) != len(offered):
        return f"has {len(came)} segments of {len(offered)}"
    is_full = True
    for old, new in zip(offered, came, strict=True):
        if (old["rdma_handle"], old["rdma_offset"]) != (new["rdma_handle"], new["rdma_offset"]):
            return "has another segment"
        if new["rdma_length"] > old["rdma_length"]:
            return "has more in a segment than there is room"
        if new["rdma_length"] and not is_full:
            return "is not filled in order"
        is_full = new["rdma_length"] == old["rdma_length"]
    return None
