"""A conversation of a raw requester and a raw responder in which all that version 2 has comes once."""

from dataclasses import dataclass, field

import protocol
import conveyed
from ends import End, exchange
from link import Sent
from message import Message
from receiver import octets_of
from conveyed import Call, Reply, call_payload, reply_payload, segment

SIZE = 4096
CLIENT_TELLS = {protocol.SBSIZ: SIZE, protocol.RBSIZ: SIZE, protocol.RSSIZ: 1 << 20, protocol.RCSIZ: 16,
                protocol.BRS: protocol.REVERSE_CONT}
SERVER_TELLS = {protocol.SBSIZ: SIZE, protocol.RBSIZ: SIZE, protocol.RSSIZ: 1 << 20, protocol.RCSIZ: 16,
                protocol.BRS: protocol.REVERSE_NONE}

# The XIDs of what is said, in order.
(PROPERTIES, NULL, WRITE, READ, EXTERNAL, LONG, REVERSE, LONG_REVERSE, TOO_MANY, STREAM, LAST) = range(1, 12)
READ_HANDLE, WRITE_HANDLE, CALL_HANDLE, REPLY_HANDLE = 0x1001, 0x2001, 0x3001, 0x4001
LONG_LENGTH = 9000
# So long that half of the credits are used.
STREAM_LENGTH = 40000


@dataclass
class Conversation:
    """Two ends, and what they have sent so far."""

    messages: list[Sent] = field(default_factory=list)
    client: End = field(default_factory=lambda: End(True, CLIENT_TELLS, _answer))
    server: End = field(default_factory=lambda: End(False, SERVER_TELLS, _answer))

    def run(self) -> list[Sent]:
        """All of it."""
        self.client.tell_properties(PROPERTIES)
        self._go()
        for call in _calls():
            self.client.call(call)
            self._go()
        for xid, length in ((REVERSE, 0), (LONG_REVERSE, LONG_LENGTH)):
            self.server.call(Call(xid, call_payload(xid, 1, bytes(length))))
            self._go()
        # More Read chunks than the server has room for.
        reads = [(64 + 8200 * each, segment(READ_HANDLE + each, 8192, each << 16)) for each in range(3)]
        self.client.call(Call(TOO_MANY, call_payload(TOO_MANY, 1, bytes(64)), reads=reads))
        self._go()
        self.client.call(Call(STREAM, call_payload(STREAM, 1, bytes(STREAM_LENGTH))))
        self._go()
        self.client.call(Call(LAST, call_payload(LAST)))
        self._go()
        return self.messages

    def _go(self) -> None:
        self.messages += exchange((self.client, self.server))


def _calls() -> list[Call]:
    """A NULL; a WRITE of one Read chunk in two segments; a READ into a Write chunk; a Call and a Reply in body chunks; a
    Call and a Reply in fragments."""
    write = [(108, segment(READ_HANDLE, 4096, 0x10000)), (108, segment(READ_HANDLE, 100, 0x20000))]
    into = [segment(WRITE_HANDLE, 4096, 0x30000), segment(WRITE_HANDLE, 4096, 0x40000)]
    return [
        Call(NULL, call_payload(NULL)),
        Call(WRITE, call_payload(WRITE, 1, bytes(68)), reads=write, inv_handle=READ_HANDLE),
        Call(READ, call_payload(READ, 1, bytes(64)), writes=[into], inv_handle=WRITE_HANDLE),
        Call(EXTERNAL, call_payload(EXTERNAL, 1), call_chunk=[segment(CALL_HANDLE, LONG_LENGTH, 0x50000)],
             reads=[(5000, segment(READ_HANDLE + 1, 8192, 0x60000))], writes=[into, []],
             reply=[segment(REPLY_HANDLE, 65536, 0x70000)], inv_handle=REPLY_HANDLE),
        Call(LONG, call_payload(LONG, 1, bytes(LONG_LENGTH)),
             reads=[(96, segment(READ_HANDLE, 4096, 0x80000))], writes=[[]], inv_handle=READ_HANDLE),
    ]


def _answer(call: Message) -> Reply:
    """Writes results into what the Call offers; the Reply of what came in fragments is long."""
    xid = call.prefix.xid
    writes = [conveyed.filled(chunk, 5000) for chunk in call.writes]
    invalidates = call.body["rdma_inv_handle"] or None
    if call.reply_chunk is not None:
        reply = conveyed.filled(call.reply_chunk, min(LONG_LENGTH, octets_of(call.reply_chunk)))
        return Reply(xid, b"", writes, reply, invalidates)
    is_long = xid in (LONG, LONG_REVERSE)
    return Reply(xid, reply_payload(xid, bytes(LONG_LENGTH if is_long else 4)), writes, invalidates=invalidates)
