#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Say how the connections of NFS over RDMA are, from what the module and the RPC layer have in debugfs."""

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

CONNECTIONS = Path("/sys/kernel/debug/rpcrdma/connections")
SUNRPC = Path("/sys/kernel/debug/sunrpc")
MODULE = Path("/sys/module/rpcrdma")
# Where nfsd listens.
PORTS = Path("/proc/fs/nfsd/portlist")
# Lines of the module's file, of which those about something are indented.
CONNECTION = re.compile(r"(?P<end>client|server) of (?P<peer>\S+): version (?:(?P<version>\d+), )?(?P<why>.*)")
TRANSPORT = re.compile(r"transport (?P<number>\d+) to (?P<peer>\S+): (?P<state>.*)")
OUTAGE = re.compile(r"no connection for (?P<seconds>\d+) s\b.*")
CHOICES = ("remote invalidation", "pulls", "continuation", "keep-alive")
# A task of the RPC layer: number, flags, status, client, XID, time left, and what it does where.
TASK = re.compile(r"\s*\d+ [0-9a-f]+ +-?\d+ 0x[0-9a-f]+ (?P<xid>0x[0-9a-f]+) +-?\d+ .* (?P<program>\w+) (?P<procedure>\S+) "
                  r"a:(?P<action>\S+)(?: \[\w+\])? q:(?P<queue>.*)")
# What the queues of the RPC layer are for.
QUEUES = {"xprt_pending": "for a Reply", "xprt_sending": "to be sent", "xprt_backlog": "for a slot",
          "xprt_binding": "for a connection", "delayq": "to try again", "ForeChannel Slot table": "for a slot of the session",
          "none": "for nothing"}
UNITS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


class Failure(Exception):
    """What there is to say to the user."""


class NotLoaded(Failure):
    """There is no module that could say anything."""


@dataclass
class Choice:
    """Something that a connection has or has not, and why, or in what state."""

    on: bool
    note: str


@dataclass
class Connection:
    """A connection of either end, or a transport of a mount that has none."""

    end: str
    peer: str
    netid: str
    # None where there is no connection, or it is not known yet.
    version: int | None = None
    # Why the connection speaks that version.
    why: str = ""
    # The number by which rpcctl knows the transport of a mount.
    transport: int | None = None
    connected: bool = True
    # For how long there is none although that was tried.
    outage_seconds: int = 0
    state: str = "connected"
    device: str = ""
    age_seconds: int | None = None
    inline_send: int | None = None
    inline_receive: int | None = None
    grant: int = 0
    outstanding: int = 0
    # Of a server.
    messages: int | None = None
    # Of a mount.
    attempts: int | None = None
    losses: dict[str, int] = field(default_factory=dict)
    choices: dict[str, Choice] = field(default_factory=dict)
    # The RPCs of a mount, by what they wait for, and the first of them.
    waiting: dict[str, int] = field(default_factory=dict)
    oldest: str = ""


def main() -> int:
    """Print what is asked for. Status 1 if it cannot be had."""
    parser = argparse.ArgumentParser(prog="rpcrdma-status", description=__doc__)
    parser.add_argument("file", nargs="?", type=Path, metavar="FILE", help=f"a copy of {CONNECTIONS}, to be read in its place")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="print a list of objects")
    how.add_argument("--metrics", action="store_true", help="print metrics for the textfile collector of node_exporter")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write to a file, which is replaced in one step")
    parser.add_argument("--version", action="version", version=f"%(prog)s of rpcrdma {_version()}")
    arguments = parser.parse_args()
    try:
        _write(_report(arguments), arguments.output)
    except (Failure, OSError) as failure:
        print(f"rpcrdma-status: {failure}", file=sys.stderr)
        return 1
    return 0


def _report(arguments: argparse.Namespace) -> str:
    """What is asked for."""
    try:
        connections = read(_text(arguments.file))
    except NotLoaded:
        if not arguments.metrics:
            raise
        return "".join(f"{line}\n" for line in _up(0))
    if arguments.file is None:
        _add_tasks(connections)
    if arguments.json:
        return json.dumps([asdict(connection) for connection in connections], indent=2) + "\n"
    if not connections and not arguments.metrics and arguments.file is None:
        return f"no connections; nfsd {'listens' if _listens() else 'does not listen'} for RDMA\n"
    return "".join(f"{line}\n" for line in (metrics if arguments.metrics else table)(connections))


def _write(text: str, file: Path | None) -> None:
    if file is None:
        print(text, end="")
        return
    # Whoever reads it has the one or the other, as a whole.
    new = file.with_name(f".{file.name}.new")
    new.write_text(text)
    new.rename(file)


def _version() -> str:
    try:
        return (MODULE / "version").read_text().strip()
    except OSError:
        return "(not loaded)"


def _text(copy: Path | None) -> str:
    try:
        return (copy or CONNECTIONS).read_text(errors="replace")
    except FileNotFoundError:
        if copy is not None:
            raise
        if not MODULE.exists():
            raise NotLoaded("rpcrdma is not loaded") from None
        raise NotLoaded(f"{CONNECTIONS} is not there: the module is the kernel's own, or debugfs is not mounted") from None
    except PermissionError:
        if copy is not None:
            raise
        raise Failure(f"only root may read {CONNECTIONS}") from None


def read(text: str) -> list[Connection]:
    """The connections of such a file; those of a mount with what it says of the transport."""
    listed: list[Connection] = []
    transports: dict[int, Connection] = {}
    for line, facts in _paragraphs(text):
        if found := CONNECTION.fullmatch(line):
            version = found["version"]
            one = Connection(found["end"], found["peer"], _netid(found["peer"]), int(version) if version else None, found["why"])
            _take(one, facts)
            listed.append(one)
        elif found := TRANSPORT.fullmatch(line):
            one = Connection("client", found["peer"], _netid(found["peer"]), transport=int(found["number"]), state=found["state"])
            one.connected = one.state == "connected"
            if outage := OUTAGE.fullmatch(one.state):
                one.outage_seconds = int(outage["seconds"])
            _take(one, facts)
            transports[int(found["number"])] = one
        else:
            raise Failure(f"this line is not one of {CONNECTIONS.name}: {line}")
    return _joined(listed, transports)


def _joined(listed: list[Connection], transports: dict[int, Connection]) -> list[Connection]:
    """The connections, those of mounts with what is known of their transports; then transports without one."""
    alone = dict(transports)
    for one in listed:
        if one.transport is not None and (transport := transports.get(one.transport)):
            alone.pop(one.transport, None)
            one.connected, one.state, one.outage_seconds = transport.connected, transport.state, transport.outage_seconds
            one.grant, one.outstanding = transport.grant, transport.outstanding
            one.attempts, one.losses = transport.attempts, transport.losses
    return sorted([*listed, *alone.values()], key=lambda one: one.end)


def _paragraphs(text: str) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Each line without an indent, with the names and values of the indented ones below it."""
    # A copy may have blanks for tabs, and lines without anything.
    for paragraph in re.split(r"\n(?=\S)", text.strip()):
        line, *facts = [line for line in paragraph.split("\n") if line.strip()] or [""]
        if line:
            yield line, [(name.strip(), value) for name, _, value in (fact.partition(": ") for fact in facts)]


def _take(one: Connection, facts: list[tuple[str, str]]) -> None:
    """Take what is known here of what is said; the module may say more one day."""
    for name, value in facts:
        number = int(found[0]) if (found := re.match(r"\d+", value)) else 0
        if name in ("device", "transport", "grant", "outstanding", "messages", "attempts"):
            setattr(one, name, value if name == "device" else number)
        elif name == "age":
            one.age_seconds = number
        elif name == "inline" and len(sizes := re.findall(r"\d+", value)) == 2:
            one.inline_send, one.inline_receive = map(int, sizes)
        elif name == "lost":
            one.losses[value.partition(", ")[2]] = number
        elif name in CHOICES:
            state, _, note = value.partition(", ")
            one.choices[name] = Choice(state == "on", note)


def _netid(peer: str) -> str:
    return "rdma6" if peer.startswith("[") else "rdma"


def _add_tasks(connections: list[Connection]) -> None:
    """What RPCs of a mount wait for. All transports of a mount serve the same."""
    for client in SUNRPC.glob("rpc_clnt/*"):
        try:
            peers = {peer_of((link / "info").read_text()) for link in client.glob("xprt*")}
            listed = tasks((client / "tasks").read_text())
        except OSError:
            # It has gone meanwhile.
            continue
        for one in connections:
            if one.end == "client" and one.peer in peers:
                queues = Counter(one.waiting)
                queues.update(waits(task) for task in listed)
                one.waiting = dict(queues)
                if listed and not one.oldest:
                    first = listed[0]
                    one.oldest = f"{first['program']} {first['procedure']}, XID {int(first['xid'], 16):#010x}, waits {waits(first)}"


def tasks(text: str) -> list[re.Match[str]]:
    """Those of such a file that are RPCs."""
    return [found for line in text.splitlines() if (found := TASK.match(line))]


def peer_of(info: str) -> str:
    """The address of a transport, as the module writes it."""
    said = dict(line.split(":", 1) for line in info.splitlines() if ":" in line)
    host, port = said["addr"].strip(), said["port"].strip()
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def waits(task: re.Match[str]) -> str:
    queue = task["queue"].strip()
    # A connection that is being made is waited for in the queue of those that have sent.
    if queue == "xprt_pending" and "connect" in task["action"]:
        return "for a connection"
    return QUEUES.get(queue, f"in {queue}")


def table(connections: list[Connection]) -> Iterator[str]:
    """For people: a line for each connection, and what is to be said of it below."""
    rows = [("END", "PEER", "NETID", "VERSION", "DEVICE", "AGE", "GRANT", "OUTSTANDING", "INLINE")]
    rows += [(one.end, one.peer, one.netid, str(one.version or "-"), one.device or "-", duration(one.age_seconds), str(one.grant),
              str(one.outstanding), "-" if one.inline_send is None else f"{one.inline_send}/{one.inline_receive}")
             for one in connections]
    widths = [max(map(len, column)) for column in zip(*rows)]
    notes: list[list[str]] = [[], *map(_notes, connections)]
    for row, below in zip(rows, notes):
        yield "  ".join(word.ljust(width) for word, width in zip(row, widths)).rstrip()
        yield from (f"    {note}" for note in below)


def _listens() -> bool:
    try:
        return any(line.startswith("rdma ") for line in PORTS.read_text().splitlines())
    except OSError:
        return False


def _notes(one: Connection) -> list[str]:
    notes = [] if one.connected else [one.state]
    if one.version is not None:
        notes.append(f"version {one.version}: {one.why}")
    notes += [f"{name}: {'on' if choice.on else 'off'}{', ' * bool(choice.note)}{choice.note}"
              for name, choice in one.choices.items() if choice.note or choice.on]
    if one.losses:
        notes.append("lost: " + "; ".join(f"{why} ({count})" for why, count in one.losses.items()))
    if one.waiting:
        notes.append("RPCs: " + "; ".join(f"{count} wait {what}" for what, count in one.waiting.items()))
        notes.append(f"the oldest: {one.oldest}")
    return notes


def duration(seconds: int | None) -> str:
    """The two largest units."""
    if seconds is None:
        return "-"
    parts: list[str] = []
    for size, unit in UNITS:
        if seconds >= size or (parts and len(parts) < 2):
            parts.append(f"{seconds // size} {unit}")
            seconds %= size
        if len(parts) == 2:
            break
    return " ".join(parts) or "0 s"


METRICS = (
    ("connected", "gauge", "Whether there is a connection.", lambda one: int(one.connected)),
    ("outage_seconds", "gauge", "For how long there has been no connection, although that was tried.", lambda one: one.outage_seconds),
    ("age_seconds", "gauge", "For how long there has been this connection.", lambda one: one.age_seconds),
    ("grant", "gauge", "Calls that may be outstanding.", lambda one: one.grant),
    ("outstanding", "gauge", "Calls under way.", lambda one: one.outstanding),
    ("messages_total", "counter", "Messages received by a server.", lambda one: one.messages),
    ("attempts_total", "counter", "Connections that a mount has tried to make.", lambda one: one.attempts),
)


def metrics(connections: list[Connection]) -> Iterator[str]:
    """For node_exporter."""
    # Of two with the same labels one is about to go.
    connections = list({tuple(_labels(one).items()): one for one in connections}.values())
    yield from _up(1)
    infos = [({**_labels(one), "netid": one.netid, "device": one.device, "version": str(one.version or ""), "why": one.why,
               **{name.replace("-", "_").replace(" ", "_"): "on" if choice.on else "off" for name, choice in one.choices.items()}}, 1)
             for one in connections]
    yield from _metric("connection_info", "gauge", "What a connection is.", infos)
    for name, kind, text, value in METRICS:
        yield from _metric(name, kind, text, [(_labels(one), number) for one in connections if (number := value(one)) is not None])
    losses = [({**_labels(one), "reason": why}, count) for one in connections for why, count in one.losses.items()]
    yield from _metric("losses_total", "counter", "Connections that a mount has lost.", losses)
    # All transports to a server have the same.
    waiting = {(one.peer, what): count for one in connections for what, count in one.waiting.items()}
    yield from _metric("waiting", "gauge", "RPCs of mounts from a server, by what they wait for.",
                       [({"peer": peer, "what": what}, count) for (peer, what), count in waiting.items()])


def _up(value: int) -> Iterator[str]:
    """Whether there is a module that says anything, and which."""
    yield from _metric("up", "gauge", "Whether this module is loaded.", [({}, value)])
    if value:
        yield from _metric("module_info", "gauge", "The version of the module.", [({"version": _version()}, 1)])


def _labels(one: Connection) -> dict[str, str]:
    """What tells it from all others."""
    number = {} if one.transport is None else {"transport": str(one.transport)}
    return {"end": one.end, "peer": one.peer} | number


def _metric(name: str, kind: str, text: str, values: list[tuple[dict[str, str], int]]) -> Iterator[str]:
    if values:
        yield f"# HELP rpcrdma_{name} {text}"
        yield f"# TYPE rpcrdma_{name} {kind}"
    for labels, number in values:
        said = ",".join(f"{label}={json.dumps(value, ensure_ascii=False)}" for label, value in labels.items())
        yield f"rpcrdma_{name}{{{said}}} {number}" if said else f"rpcrdma_{name} {number}"


if __name__ == "__main__":
    sys.exit(main())
