"""Whether what the server's trace events say fits together."""

from collections.abc import Iterator

import progress
from judges.trace_events import Trace, unnamed

# The RPC layer's own event of every Reply, which names the XID.
RPC_EVENT = "sunrpc/svc_xdr_sendto"
# What has to fire on a mount that has carried every form of message.
FIRE = """post_recv wc_recv decode_rqst decode_rseg decode_wseg post_read_chunk wc_read read_finished post_write_chunk
    wc_write post_reply_chunk wc_reply cc_release encode_wseg send_pullup post_send wc_send""".split()
# Each end of the same thing names it alike.
PAIRS = (("post_recv", "wc_recv"), ("wc_recv", "decode_rqst"), ("decode_rqst", "decode_rseg"),
         ("decode_rqst", "decode_wseg"), ("decode_rqst", "read_finished"), ("post_read_chunk", "wc_read"),
         ("post_write_chunk", "wc_write"), ("post_reply_chunk", "wc_reply"), ("post_send", "wc_send"),
         ("post_send", "send_pullup"), ("post_send", "encode_wseg"))


def judge(trace: Trace, payload: int, invalidates: bool) -> None:
    """Fail unless all fired that had to, on a mount where `payload` bytes went each way, and they fit together, and keys of the
    client's were made invalid, or not."""
    trace.tell()
    for complaint in complaints(trace, payload, invalidates):
        raise progress.Failure(complaint)


def complaints(trace: Trace, payload: int, invalidates: bool) -> Iterator[str]:
    """What is wrong."""
    silent = [name for name in FIRE if not trace.named(name)]
    if silent:
        yield f"did not fire: {' '.join(silent)}"
    errors = {event.name for event in trace.events if event.name.endswith("_err")}
    if errors:
        yield f"fired: {' '.join(errors)}"
    yield from unnamed(trace, PAIRS)
    answered, heard = ({event["xid"] for event in trace.named(name)} for name in ("svc_xdr_sendto", "decode_rqst"))
    unheard = answered - heard
    if unheard:
        yield f"Replies to XIDs that were not received: {', '.join(map(hex, unheard))}"
    if any(event["hdrlen"] < 28 or event["vers"] != 1 for event in trace.named("decode_rqst")):
        yield "decode_rqst has a wrong header"
    read = sum(event["totalbytes"] for event in trace.named("wc_read"))
    if read != trace.total("decode_rseg") or read < payload:
        yield f"{read} bytes read, of {trace.total('decode_rseg')} in Read chunks, {payload} of them in one file"
    if not any(event["position"] > 0 and event["position"] % 4 == 0 for event in trace.named("decode_rseg")):
        yield "no Read chunk has a Position"
    written = trace.total("encode_wseg")
    if not payload <= written <= trace.total("decode_wseg"):
        yield f"{written} bytes written, of {trace.total('decode_wseg')} in Write and Reply chunks"
    # One of a Long Reply at most; so there is that of the READ which has met the end of the file, too.
    room = {event.segment.handle: event.segment.length for event in trace.named("decode_wseg")}
    used = [event.segment for event in trace.named("encode_wseg")]
    in_part = sum(0 < segment.length < room.get(segment.handle, 0) for segment in used)
    if in_part <= len(trace.named("post_reply_chunk")):
        yield f"only {in_part} segments were used in part"
    offered = {event.segment.handle for event in trace.named("decode_rseg", "decode_wseg")}
    invalidated = {event["inv_rkey"] for event in trace.named("post_send")} - {0}
    if bool(invalidated) != invalidates:
        yield "keys invalidated" if invalidated else "no key invalidated"
    if not invalidated <= offered:
        yield f"keys invalidated that were not offered: {invalidated - offered}"
