"""Tests of the judgement of trace events, by traces written by hand."""

import pytest

import progress
from judges import trace_events, trace_requester, trace_responder
from judges.trace_events import Trace
from judges.trace_requester import Forms

PEER = "[192.0.2.1]:20049"
HEADER = "# tracer: nop\n#\n# entries-in-buffer/entries-written: {0}/{1}   #P:1\n#\n"
FORMS = Forms(PEER, payload=8000, long_call=True, callback=True, invalidated=True)
# A mount that carries each form of message once: inline, Read chunk, Write chunk, Reply chunk, Position Zero Read
# chunk, and a Call of the server.
WHOLE = """\
xprtrdma_op_connect: peer=[192.0.2.1]:20049 delay=0
xprtrdma_createmrs: peer=[192.0.2.1]:20049 created 4 MRs
xprtrdma_post_recv: cq.id=6 cid=0
xprtrdma_post_recv: cq.id=6 cid=1
xprtrdma_post_recv: cq.id=6 cid=2
xprtrdma_post_recvs: peer=[192.0.2.1]:20049 cq.id=6 3 new recvs, 0 active
xprtrdma_inline_thresh: 192.0.2.2:40000 -> 192.0.2.1:20049 neg send/recv=8192/4096, calc send/recv=8164/4068
xprtrdma_post_send: task:00000000@ffffffff cq.id=5 cid=7 (1 SGE)\x20
xprtrdma_wc_receive: cq.id=6 cid=2 status=SUCCESS (0/0x0) received=52
xprtrdma_connect: peer=[192.0.2.1]:20049 rc=0 connection status=1
xprtrdma_cb_setup: peer=[192.0.2.1]:20049 1 reqs
xprtrdma_marshal: task:00000011@00000002 xid=0x00000a01 hdr=28 xdr=100/0/0 pullup/inline
xprtrdma_post_send: task:00000011@00000002 cq.id=5 cid=1 (1 SGE)\x20
xprt_transmit: task:00000011@00000002 xid=0x00000a01 seqno=0 status=0
xprtrdma_wc_receive: cq.id=6 cid=1 status=SUCCESS (0/0x0) received=200
xprtrdma_reply: task:00000011@00000002 xid=0x00000a01 credits=16
xprtrdma_fixup: task:00000011@00000002 fixup=60 xdr=112/4096/4
xprtrdma_mr_map: task:00000012@00000002 mr.id=9 nents=2 8000@0x00000a0200000000:0x00000901 (TO_DEVICE)
xprtrdma_chunk_read: task:00000012@00000002 pos=120 8000@0x00000a0200000000:0x00000901 (last)
xprtrdma_marshal: task:00000012@00000002 xid=0x00000a02 hdr=52 xdr=120/8000/4 read list/inline
xprtrdma_mr_fastreg: task:00000012@00000002 mr.id=9 nents=2 8000@0x00000a0200000000:0x00000901 (TO_DEVICE)
xprtrdma_post_send: task:00000012@00000002 cq.id=5 cid=1 (1 SGE) signaled
xprt_transmit: task:00000012@00000002 xid=0x00000a02 seqno=0 status=0
xprtrdma_wc_send: cq.id=5 cid=1 status=SUCCESS (0/0x0)
xprtrdma_wc_receive: cq.id=6 cid=0 status=SUCCESS (0/0x0) received=128
xprtrdma_reply: task:00000012@00000002 xid=0x00000a02 credits=16
xprtrdma_mr_reminv: task:00000012@00000002 mr.id=9 nents=2 8000@0x00000a0200000000:0x00000901 (TO_DEVICE)
xprtrdma_mr_unmap: mr.id=9 nents=2 8000@0x00000a0200000000:0x00000901 (TO_DEVICE)
xprtrdma_post_recv: cq.id=6 cid=0
xprtrdma_post_recv: cq.id=6 cid=1
xprtrdma_post_recvs: peer=[192.0.2.1]:20049 cq.id=6 2 new recvs, 0 active
xprtrdma_mr_map: task:00000013@00000002 mr.id=9 nents=2 8000@0x00000a0300000010:0x00000902 (FROM_DEVICE)
xprtrdma_chunk_write: task:00000013@00000002 8000@0x00000a0300000010:0x00000902 (last)
xprtrdma_marshal: task:00000013@00000002 xid=0x00000a03 hdr=52 xdr=120/0/0 pullup/write list
xprtrdma_mr_fastreg: task:00000013@00000002 mr.id=9 nents=2 8000@0x00000a0300000010:0x00000902 (FROM_DEVICE)
xprtrdma_post_send: task:00000013@00000002 cq.id=5 cid=2 (1 SGE)\x20
xprt_transmit: task:00000013@00000002 xid=0x00000a03 seqno=0 status=0
xprtrdma_wc_receive: cq.id=6 cid=1 status=SUCCESS (0/0x0) received=180
xprtrdma_reply: task:00000013@00000002 xid=0x00000a03 credits=16
xprtrdma_decode_seg: 8000@0x00000a0300000010:0x00000902
xprtrdma_mr_reminv: task:00000013@00000002 mr.id=9 nents=2 8000@0x00000a0300000010:0x00000902 (FROM_DEVICE)
xprtrdma_mr_unmap: mr.id=9 nents=2 8000@0x00000a0300000010:0x00000902 (FROM_DEVICE)
xprtrdma_mr_map: task:00000014@00000002 mr.id=9 nents=1 200@0x00000a0400000100:0x00000903 (FROM_DEVICE)
xprtrdma_chunk_reply: task:00000014@00000002 200@0x00000a0400000100:0x00000903 (more)
xprtrdma_mr_map: task:00000014@00000002 mr.id=10 nents=2 8192@0x00000a0400000000:0x00000a01 (FROM_DEVICE)
xprtrdma_chunk_reply: task:00000014@00000002 8192@0x00000a0400000000:0x00000a01 (last)
xprtrdma_marshal: task:00000014@00000002 xid=0x00000a04 hdr=64 xdr=120/0/0 pullup/reply chunk
xprtrdma_mr_fastreg: task:00000014@00000002 mr.id=9 nents=1 200@0x00000a0400000100:0x00000903 (FROM_DEVICE)
xprtrdma_mr_fastreg: task:00000014@00000002 mr.id=10 nents=2 8192@0x00000a0400000000:0x00000a01 (FROM_DEVICE)
xprtrdma_post_send: task:00000014@00000002 cq.id=5 cid=1 (1 SGE)\x20
xprt_transmit: task:00000014@00000002 xid=0x00000a04 seqno=0 status=0
xprtrdma_wc_receive: cq.id=6 cid=0 status=SUCCESS (0/0x0) received=64
xprtrdma_reply: task:00000014@00000002 xid=0x00000a04 credits=16
xprtrdma_decode_seg: 200@0x00000a0400000100:0x00000903
xprtrdma_decode_seg: 5000@0x00000a0400000000:0x00000a01
xprtrdma_mr_localinv: task:00000014@00000002 mr.id=9 nents=1 200@0x00000a0400000100:0x00000903 (FROM_DEVICE)
xprtrdma_mr_localinv: task:00000014@00000002 mr.id=10 nents=2 8192@0x00000a0400000000:0x00000a01 (FROM_DEVICE)
xprtrdma_wc_send: cq.id=5 cid=2 status=SUCCESS (0/0x0)
xprtrdma_wc_send: cq.id=5 cid=1 status=SUCCESS (0/0x0)
xprtrdma_wc_li: cq.id=5 mr.id=9 status=SUCCESS (0/0x0)
xprtrdma_wc_li_done: cq.id=5 mr.id=10 status=SUCCESS (0/0x0)
xprtrdma_mr_unmap: mr.id=9 nents=1 200@0x00000a0400000100:0x00000903 (FROM_DEVICE)
xprtrdma_mr_unmap: mr.id=10 nents=2 8192@0x00000a0400000000:0x00000a01 (FROM_DEVICE)
xprtrdma_post_recv: cq.id=6 cid=1
xprtrdma_post_recv: cq.id=6 cid=0
xprtrdma_post_recvs: peer=[192.0.2.1]:20049 cq.id=6 2 new recvs, 0 active
xprtrdma_nomrs_err: task:00000015@00000002 peer=[192.0.2.1]:20049
xprtrdma_marshal_failed: task:00000015@00000002 xid=0x00000a05 ret=-11
xprt_transmit: task:00000015@00000002 xid=0x00000a05 seqno=0 status=-11
xprtrdma_mr_map: task:00000015@00000002 mr.id=10 nents=1 120@0x00000a0500000020:0x00000a02 (TO_DEVICE)
xprtrdma_chunk_read: task:00000015@00000002 pos=0 120@0x00000a0500000020:0x00000a02 (more)
xprtrdma_mr_map: task:00000015@00000002 mr.id=9 nents=3 9000@0x00000a0500000000:0x00000904 (TO_DEVICE)
xprtrdma_chunk_read: task:00000015@00000002 pos=0 9000@0x00000a0500000000:0x00000904 (last)
xprtrdma_marshal: task:00000015@00000002 xid=0x00000a05 hdr=76 xdr=120/8996/4 *read list/inline
xprtrdma_mr_fastreg: task:00000015@00000002 mr.id=10 nents=1 120@0x00000a0500000020:0x00000a02 (TO_DEVICE)
xprtrdma_mr_fastreg: task:00000015@00000002 mr.id=9 nents=3 9000@0x00000a0500000000:0x00000904 (TO_DEVICE)
xprtrdma_post_send: task:00000015@00000002 cq.id=5 cid=3 (1 SGE)\x20
xprt_transmit: task:00000015@00000002 xid=0x00000a05 seqno=0 status=0
xprtrdma_wc_receive: cq.id=6 cid=0 status=SUCCESS (0/0x0) received=96
xprtrdma_reply: task:00000015@00000002 xid=0x00000a05 credits=16
xprtrdma_mr_localinv: task:00000015@00000002 mr.id=10 nents=1 120@0x00000a0500000020:0x00000a02 (TO_DEVICE)
xprtrdma_mr_localinv: task:00000015@00000002 mr.id=9 nents=3 9000@0x00000a0500000000:0x00000904 (TO_DEVICE)
xprtrdma_wc_send: cq.id=5 cid=3 status=SUCCESS (0/0x0)
xprtrdma_wc_li: cq.id=5 mr.id=10 status=SUCCESS (0/0x0)
xprtrdma_wc_li_done: cq.id=5 mr.id=9 status=SUCCESS (0/0x0)
xprtrdma_mr_unmap: mr.id=10 nents=1 120@0x00000a0500000020:0x00000a02 (TO_DEVICE)
xprtrdma_mr_unmap: mr.id=9 nents=3 9000@0x00000a0500000000:0x00000904 (TO_DEVICE)
xprtrdma_wc_receive: cq.id=6 cid=1 status=SUCCESS (0/0x0) received=120
xprtrdma_cb_call: peer=[192.0.2.1]:20049 xid=0x00000b01
xprtrdma_cb_reply: peer=[192.0.2.1]:20049 xid=0x00000b01
xprtrdma_post_send: task:00000016@ffffffff cq.id=5 cid=4 (1 SGE)\x20
xprt_transmit: task:00000016@ffffffff xid=0x00000b01 seqno=0 status=0
xprtrdma_disconnect: peer=[192.0.2.1]:20049 rc=0 connection status=1
"""
# A connection that breaks after a Call was sent, which is then sent again on the next one.
BROKEN = """\
xprtrdma_op_connect: peer=[192.0.2.1]:20049 delay=0
xprtrdma_post_recv: cq.id=6 cid=0
xprtrdma_connect: peer=[192.0.2.1]:20049 rc=0 connection status=1
xprtrdma_mr_map: task:00000012@00000002 mr.id=9 nents=2 8000@0x00000a0200000000:0x00000901 (TO_DEVICE)
xprtrdma_chunk_read: task:00000012@00000002 pos=120 8000@0x00000a0200000000:0x00000901 (last)
xprtrdma_marshal: task:00000012@00000002 xid=0x00000a02 hdr=52 xdr=120/8000/4 read list/inline
xprtrdma_mr_fastreg: task:00000012@00000002 mr.id=9 nents=2 8000@0x00000a0200000000:0x00000901 (TO_DEVICE)
xprtrdma_post_send: task:00000012@00000002 cq.id=5 cid=1 (1 SGE) signaled
xprt_transmit: task:00000012@00000002 xid=0x00000a02 seqno=0 status=0
xprtrdma_op_inject_dsc: peer=[192.0.2.1]:20049
xprtrdma_wc_fastreg: cq.id=5 mr.id=9 status=WR_FLUSH_ERR (5/0x0)
xprtrdma_wc_send: cq.id=5 cid=1 status=WR_FLUSH_ERR (5/0x0)
xprtrdma_wc_receive: cq.id=6 cid=0 status=WR_FLUSH_ERR (5/0x0) received=0
xprtrdma_disconnect: peer=[192.0.2.1]:20049 rc=0 connection status=-103
xprtrdma_mr_unmap: mr.id=9 nents=2 8000@0x00000a0200000000:0x00000901 (TO_DEVICE)
xprtrdma_op_connect: peer=[192.0.2.1]:20049 delay=0
xprtrdma_connect: peer=[192.0.2.1]:20049 rc=-111 connection status=-111
xprtrdma_op_connect: peer=[192.0.2.1]:20049 delay=1250
xprtrdma_post_recv: cq.id=8 cid=0
xprtrdma_connect: peer=[192.0.2.1]:20049 rc=0 connection status=1
xprtrdma_mr_map: task:00000012@00000002 mr.id=14 nents=2 8000@0x00000a0200000000:0x00000e01 (TO_DEVICE)
xprtrdma_chunk_read: task:00000012@00000002 pos=120 8000@0x00000a0200000000:0x00000e01 (last)
xprtrdma_marshal: task:00000012@00000002 xid=0x00000a02 hdr=52 xdr=120/8000/4 read list/inline
xprtrdma_mr_fastreg: task:00000012@00000002 mr.id=14 nents=2 8000@0x00000a0200000000:0x00000e01 (TO_DEVICE)
xprtrdma_post_send: task:00000012@00000002 cq.id=7 cid=1 (1 SGE) signaled
xprt_transmit: task:00000012@00000002 xid=0x00000a02 seqno=0 status=0
xprtrdma_wc_receive: cq.id=8 cid=0 status=SUCCESS (0/0x0) received=128
xprtrdma_reply: task:00000012@00000002 xid=0x00000a02 credits=16
xprtrdma_mr_reminv: task:00000012@00000002 mr.id=14 nents=2 8000@0x00000a0200000000:0x00000e01 (TO_DEVICE)
xprtrdma_mr_unmap: mr.id=14 nents=2 8000@0x00000a0200000000:0x00000e01 (TO_DEVICE)
xprtrdma_disconnect: peer=[192.0.2.1]:20049 rc=0 connection status=1
"""
# What a server says of a WRITE with a Read chunk, and of a READ with a Write chunk and a Reply chunk.
SERVED = """\
svcrdma_post_recv: cq.id=6 cid=0
svcrdma_post_recv: cq.id=6 cid=1
svcrdma_wc_recv: cq.id=6 cid=0 received=180
svcrdma_decode_rseg: cq.id=6 cid=0 segno=0 position=120 8000@0x00000a0200000000:0x00000901
svcrdma_decode_rqst: cq.id=6 cid=0 xid=0x00000a02 vers=1 credits=128 proc=RDMA_MSG hdrlen=52
svcrdma_post_read_chunk: cq.id=5 cid=3 sqecount=1
svcrdma_wc_read: cq.id=5 cid=3 totalbytes=8000 latency-us=90
svcrdma_read_finished: cq.id=6 cid=0
svcrdma_cc_release: cq.id=5 cid=3 sqecount=1
svc_xdr_sendto: xid=0x00000a02 head=[0x0,100] page=0 tail=[0x0,0] len=100
svcrdma_send_pullup: cq.id=5 cid=1 hdr=28 msg=100 (total 128)
svcrdma_post_send: cq.id=5 cid=1 num_sge=1 inv_rkey=0x00000901
svcrdma_wc_send: cq.id=5 cid=1
svcrdma_wc_recv: cq.id=6 cid=1 received=180
svcrdma_decode_wseg: cq.id=6 cid=1 segno=0 8192@0x00000a0300000010:0x00000902
svcrdma_decode_wseg: cq.id=6 cid=1 segno=0 9000@0x00000a0300000010:0x00000a01
svcrdma_decode_rqst: cq.id=6 cid=1 xid=0x00000a03 vers=1 credits=128 proc=RDMA_MSG hdrlen=80
svc_xdr_sendto: xid=0x00000a03 head=[0x0,100] page=8000 tail=[0x0,0] len=8100
svcrdma_post_write_chunk: cq.id=5 cid=4 sqecount=1
svcrdma_post_reply_chunk: cq.id=5 cid=4 sqecount=1
svcrdma_encode_wseg: cq.id=5 cid=2 segno=0 8000@0x00000a0300000010:0x00000902
svcrdma_encode_wseg: cq.id=5 cid=2 segno=0 100@0x00000a0300000010:0x00000a01
svcrdma_post_send: cq.id=5 cid=2 num_sge=1 inv_rkey=0x00000000
svcrdma_wc_send: cq.id=5 cid=2
svcrdma_wc_write: cq.id=5 cid=4
svcrdma_wc_reply: cq.id=5 cid=4
"""


def recorded(lines: str) -> Trace:
    """A trace of these events, as the kernel prints it."""
    events = [f"     kworker/0:1-{number:<6}  [000] .....   12.{number:06}: {line}"
              for number, line in enumerate(lines.splitlines())]
    trace = Trace()
    trace.add(HEADER.format(len(events), len(events)) + "\n".join(events) + "\n")
    return trace


def changed(lines: str, number: int, old: str, new: str) -> str:
    """The same lines; in one with `old` in it, counted from 0, it is `new` instead; if that is empty the line goes."""
    found = [index for index, line in enumerate(lines.splitlines()) if old in line]
    every = lines.splitlines()
    every[found[number]] = every[found[number]].replace(old, new) if new else ""
    return "\n".join(line for line in every if line) + "\n"


def without(lines: str, *parts: str) -> str:
    """The lines that have none of these in them."""
    return "\n".join(line for line in lines.splitlines() if not any(part in line for part in parts))


def complaints(lines: str, forms: Forms = FORMS) -> list[str]:
    return list(trace_requester.complaints(recorded(lines), forms))


def complaints_of_broken(lines: str, injected: bool = True) -> list[str]:
    return list(trace_requester.complaints_of_broken(recorded(lines), PEER, injected))


def complaints_of_served(lines: str, invalidated: bool = True) -> list[str]:
    return list(trace_responder.complaints(recorded(lines), 8000, invalidated))


def test_names_values_and_parts() -> None:
    text = "task:0000001a@ffffffff mr.id=9 nents=2 8000@0x00000a0200000010:0x00000901 (BIDIR)"
    found = recorded(f"xprtrdma_mr_map: {text}").events[0]
    assert (found.name, found["mr.id"], found.task) == ("mr_map", 9, (0x1a, 0xffffffff))
    assert found.segment == (8000, 0xa0200000010, 0x901)
    with pytest.raises(progress.Failure):
        found.parts(trace_requester.MARSHAL)


@pytest.mark.parametrize("text", [HEADER.format(10, 12), "no word of how many"])
def test_lost_events_are_noticed(text: str) -> None:
    with pytest.raises(progress.Failure):
        Trace().add(text)


def test_checked_in_list() -> None:
    fields = trace_events.in_tree()
    for kind, count in (("svcrdma_", 53), ("xprtrdma_", 52), ("rpcrdma_client_", 7), ("", 112)):
        assert len([name for name in fields if name.startswith(kind)]) == count
    assert fields["xprtrdma_post_recv"] == {"u32 cq_id", "int completion_id"}
    assert len(fields["xprtrdma_marshal"]) == 9


def test_every_event_is_documented_once() -> None:
    present, absent = trace_events.documented()
    assert present | absent == set(trace_events.in_tree()) | trace_events.only_here()
    assert not set(trace_events.in_tree()) & trace_events.only_here()
    assert not present & absent


def test_what_lacks_is_told() -> None:
    absent = trace_events.documented()[1]
    whole = {name: set(fields) for name, fields in trace_events.in_tree().items() if name not in absent}
    assert not list(trace_events.missing(whole, absent))
    # More than the in-tree module has is no harm.
    whole["xprtrdma_reply"].add("u32 more")
    assert not list(trace_events.missing(whole, absent))
    whole["xprtrdma_wc_send"].remove("unsigned long status")
    whole["xprtrdma_wc_send"].add("unsigned int status")
    del whole["xprtrdma_connect"]
    connect, status = trace_events.missing(whole, absent)
    assert "xprtrdma_connect" in connect and "unsigned long status" in status


def test_what_fits_together_passes() -> None:
    assert complaints(WHOLE) == complaints_of_broken(BROKEN) == complaints_of_served(SERVED) == []


@pytest.mark.parametrize("name", [*trace_requester.FIRE, *trace_requester.FIRE_CALLBACK, *trace_requester.FIRE_INVALIDATED])
def test_what_has_to_fire(name: str) -> None:
    assert f"did not fire: {name}" in complaints(without(WHOLE, f"xprtrdma_{name}:"))


def test_forms_that_are_not_wanted_everywhere() -> None:
    lines = without(WHOLE, "cb_", "b01", "00000016@ffffffff", "received=120")
    assert complaints(lines, Forms(PEER, 8000, long_call=True, callback=False, invalidated=True)) == []
    long_call = changed(WHOLE, 0, "*read list", "read list")
    assert "no Call went by: *read list" in complaints(long_call)
    assert "no Call went by: *read list" not in complaints(long_call, Forms(PEER, 8000, False, True, True))
    assert "fired: mr_reminv" in complaints(WHOLE, Forms(PEER, 8000, True, True, False))


@pytest.mark.parametrize("name", trace_requester.ERRORS)
def test_errors(name: str) -> None:
    line = f"xprtrdma_{name}: task:00000012@00000002 mr.id=9 status=WR_FLUSH_ERR (5/0x0)\n"
    assert f"fired: {name}" in complaints(WHOLE + line)


@pytest.mark.parametrize(("part", "number", "old", "new"), [
    # Names of work requests.
    ("wc_receive of what post_recv has not named", 0, "receive: cq.id=6 cid=1", "receive: cq.id=6 cid=7"),
    ("wc_send of what post_send has not named", 0, "wc_send: cq.id=5", "wc_send: cq.id=6"),
    # One completion more than posts.
    ("wc_send more often than post_send", 0, "wc_send: cq.id=5 cid=2", "wc_send: cq.id=5 cid=3"),
    ("Receives were posted", 0, "2 new recvs", "3 new recvs"),
    # Sends and Receives.
    ("of other tasks than marshal", 0, "post_send: task:00000012", "post_send: task:00000013"),
    ("Sends without a client's task", 0, "post_send: task:00000016@ffffffff", "post_send: task:00000011@00000002"),
    ("without a header", 0, "received=200", "received=0"),
    ("messages were received", 0, "wc_receive: cq.id=6 cid=1", ""),
    ("Calls without a Reply", 0, "reply: task:00000011", ""),
    ("Replies to the server that were not sent", 0, "xid=0x00000b01 seqno", "xid=0x00000b02 seqno"),
    ("does not know that there is a connection", 0, "connection status=1", "connection status=0"),
    # XIDs.
    ("encoded, but not sent", 0, "xid=0x00000a01 seqno=0 status=0", "xid=0x00000a01 seqno=0 status=-11"),
    ("encoded, but not sent", 0, "xprt_transmit: task:00000011", "xprt_transmit: task:00000012"),
    ("answered, but not encoded", 0, "reply: task:00000012@00000002 xid=0x00000a02",
     "reply: task:00000012@00000002 xid=0x020a0000"),
    ("grants no credit", 0, "credits=16", "credits=0"),
    ("the server has not called", 0, "cb_call: peer=[192.0.2.1]:20049 xid=0x00000b01",
     "cb_call: peer=[192.0.2.1]:20049 xid=0x00000b02"),
    # Addresses and thresholds.
    ("of another server", 0, "delay=0", "delay=0 peer=[192.0.2.7]:20049"),
    ("of another server", 0, "op_connect: peer=[192.0.2.1]:20049", "op_connect: peer=[192.0.2.1]:0"),
    ("thresholds that do not fit", 0, "8164/4068", "8192/4068"),
    ("asks for nothing", 0, "1 reqs", "0 reqs"),
    # Headers and chunks.
    ("has a header of 28 bytes", 0, "hdr=52", "hdr=28"),
    ("has a header of 64 bytes", 0, "chunk_reply: task:00000014", "chunk_reply: task:00000019"),
    ("has segments of another", 0, "chunk_write: task:00000013@00000002 8000@0x00000a03",
     "chunk_write: task:00000013@00000002 8000@0x00000a02"),
    ("do not end where they should", 0, "(more)", "(last)"),
    ("goes out as read list, with Positions {0}", 0, "pos=120", "pos=0"),
    ("goes out as *read list", 0, "xdr=120/8996/4", "xdr=120/8996/0"),
    ("goes out as read list", 0, "xdr=120/8000/4", "xdr=120/7996/4"),
    ("gets its results by inline", 0, "pullup/reply chunk", "pullup/inline"),
    # Regions.
    ("is another in mr_fastreg", 0, "mr_fastreg: task:00000012", "mr_fastreg: task:00000013"),
    ("is another in mr_unmap", 0, "mr_unmap: mr.id=9 nents=2 8000@0x00000a0200000000:0x00000901",
     "mr_unmap: mr.id=9 nents=2 8000@0x00000a0200000000:0x00000902"),
    ("the segments of chunks are not the registered ones", 0, "chunk_write: task:00000013@00000002 8000@",
     "chunk_write: task:00000013@00000002 8004@"),
    ("not the registered ones", 1, "mr_fastreg: task:00000014", ""),
    ("after mr_fastreg", 0, "mr_reminv: task:00000012", ""),
    ("after mr_localinv", 0, "mr_unmap: mr.id=10", ""),
    ("still mapped at the end: regions 9", -1, "mr_unmap: mr.id=9", ""),
    ("which is not being invalidated", 0, "wc_li: cq.id=5 mr.id=9", "wc_li: cq.id=5 mr.id=77"),
    ("not all local invalidations", 0, "wc_li: cq.id=5 mr.id=9", ""),
    # Payload.
    ("that was not offered", 0, "decode_seg: 8000@0x00000a0300000010:0x00000902", "decode_seg: 8000@0x00000a0300000010:0x00000903"),
    ("that was not offered", 0, "decode_seg: 200@", "decode_seg: 204@"),
    ("bytes were written into chunks", 0, "decode_seg: 8000@", "decode_seg: 10@"),
    ("fixup of nothing", 0, "fixup=60", "fixup=0")])
def test_what_does_not_fit(part: str, number: int, old: str, new: str) -> None:
    told = complaints(changed(WHOLE, number, old, new))
    assert any(part in complaint for complaint in told), told


def test_payload() -> None:
    assert any("8001 in one file" in told for told in complaints(WHOLE, Forms(PEER, 8001, True, True, True)))


def test_where_the_server_breaks_it() -> None:
    lines = changed(BROKEN, 0, "op_inject_dsc", "")
    assert complaints_of_broken(lines, injected=False) == []
    assert complaints_of_broken(lines) == ["did not fire: op_inject_dsc"]


@pytest.mark.parametrize(("part", "number", "old", "new"), [
    ("1 connections were made", 1, "rc=0 connection status=1", "rc=-5 connection status=1"),
    ("and 1 ended", 0, "xprtrdma_disconnect", ""),
    ("no Receive was flushed", 0, "wc_receive: cq.id=6 cid=0 status=WR_FLUSH_ERR (5",
     "wc_receive: cq.id=6 cid=0 status=SUCCESS (0"),
    ("wc_receive of what post_recv has not named", 0, "wc_receive: cq.id=8", "wc_receive: cq.id=7"),
    ("mr_map of region 9 after mr_fastreg", 0, "mr_unmap: mr.id=9", ""),
    ("still mapped", 0, "mr_unmap: mr.id=14", ""),
    ("answered, but not encoded", 0, "reply: task:00000012", "reply: task:00000013"),
    ("goes out as read list", 1, "pos=120", "pos=124"),
    ("of another server", 0, "op_inject_dsc: peer=[192.0.2.1]", "op_inject_dsc: peer=[192.0.2.2]")])
def test_what_does_not_fit_where_it_breaks(part: str, number: int, old: str, new: str) -> None:
    lines = changed(BROKEN, number, old, new)
    # The region of the first connection is used once more.
    told = complaints_of_broken(lines.replace("mr.id=14", "mr.id=9") if "mr_map of region 9" in part else lines)
    assert any(part in complaint for complaint in told), told


def test_sent_on_no_connection() -> None:
    unsent = complaints_of_broken(BROKEN.replace("seqno=0 status=0", "seqno=0 status=-107"))
    assert unsent == ["encoded, but not sent: XID 0xa02 of task 0x12"]


@pytest.mark.parametrize(("part", "old", "new"), [
    ("did not fire: cc_release", "cc_release", ""),
    ("fired: sq_post_err", "cc_release", "sq_post_err"),
    ("wc_read of what post_read_chunk has not named", "wc_read: cq.id=5 cid=3", "wc_read: cq.id=5 cid=4"),
    ("Replies to XIDs that were not received: 0xa04", "xid=0x00000a02 head", "xid=0x00000a04 head"),
    ("a wrong header", "vers=1", "vers=2"),
    ("bytes read", "totalbytes=8000", "totalbytes=7996"),
    ("no Read chunk has a Position", "position=120", "position=0"),
    ("bytes written", "encode_wseg: cq.id=5 cid=2 segno=0 8000@", "encode_wseg: cq.id=5 cid=2 segno=0 10@"),
    ("only 1 segments were used in part", "encode_wseg: cq.id=5 cid=2 segno=0 8000@", "encode_wseg: cq.id=5 cid=2 segno=0 8192@"),
    ("keys invalidated that were not offered", "inv_rkey=0x00000901", "inv_rkey=0x00000999")])
def test_what_does_not_fit_at_the_server(part: str, old: str, new: str) -> None:
    told = complaints_of_served(changed(SERVED, 0, old, new))
    assert any(part in complaint for complaint in told), told


def test_keys_invalidated_where_none_may_be() -> None:
    assert "keys invalidated" in complaints_of_served(SERVED, False)
