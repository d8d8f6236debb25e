"""The server's trace events: which there are, which fire, and whether what they say fits together."""

import contextlib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import repository
import say
from machine import Machine

DIRECTORY = "/sys/kernel/tracing"
DOCUMENTATION = repository.ROOT / "Documentation/trace-events.rst"
# What is below this heading there is what the module does not have.
ABSENT = "Not here"
# The RPC layer's own event of every Reply, which names the XID.
REPLY = "sunrpc/svc_xdr_sendto"
# What has to fire on a mount that has carried every form of message.
FIRE = """post_recv wc_recv decode_rqst decode_rseg decode_wseg post_read_chunk wc_read read_finished post_write_chunk
    wc_write post_reply_chunk wc_reply cc_release encode_wseg send_pullup post_send wc_send""".split()
LINE = re.compile(r"\d: (?:svcrdma_)?(\w+): (.*)")
VALUE = re.compile(r"([a-z_.-]+)=(\S+)")
SEGMENT = re.compile(r"(\d+)@0x\w+:(0x\w+)$")


@dataclass(frozen=True)
class Event:
    """One line of a trace."""

    name: str
    text: str
    values: dict[str, str]

    def __getitem__(self, name: str) -> int:
        return int(self.values[name], 0)

    @property
    def request(self) -> tuple[int, int]:
        """What its work request is called."""
        return self["cq.id"], self["cid"]

    @property
    def segment(self) -> tuple[int, int]:
        """Length and handle."""
        found = SEGMENT.search(self.text)
        if found is None:
            raise say.Failure(f"no segment in: {self.name}: {self.text}")
        return int(found[1]), int(found[2], 0)


@dataclass
class Trace:
    """What was recorded."""

    events: list[Event] = field(default_factory=list)

    def named(self, name: str) -> list[Event]:
        return [event for event in self.events if event.name == name]

    def total(self, name: str) -> int:
        """Bytes of all segments."""
        return sum(event.segment[0] for event in self.named(name))


def must_be_those_documented(server: Machine) -> None:
    """Fail unless the module has exactly the events that the documentation lists."""
    there = set(server.must(f"ls {DIRECTORY}/events/rpcrdma | grep -vx enable || true").split()) - {"filter"}
    present, _, absent = DOCUMENTATION.read_text().partition(f"\n{ABSENT}\n")
    listed, without = (set(re.findall(r"^``(\w+)`` ", part, re.MULTILINE)) for part in (present, absent))
    if there != listed or listed & without:
        raise say.Failure(f"{DOCUMENTATION.name} is wrong about: {' '.join(sorted((there ^ listed) | (listed & without)))}")


@contextlib.contextmanager
def recorded(server: Machine) -> Iterator[Trace]:
    """All events of the server for the length of a block; they are in the trace after it."""
    trace = Trace()
    switch = f"for event in rpcrdma {REPLY}; do echo {{}} > events/$event/enable || exit 1; done"
    server.must(f"cd {DIRECTORY} && echo > trace && {switch.format(1)}")
    off = f"cd {DIRECTORY} && {switch.format(0)}"
    with say.undoing(lambda: server.must(off)):
        yield trace
        text = server.must(f"{off} && cat trace")
    for line in text.splitlines():
        found = LINE.search(line)
        if found is not None:
            trace.events.append(Event(found[1], found[2], dict(VALUE.findall(found[2]))))


def judge(trace: Trace, payload: int) -> None:
    """Fail unless all fired that had to, on a mount where `payload` bytes went each way, and they fit together."""
    counts = Counter(event.name for event in trace.events)
    say.line("  events: " + ", ".join(f"{count} {name}" for name, count in sorted(counts.items())))
    for complaint in _complaints(trace, payload):
        raise say.Failure(complaint)


def _complaints(trace: Trace, payload: int) -> Iterator[str]:
    silent = [name for name in FIRE if not trace.named(name)]
    if silent:
        yield f"did not fire: {' '.join(silent)}"
    errors = {event.name for event in trace.events if event.name.endswith("_err")}
    if errors:
        yield f"fired: {' '.join(errors)}"
    # Each end of the same thing names it alike.
    for begin, end in (("post_recv", "wc_recv"), ("wc_recv", "decode_rqst"), ("decode_rqst", "decode_rseg"),
                       ("decode_rqst", "decode_wseg"), ("decode_rqst", "read_finished"), ("post_read_chunk", "wc_read"),
                       ("post_write_chunk", "wc_write"), ("post_reply_chunk", "wc_reply"), ("post_send", "wc_send"),
                       ("post_send", "send_pullup"), ("post_send", "encode_wseg")):
        unknown = {event.request for event in trace.named(end)} - {event.request for event in trace.named(begin)}
        if unknown:
            yield f"{end} of what {begin} has not named: {unknown}"
    unheard = {event["xid"] for event in trace.named("svc_xdr_sendto")} - {event["xid"] for event in trace.named("decode_rqst")}
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
    offered = {event.segment[1] for name in ("decode_rseg", "decode_wseg") for event in trace.named(name)}
    invalidated = {event["inv_rkey"] for event in trace.named("post_send")} - {0}
    if not invalidated or not invalidated <= offered:
        yield f"keys invalidated that were not offered: {invalidated - offered}"
