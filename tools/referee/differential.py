"""One side of the differential test: lines of JSON with messages in, lines of JSON with what a receiver makes of them out."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, TextIO

import protocol
from message import Chunk, Message, ReadSegment
from receiver import Accepted, Discarded, Limits, Receiver, Refused, Verdict


def run(source: Iterable[str], sink: TextIO) -> None:
    """Answer each line with a line."""
    for line in source:
        if line.strip():
            print(compact(judge(json.loads(line))), file=sink, flush=True)


def judge(case: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What a receiver makes of the messages of a case. Which XIDs await a Reply does not matter to it: a Reply that nobody
    awaits is well formed, and the RPC layer drops it."""
    receiver = Receiver(case["role"] == "server", Limits(**case["limits"]))
    return [described(receiver.receive(bytes.fromhex(each))) for each in case["messages"]]


def described(verdict: Verdict) -> dict[str, Any]:
    """A verdict as JSON has it."""
    match verdict:
        case Discarded():
            return {"verdict": "discard"}
        case Refused():
            return {"verdict": "refuse", "answers": sorted(answer.encode().hex() for answer in verdict.answers)}
        case Accepted():
            return {"verdict": "accept", **_contents(verdict.message),
                    **({} if verdict.whole is None else {"whole": verdict.whole})}


def compact(value: Any) -> str:
    """JSON that is the same for the same value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _contents(message: Message) -> dict[str, Any]:
    prefix, body = message.prefix, message.body
    # A GRANT is sent without an XID, whatever was received (the draft, section 6.3.2).
    sent = message if prefix.kind != protocol.GRANT else replace(message, prefix=replace(prefix, xid=0))
    contents: dict[str, Any] = {"header": sent.header.hex(), "type": prefix.kind, "xid": prefix.xid,
                                "credits": prefix.credits, "payload": len(message.payload)}
    if "rdma_inv_handle" in body:
        contents["inv_handle"] = body["rdma_inv_handle"]
    if "rdma_call" in body:
        contents["call"] = _reads(message.call_chunk)
    if "rdma_reads" in body:
        contents["reads"] = _reads(message.reads)
    if "rdma_provisional_writes" in body or "rdma_writes" in body:
        contents["writes"] = [_chunk(chunk) for chunk in message.writes]
    if "rdma_provisional_reply" in body or "rdma_reply" in body:
        contents["reply"] = None if message.reply_chunk is None else _chunk(message.reply_chunk)
    if "rdma_remaining" in body:
        contents["remaining"] = body["rdma_remaining"]
    if "rdma_props" in body:
        contents["props"] = [[which, data.hex()] for which, data in message.properties]
    if prefix.kind == protocol.ERROR:
        contents["error"], contents["args"] = message.error
    return contents


def _reads(entries: Iterable[ReadSegment]) -> list[list[int]]:
    return [[entry["rdma_position"], *entry["rdma_target"].values()] for entry in entries]


def _chunk(chunk: Chunk) -> list[list[int]]:
    return [list(segment.values()) for segment in chunk]
