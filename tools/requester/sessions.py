"""What wants a session: NFS 4.2, and Calls of the server (RFC 8167)."""

import nfs
import rpc
from bench import Bench
from case import Case, Difference
from failure import Failure, same
from header import RDMA_ERROR, RDMA_MSG, RDMA_MSGP, RDMA_NOMSG, Header, words
from session import FLAGS, Session
from write_chunks import chunk

# So long that the data of a READ behind it begin with a page; see `aligned`.
PLUS_BYTES = 4096 - 24


def read_plus(bench: Bench) -> None:
    """Nothing of READ_PLUS is eligible (RFC 8267, section 6.1): the Write chunk is for the READ behind it, and stays unused
    if there is none."""
    session, content = Session(bench, minor=2), bench.file.content
    own = [nfs.put(bench.file.handle), nfs.read_plus(content, 8192, PLUS_BYTES)]
    for operations in (own + [nfs.put(bench.file.handle), nfs.read(content, 7777, 1001)], own):
        bench.arena.clear()
        message, xid, place = session.compound(*operations), bench.xid(), chunk(bench, 9000)
        received = session.ask(Header(xid, writes=[place]).encode() + message.call(xid).bytes)
        expected = bench.expected(xid, message.reply(xid), [place], None, False)
        flags = len(Header(xid, writes=[place]).encode()) + len(rpc.accepted(xid).bytes) + FLAGS
        same("Reply", received.message, expected[:flags] + received.message[flags:flags + 4] + expected[flags + 4:])
        bench.arena.check()
    session.close()


def bad_replies(bench: Bench) -> None:
    """The server is the requester of a Call of its own: it discards each bad Reply without a word, and sends no RDMA_ERROR
    (RFC 8166, sections 4.2.4 and 4.5)."""
    session = Session(bench)
    xid = int.from_bytes(session.called()[:4])
    header, answer = Header(xid).encode(), bytes(rpc.accepted(xid).bytes)
    place = bench.arena.take(100)
    for what, message in (
            ("another version", Header(xid, version=2).encode() + answer),
            ("a procedure that is none", Header(xid, 77).encode() + answer),
            ("RDMA_MSGP", Header(xid, RDMA_MSGP).encode() + answer),
            ("a chunk list without end", words(xid, 1, 1, RDMA_MSG, 0, 1, 0xffffffff)),
            ("a long Reply without a chunk", Header(xid, RDMA_NOMSG).encode()),
            ("a long Reply in a chunk that was not offered", Header(xid, RDMA_NOMSG, reply=[place]).encode()),
            ("a Read chunk", Header(xid, reads=[(80, place)]).encode() + answer),
            ("no RPC message", header + answer[:4]), ("two XIDs", header + words(xid ^ 1) + answer[4:]),
            ("neither Call nor Reply", header + answer[:4] + words(2) + answer[8:]),
            ("an error that is none", words(xid, 1, 1, RDMA_ERROR, 99, 0, 0))):
        session.connection.send(message)
        must_go_on(bench, session, what)
    session.connection.send(header + answer)
    must_go_on(bench, session, "the Reply")
    session.close()


def must_go_on(bench: Bench, session: Session, what: str) -> None:
    """Fail unless the answer to another Call is the next message to come."""
    xid, message = bench.xid(), nfs.null()
    try:
        received = session.ask(Header(xid).encode() + message.call(xid).bytes)
        same("Reply", received.message, bench.expected(xid, message.reply(xid), [], None, False))
    except Failure as failure:
        raise Failure(f"{what} is not dropped: {failure}") from failure


CASES = [Case("READ_PLUS with a Write chunk", read_plus,
              Difference("puts the data of READ_PLUS into the Write chunk", "Reply: ")),
         Case("bad Replies to a Call of the server", bad_replies,
              Difference("answers them with errors", "is not dropped"))]
