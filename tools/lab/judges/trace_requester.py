"""Whether what the client's trace events say fits together."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import progress
from judges.trace_events import Event, Segment, Task, Trace, unnamed

# The RPC layer's own event of every message sent, which names task and XID.
RPC_EVENT = "sunrpc/xprt_transmit"
# What has to fire on a mount that has carried every form of message that all versions of NFS have.
FIRE = """op_connect connect inline_thresh createmrs post_recv post_recvs wc_receive marshal post_send wc_send mr_map
    chunk_read chunk_write chunk_reply mr_fastreg reply decode_seg fixup mr_localinv wc_li wc_li_done mr_unmap
    disconnect""".split()
FIRE_CALLBACK = "cb_setup cb_call cb_reply".split()
FIRE_INVALIDATED = ["mr_reminv"]
# What has to fire where connections break.
FIRE_BROKEN = "op_connect connect disconnect marshal post_send reply post_recv wc_receive".split()
# What must not fire where nothing goes wrong. A Call may have to wait for a region.
ERRORS = """reply_vers_err reply_rqst_err reply_short_err reply_hdr_err err_vers err_chunk err_unrecognized
    post_send_err post_recvs_err post_linv_err frwr_alloc frwr_dereg frwr_sgerr frwr_maperr dma_maperr wc_fastreg
    wc_li_wake mrs_zap""".split()
PAIRS = (("post_recv", "wc_receive"), ("post_send", "wc_send"))
INVALIDATED = ("wc_li", "wc_li_done", "wc_li_wake")
SMALLEST_HEADER, READ_SEGMENT, SEGMENT, COUNT, PRESENT = 28, 24, 16, 4, 4
# Of a task that answers a Call of the server.
NO_CLIENT = 0xffffffff

STATUS = re.compile(r"status=\w+ \((\d+)/0x\w+\)")
MARSHAL = re.compile(r"hdr=(\d+) xdr=(\d+)/(\d+)/(\d+) ([*a-z ]+)/([a-z ]+)$")
IS_LAST = re.compile(r"\((last|more)\)$")
RECEIVES = re.compile(r"(\d+) new recvs, (\d+) active$")
THRESHOLDS = re.compile(r"neg send/recv=(\d+)/(\d+), calc send/recv=(\d+)/(\d+)$")
REQUESTS = re.compile(r"(\d+) reqs$")


@dataclass(frozen=True)
class Forms:
    """What a mount has carried beside what every version of NFS has, and whose it is."""

    # The server's address and port, as events show them.
    peer: str
    # Bytes that went each way in one file.
    payload: int
    long_call: bool
    callback: bool
    # Of keys that the server has made invalid.
    invalidated: bool


@dataclass
class Call:
    """One Call as it was encoded, and what was said of its chunks before."""

    marshal: Event
    reads: list[Event] = field(default_factory=list)
    writes: list[Event] = field(default_factory=list)
    replies: list[Event] = field(default_factory=list)

    @property
    def forms(self) -> tuple[str, str]:
        """How it goes out, and how its results come back."""
        return self.marshal.parts(MARSHAL)[4], self.marshal.parts(MARSHAL)[5]

    @property
    def name(self) -> str:
        return f"the Call with XID {self.marshal['xid']:#x}"


def judge(trace: Trace, forms: Forms) -> None:
    """Fail unless all fired that had to on a mount where nothing went wrong, and they fit together."""
    trace.tell()
    for complaint in complaints(trace, forms):
        raise progress.Failure(complaint)


def judge_broken(trace: Trace, peer: str, injected: bool) -> None:
    """The same where connections were broken, by the client's own fault injection or the server's."""
    trace.tell()
    for complaint in complaints_of_broken(trace, peer, injected):
        raise progress.Failure(complaint)


def complaints(trace: Trace, forms: Forms) -> Iterator[str]:
    """What is wrong, where nothing went wrong."""
    wanted = [*FIRE, *(FIRE_CALLBACK if forms.callback else []), *(FIRE_INVALIDATED if forms.invalidated else [])]
    silent = [name for name in wanted if not trace.named(name)]
    if silent:
        yield f"did not fire: {' '.join(silent)}"
        return
    errors = {event.name for event in trace.named(*ERRORS, *([] if forms.invalidated else FIRE_INVALIDATED))}
    if errors:
        yield f"fired: {' '.join(sorted(errors))}"
    yield from _connection(trace, forms.peer)
    yield from _requests(trace)
    yield from _sent_and_received(trace)
    calls = list(_calls(trace))
    for call in calls:
        yield from _call(call)
    seen = {form for call in calls for form in call.forms}
    unseen = {"pullup", "read list", "inline", "write list", "reply chunk"} - seen
    if forms.long_call and "*read list" not in seen:
        unseen.add("*read list")
    if unseen:
        yield f"no Call went by: {', '.join(sorted(unseen))}"
    yield from _answers(trace)
    yield from _regions(trace, calls, may_die=False)
    yield from _payload(trace, calls, forms.payload)


def complaints_of_broken(trace: Trace, peer: str, injected: bool) -> Iterator[str]:
    """What is wrong, where connections were broken."""
    silent = [name for name in [*FIRE_BROKEN, *(["op_inject_dsc"] if injected else [])] if not trace.named(name)]
    if silent:
        yield f"did not fire: {' '.join(silent)}"
        return
    made = [event for event in trace.named("connect") if event["rc"] == 0]
    if len(made) < 2:
        yield f"{len(made)} connections were made"
    if len(trace.named("disconnect")) < len(made):
        yield f"{len(made)} connections were made, and {len(trace.named('disconnect'))} ended"
    if not any(_status(event) for event in trace.named("wc_receive")):
        yield "no Receive was flushed"
    yield from _connection(trace, peer)
    yield from _requests(trace)
    calls = list(_calls(trace))
    for call in calls:
        yield from _call(call)
    yield from _answers(trace)
    yield from _regions(trace, calls, may_die=True)


def _status(event: Event) -> int:
    """That of a completion."""
    return int(event.parts(STATUS)[0])


def _connection(trace: Trace, peer: str) -> Iterator[str]:
    """With whom there are connections, and their thresholds."""
    others = {event.values["peer"] for event in trace.events if "peer" in event.values} - {peer}
    if others:
        yield f"of another server than {peer}: {', '.join(sorted(others))}"
    for event in trace.named("inline_thresh"):
        send, receive, call, reply = map(int, event.parts(THRESHOLDS))
        if (call, reply) != (send - SMALLEST_HEADER, receive - SMALLEST_HEADER):
            yield f"thresholds that do not fit: {event.text}"
    if any(int(event.parts(REQUESTS)[0]) == 0 for event in trace.named("cb_setup")):
        yield "cb_setup asks for nothing"


def _requests(trace: Trace) -> Iterator[str]:
    """Work requests are called alike at their post and at their end, which comes once."""
    yield from unnamed(trace, PAIRS)
    for begin, end in PAIRS:
        begun, ended = (Counter(event.request for event in trace.named(name)) for name in (begin, end))
        twice = ended - begun
        if twice:
            yield f"{end} more often than {begin}: {set(twice)}"


def _sent_and_received(trace: Trace) -> Iterator[str]:
    """There is a Send for each message, and a Receive; and the RPC layer knows of both."""
    # How far the id has come: up, after a success.
    if any((event["rc"], event["status"]) != (0, 1) for event in trace.named("connect")):
        yield "connect does not know that there is a connection"
    new = sum(int(event.parts(RECEIVES)[0]) for event in trace.named("post_recvs"))
    if new != len(trace.named("post_recv")):
        yield f"{new} Receives were posted, by post_recvs, and {len(trace.named('post_recv'))} by post_recv"
    senders = Counter(event.task for event in trace.named("post_send") if event.task.client != NO_CLIENT)
    if senders != Counter(event.task for event in trace.named("marshal")):
        yield "post_send is of other tasks than marshal"
    # Of no client are the first Call of each connection, and the Replies to Calls of the server.
    others = [event for event in trace.named("post_send") if event.task.client == NO_CLIENT]
    firsts, answers = (len(trace.named(name)) for name in ("connect", "cb_reply"))
    if len(others) != firsts + answers:
        yield f"{len(others)} Sends without a client's task, {firsts} connections, and {answers} Replies to the server"
    received = [event for event in trace.named("wc_receive") if _status(event) == 0]
    if any(event["received"] < SMALLEST_HEADER for event in received):
        yield "a message without a header was received"
    # The Replies to those first Calls are of no RPC either.
    heard = firsts + len(trace.named("reply", "cb_call"))
    if len(received) != heard:
        yield f"{len(received)} messages were received, and {heard} were of use"
    unanswered = {event["xid"] for event in trace.named("marshal")} - {event["xid"] for event in trace.named("reply")}
    if unanswered:
        yield f"Calls without a Reply: XIDs {', '.join(map(hex, sorted(unanswered)))}"
    unsent = {event["xid"] for event in trace.named("cb_reply")} - {xid for _, xid in _transmitted(trace)}
    if unsent:
        yield f"Replies to the server that were not sent: XIDs {', '.join(map(hex, sorted(unsent)))}"


def _calls(trace: Trace) -> Iterator[Call]:
    """All Calls that were encoded. What is said of the chunks of a Call comes before, by the same task."""
    chunks: dict[Task, list[Event]] = {}
    for event in trace.named("chunk_read", "chunk_write", "chunk_reply", "marshal", "marshal_failed"):
        if event.name.startswith("chunk_"):
            chunks.setdefault(event.task, []).append(event)
            continue
        mine = chunks.pop(event.task, [])
        if event.name == "marshal":
            yield Call(event, *([each for each in mine if each.name == name]
                                for name in ("chunk_read", "chunk_write", "chunk_reply")))


def _call(call: Call) -> Iterator[str]:
    """What is said of one Call, and of its chunks."""
    marshal, chunks = call.marshal, (call.reads, call.writes, call.replies)
    header, head, pages, tail = map(int, marshal.parts(MARSHAL)[:4])
    wanted = SMALLEST_HEADER + READ_SEGMENT * len(call.reads)
    if call.writes:
        wanted += PRESENT + COUNT + SEGMENT * len(call.writes)
    if call.replies:
        wanted += COUNT + SEGMENT * len(call.replies)
    if header != wanted:
        yield f"{call.name} has a header of {header} bytes, and chunks for one of {wanted}"
    if any(event.segment.offset >> 32 != marshal["xid"] for chunk in chunks for event in chunk):
        yield f"{call.name} has segments of another"
    ends = [[event.parts(IS_LAST)[0] for event in chunk] for chunk in chunks if chunk]
    if any(marks != ["more"] * (len(marks) - 1) + ["last"] for marks in ends):
        yield f"{call.name} has chunks that do not end where they should"
    positions = {event["pos"] for event in call.reads}
    length = sum(event.segment.length for event in call.reads)
    out, back = call.forms
    fits = {"pullup": not call.reads,
            "read list": positions == {head} and head % 4 == 0 and head != 0 and length == pages,
            "*read list": positions == {0} and length == head + pages + tail}
    if not fits.get(out, False):
        yield f"{call.name} goes out as {out}, with Positions {positions or 'none'} and {length} bytes: {marshal.text}"
    if back != ("write list" if call.writes else "reply chunk" if call.replies else "inline"):
        segments = f"{len(call.writes)} and {len(call.replies)} segments"
        yield f"{call.name} gets its results by {back}, with {segments} for them"


def _answers(trace: Trace) -> Iterator[str]:
    """Replies are to Calls, which were sent, by what the RPC layer says."""
    marshaled = {(event.task, event["xid"]) for event in trace.named("marshal")}
    unsent = marshaled - _transmitted(trace)
    if unsent:
        yield f"encoded, but not sent: {_named(unsent)}"
    strange = {(event.task, event["xid"]) for event in trace.named("reply")} - marshaled
    if strange:
        yield f"answered, but not encoded: {_named(strange)}"
    if any(event["credits"] < 1 for event in trace.named("reply")):
        yield "a Reply grants no credit"
    called, replied = ({event["xid"] for event in trace.named(name)} for name in ("cb_call", "cb_reply"))
    if replied - called:
        yield f"answers to what the server has not called: XIDs {', '.join(map(hex, sorted(replied - called)))}"


def _transmitted(trace: Trace) -> set[tuple[Task, int]]:
    """What the RPC layer has sent, over whatever transport."""
    return {(event.task, event["xid"]) for event in trace.named("xprt_transmit") if event["status"] == 0}


def _named(rpcs: set[tuple[Task, int]]) -> str:
    return ", ".join(f"XID {xid:#x} of task {task.number:#x}" for task, xid in sorted(rpcs))


def _regions(trace: Trace, calls: list[Call], may_die: bool) -> Iterator[str]:
    """Each memory region goes from state to state, and is the same in each. It may die with its connection."""
    offered = Counter(event.segment for call in calls for event in (*call.reads, *call.writes, *call.replies))
    registered = Counter(event.segment for event in trace.named("mr_fastreg"))
    # A Call that cannot be posted, since the connection is just going, offers what is not registered.
    if registered - offered or (offered - registered and not may_die):
        yield "the segments of chunks are not the registered ones"
    # What may come before.
    order: dict[str, tuple[str, ...]] = {
        "mr_map": ("mr_unmap",), "mr_fastreg": ("mr_map",),
        "mr_localinv": ("mr_fastreg",), "mr_reminv": ("mr_fastreg",),
        "mr_unmap": ("mr_map", "mr_localinv", "mr_reminv", *(("mr_fastreg",) if may_die else ()))}
    states: dict[int, Event] = {}
    for event in trace.named(*order, *INVALIDATED):
        number = event["mr.id"]
        last = states.get(number)
        if event.name in INVALIDATED:
            if last is None or last.name != "mr_localinv":
                yield f"{event.name} of region {number}, which is not being invalidated"
            continue
        if (last.name if last else "mr_unmap") not in order[event.name]:
            yield f"{event.name} of region {number} after {last.name if last else 'nothing'}"
        elif last is not None and event.name != "mr_map" and not _same(last, event):
            yield f"region {number} is another in {event.name} than in {last.name}: {event.text}"
        states[number] = event
    left = sorted(number for number, event in states.items() if event.name != "mr_unmap")
    if left:
        yield f"still mapped at the end: regions {', '.join(map(str, left))}"
    if not may_die and len(trace.named(*INVALIDATED)) != len(trace.named("mr_localinv")):
        yield "not all local invalidations have ended, or more"


def _same(one: Event, other: Event) -> bool:
    """Whether both are of the same memory, and the same RPC, if both know of one."""
    same_task = "mr_unmap" in (one.name, other.name) or one.task == other.task
    return one.segment == other.segment and same_task


def _payload(trace: Trace, calls: list[Call], payload: int) -> Iterator[str]:
    """The bytes of files went through chunks, both ways, and came back in what was offered for them."""
    read = sum(event.segment.length for call in calls for event in call.reads if event["pos"])
    if read < payload:
        yield f"{read} bytes in Read chunks, but {payload} in one file"
    room = {(event.segment.handle, event.segment.offset): event.segment.length
            for call in calls for event in (*call.writes, *call.replies)}
    for event in trace.named("decode_seg"):
        segment: Segment = event.segment
        if segment.length > room.get((segment.handle, segment.offset), -1):
            yield f"a segment comes back that was not offered: {event.text}"
    written = trace.total("decode_seg")
    if written < payload:
        yield f"{written} bytes were written into chunks, but {payload} of one file"
    if any(event["fixup"] == 0 for event in trace.named("fixup")):
        yield "fixup of nothing"
