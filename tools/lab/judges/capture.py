"""What tshark reads in a capture of the link. It knows nothing of our module, and of version 2 what our dissector does."""

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import progress
from guests import roots
from guests.machine import CLIENT, SERVER
from judges import dissector

FIELDS = ("frame.number", "rpcordma.msg_type", "rpcordma.reads_count", "rpcordma.writes_count",
          "rpcordma.reply_count", "rpcordma.position", "rpcordma.rdma_length", "infiniband.bth.opcode",
          "iwarp_rdma.opcode", "_ws.malformed")
RDMA_MSG, RDMA_NOMSG, RDMA_MSGP, RDMA_DONE = range(4)
# NFS, without the NULL procedure, which has no credential.
CALLS = "rpc.msgtyp == 0 && rpc.program == 100003 && rpc.procedure != 0"
# The protocol that conveys them, and who reads it, by its version.
READERS = {1: ("rpcordma", ("tshark",)), 2: ("rpcrdma2", dissector.TSHARK)}
RPCSEC_GSS, INTEGRITY = 6, 2
# A mount, a file each way, and an end make more Calls than these.
LEAST_PROTECTED = 5
# What begins the block in the private data that says who pulls Replies (Documentation/reliable-reply.rst), and its flags.
PULLS, MAY_PULL, MAY_PROVIDE = bytes.fromhex("72a1c35e01"), 1, 2
PIECE, PIECE_EVERY = 64, 500
# Sends that invalidate one of the receiver's keys: RC last and only; iWARP without and with solicited event.
INFINIBAND_INVALIDATES, IWARP_INVALIDATES = (0x16, 0x17), (4, 6)
INVALIDATION = "remote invalidation"


@dataclass(frozen=True)
class Message:
    """One frame as tshark reads it."""

    frame: str
    kind: int | None
    reads: int
    writes: int
    replies: int
    positions: list[int]
    lengths: list[int]
    invalidates: bool
    malformed: bool


def forms(messages: list[Message]) -> dict[str, int]:
    """How often each form of message is in a capture."""
    return {
        "inline": sum(m.kind == RDMA_MSG and not m.reads and not m.writes and not m.replies for m in messages),
        "Read chunk": sum(m.reads > 0 and any(m.positions) for m in messages),
        "Position Zero Read chunk": sum(m.kind == RDMA_NOMSG and m.reads > 0 and 0 in m.positions for m in messages),
        "Write chunk": sum(m.writes > 0 for m in messages),
        "Reply chunk": sum(m.replies > 0 for m in messages),
        INVALIDATION: sum(m.invalidates for m in messages),
    }


def judge(path: Path, payload: int, invalidates: bool) -> None:
    """Fail unless every form is in the capture and no message is malformed; none may make a key invalid unless `invalidates`.

    A payload of so many bytes, not a multiple of four, went each way: its chunks have to be just as long, since padding
    is not part of a chunk (RFC 8166, sections 3.4.5.2 and 3.4.6.2).
    """
    messages = _well_formed(path)
    counts = forms(messages)
    progress.line("  in the capture: " + ", ".join(f"{count} {form}" for form, count in counts.items()))
    padded = payload + -payload % 4
    for form, found in (("Read", [m for m in messages if m.reads and not m.writes and not m.replies]),
                        ("Write", [m for m in messages if m.writes and not m.reads and not m.replies])):
        lengths = {sum(message.lengths) for message in found}
        if payload not in lengths or padded in lengths:
            raise progress.Failure(f"no {form} chunk of {payload} bytes, or one with padding, in {path}: {sorted(lengths)}")
    absent = [form for form, count in counts.items() if not count and (invalidates or form != INVALIDATION)]
    if counts[INVALIDATION] and not invalidates:
        raise progress.Failure(f"{counts[INVALIDATION]} messages make keys invalid in {path}")
    if absent:
        raise progress.Failure(f"not in the capture {path}: {', '.join(absent)}")


def judge_padding(path: Path, payload: int) -> None:
    """Fail unless each Write chunk of a payload of so many bytes has a segment more, for its padding, into which the
    server has written nothing."""
    chunks = {tuple(message.lengths) for message in _well_formed(path)
              if message.writes and not message.reads and not message.replies and payload in message.lengths}
    wanted = {(payload, -payload % 4), (payload, 0)}
    if chunks != wanted:
        raise progress.Failure(f"Write chunks have segments of {sorted(chunks)} bytes and not of {sorted(wanted)} in {path}")


def judge_security(path: Path, service: int, version: int) -> None:
    """Fail unless the Calls of a capture are protected by RPCSEC_GSS, with the given service (RFC 2203, section 5.3.1).

    Only what a client does for its lease may have another one, that with integrity.
    """
    protocol, reader = READERS[version]
    lines = _lines(path, f"{protocol} && {CALLS}", ("rpc.auth.flavor", "rpc.authgss.service"), reader)
    counts = Counter(_protection(line) for line in lines)
    said = ", ".join(f"{count} Calls with {kind}" for kind, count in counts.items())
    progress.line(f"  in the capture: {said}")
    wanted = f"RPCSEC_GSS service {service}"
    if counts[wanted] < LEAST_PROTECTED or counts.keys() - {wanted, f"RPCSEC_GSS service {INTEGRITY}"}:
        raise progress.Failure(f"not all Calls in {path} are protected by {wanted}, but {said}")


def judge_agreement(path: Path, may_pull: bool, may_provide: bool) -> None:
    """Fail unless the private data in a capture say so of Replies that are pulled, and nothing else."""
    captured = path.read_bytes()
    counts = [captured.count(PULLS + bytes((flags, 0, 0))) for flags in (MAY_PULL, MAY_PROVIDE)]
    found = [count > 0 for count in counts]
    if found != [may_pull, may_provide] or sum(counts) != captured.count(PULLS):
        raise progress.Failure(f"in {path} {counts[0]} clients may pull and {counts[1]} servers may provide")
    _must_not_be_reserved(path, read(path))


def judge_pulled(path: Path) -> None:
    """Fail unless the word that a Reply was pulled makes the key of its first segment invalid, each time, on InfiniBand."""
    offers = _lines(path, f"rpcordma.msg_type == {RDMA_NOMSG} && rpcordma.position == 0 && ip.src == {SERVER.address4}",
                    ("rpcordma.xid", "rpcordma.rdma_handle"))
    provided = {_numbers(xid)[0]: _numbers(keys)[0] for xid, keys in (line.split(";") for line in offers)}
    words = [line.split(";") for line in _lines(path, f"rpcordma.msg_type == {RDMA_DONE} && ip.src == {CLIENT.address4}",
                                                ("rpcordma.xid", "infiniband.ieth"))]
    invalid = {_numbers(xid)[0]: int(keys.partition(",")[0] or "0", 16) for xid, keys in words}
    progress.line(f"  in the capture: {len(provided)} Replies provided, {len(words)} times told that they were pulled")
    if not provided or invalid != provided or len(words) != len(provided):
        raise progress.Failure(f"of {provided} the client makes these keys invalid: {words}, in {path}")


def granted(path: Path) -> set[int]:
    """The grants that are in the server's Replies."""
    replies = f"rpcordma && rpc.msgtyp == 1 && ip.src == {SERVER.address4}"
    return {number for line in _lines(path, replies, ("rpcordma.flow_control",)) for number in _numbers(line)}


def asked(path: Path) -> set[int]:
    """The credits that the client's Calls ask for."""
    calls = f"rpcordma && rpc.msgtyp == 0 && ip.src == {CLIENT.address4}"
    return {number for line in _lines(path, calls, ("rpcordma.flow_control",)) for number in _numbers(line)}


def has_clear_text(path: Path, content: bytes) -> bool:
    """Whether a part of a file's bytes, short enough to be in one packet, is in a capture."""
    captured = path.read_bytes()
    return any(content[at:at + PIECE] in captured for at in range(0, len(content) - PIECE, PIECE_EVERY))


def read(path: Path) -> list[Message]:
    """The RPC-over-RDMA messages and the invalidating Sends of a capture."""
    wanted = ("rpcordma || infiniband.bth.opcode == 0x16 || infiniband.bth.opcode == 0x17 || "
              "iwarp_rdma.opcode == 4 || iwarp_rdma.opcode == 6")
    return [_message(line) for line in _lines(path, wanted, FIELDS)]


def _well_formed(path: Path) -> list[Message]:
    """The messages of a capture, none of which may be malformed."""
    messages = read(path)
    malformed = [message.frame for message in messages if message.malformed and message.kind is not None]
    if malformed:
        raise progress.Failure(f"tshark finds {len(malformed)} malformed messages in {path}: frames "
                          f"{', '.join(malformed[:10])}")
    _must_not_be_reserved(path, messages)
    return messages


def _must_not_be_reserved(path: Path, messages: list[Message]) -> None:
    """Fail if a message has a procedure that nobody may send."""
    found = reserved(messages, path.read_bytes())
    if found:
        raise progress.Failure(f"messages in {path} have a reserved procedure: frames {', '.join(found[:10])}")


def reserved(messages: list[Message], captured: bytes) -> list[str]:
    """The frames of messages whose procedure is reserved (RFC 8166, sections 4.6.1 and 4.6.2): RDMA_MSGP, and RDMA_DONE where not
    both ends have said in what was captured that Replies are pulled."""
    agreed = all(PULLS + bytes((flags, 0, 0)) in captured for flags in (MAY_PULL, MAY_PROVIDE))
    return [each.frame for each in messages if each.kind == RDMA_MSGP or each.kind == RDMA_DONE and not agreed]


def _protection(line: str) -> str:
    """What the credential of a Call says; the second flavor of a frame is that of the verifier."""
    flavors, services = line.split(";")
    flavor = _numbers(flavors)[0]
    return f"RPCSEC_GSS service {services}" if flavor == RPCSEC_GSS else f"flavor {flavor}"


def _lines(path: Path, wanted: str, names: tuple[str, ...], reader: tuple[str, ...] = ("tshark",)) -> list[str]:
    """The fields of each frame that passes a filter."""
    fields = [text for name in names for text in ("-e", name)]
    log = path.with_suffix(".tshark")
    log.unlink(missing_ok=True)
    script = 'out="$1"; shift; exec "$@" > "$out"'
    table = path.with_suffix(".fields")
    roots.tool_root().run(["sh", "-c", script, "sh", str(table), *reader, "-n", "-r", str(path), "-Y", wanted, "-T",
                           "fields", "-E", "separator=;", *fields], log, "tshark could not read the capture")
    return table.read_text().splitlines()


def _message(line: str) -> Message:
    frame, kind, reads, writes, replies, positions, lengths, infiniband, iwarp, malformed = line.split(";")
    invalidates = (any(code in INFINIBAND_INVALIDATES for code in _numbers(infiniband))
                   or any(code in IWARP_INVALIDATES for code in _numbers(iwarp)))
    moved = sum(_numbers(reads)) + sum(_numbers(writes)) > 0
    return Message(frame, _numbers(kind)[0] if kind else None, sum(_numbers(reads)), sum(_numbers(writes)),
                   sum(_numbers(replies)), _numbers(positions), _numbers(lengths), invalidates,
                   _is_malformed(malformed, moved))


def _is_malformed(text: str, moved: bool) -> bool:
    """Whether tshark found a mistake of this transport.

    Where a data item was moved by RDMA beside a message, tshark does not always put the two together again when
    several are under way; it then says so of NFS, whose data are missing, and not of RPC-over-RDMA.
    """
    protocols = re.findall(r"\[Malformed Packet: ([^\]]+)\]", text)
    return bool(text) and not (moved and protocols and all(protocol == "NFS" for protocol in protocols))


def _numbers(text: str) -> list[int]:
    """A field can be in a frame more than once."""
    return [int(part, 0) for part in text.split(",") if part]
