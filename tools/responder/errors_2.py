"""A responder of version 2 that answers with errors (the draft, section 7)."""

import protocol
from behaviours_2 import Behaviour2
from message import Message, error
from proxy_2 import Asked
from receiver import octets_of

NFS_3_FSSTAT = (100003, 3, 18)
# The words that follow a code: of what limits chunks, more than any Call has.
ENOUGH = 16
ARGUMENTS = {protocol.ERR_VERS: (1, 1), protocol.READ_CHUNKS: (ENOUGH,), protocol.WRITE_CHUNKS: (ENOUGH,),
             protocol.SEGMENTS: (ENOUGH,), protocol.WRITE_RESOURCE: (0, 4096), protocol.REPLY_RESOURCE: (4096,)}
NO_CODE = 99


class RefusesFsstats(Behaviour2):
    """Answers the FSSTAT Calls of NFS 3 with these errors, one after the other, and each that comes again as before."""

    def __init__(self, *codes: int) -> None:
        self._codes = list(codes)
        self._refused: dict[int, int] = {}

    def takes_2(self, proxy, asked: Asked) -> bool:
        if asked.procedure != NFS_3_FSSTAT:
            return True
        if asked.xid not in self._refused:
            if not self._codes:
                return True
            self._refused[asked.xid] = self._codes.pop(0)
        code = self._refused[asked.xid]
        proxy.refuse_2(asked.message.prefix, code, *ARGUMENTS.get(code, ()))
        return False


class ErrsUnknown(Behaviour2):
    """Has an error of a code that nobody knows in front of each Reply."""

    def reply_2(self, proxy, asked: Asked, message: bytes) -> None:
        proxy.end.send([error(asked.message.prefix, 0, NO_CODE)])
        proxy.reply_2(asked, message)


class TakesFew(Behaviour2):
    """Takes no Call of more Read chunks, Write chunks, and segments in a chunk than these, and says how many it takes; and no
    more messages at a time than it may say."""

    def __init__(self, reads: int, writes: int, segments: int, messages: int | None = None) -> None:
        self._reads, self._writes, self._segments, self._messages = reads, writes, segments, messages

    def meets(self, proxy, message: bytes) -> bool:
        if self._messages is not None:
            proxy.end.advertises = self._messages
        return True

    def admits(self, proxy, call: Message) -> bool:
        # A Call chunk is a Read chunk, too (section 4.5.1.2).
        reads = [[entry["rdma_target"] for entry in call.call_chunk]] if call.call_chunk else []
        reads += [chunk for _, chunk in call.read_chunks()]
        chunks = [*reads, *call.writes, call.reply_chunk or ()]
        if len(reads) > self._reads:
            proxy.refuse_2(call.prefix, protocol.READ_CHUNKS, self._reads)
        elif len(call.writes) > self._writes:
            proxy.refuse_2(call.prefix, protocol.WRITE_CHUNKS, self._writes)
        elif max(map(len, chunks)) > self._segments:
            proxy.refuse_2(call.prefix, protocol.SEGMENTS, self._segments)
        else:
            return True
        return False


class HasNoRoom(Behaviour2):
    """Says of the Call of each Reply of more than so many octets, if that offers no Reply chunk, that there is too little
    room, and how much is needed."""

    def __init__(self, longest: int) -> None:
        self._longest = longest

    def reply_2(self, proxy, asked: Asked, message: bytes) -> None:
        room = octets_of(asked.message.reply_chunk or ())
        placed = any(map(octets_of, asked.message.writes))
        if len(message) > max(self._longest, room) and not placed:
            proxy.refuse_2(asked.message.prefix, protocol.REPLY_RESOURCE, len(message))
        else:
            proxy.reply_2(asked, message)


BY_NAME = {"refuses-fsstats": RefusesFsstats, "errs-unknown": ErrsUnknown, "takes-few": TakesFew, "has-no-room": HasNoRoom}
