"""Trace events of a guest: which there are, what fields they have, and what they say. Whether that fits together is
judged by trace_responder.py and trace_requester.py."""

import contextlib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import progress
import repository
from guests.machine import Machine

DIRECTORY = "/sys/kernel/tracing"
DOCUMENTATION = repository.ROOT / "Documentation/trace-events.rst"
# What is below this heading there is what the module does not have.
ABSENT = "Not here"
ONLY = "Only here"
# Those of the in-tree module.
FIELDS = repository.TESTS / "trace-fields"
DECLARED = re.compile(r"^(\w+)/format:\s*field:(.+?);", re.MULTILINE)
LINE = re.compile(r"\d: (?:(?:svc|xprt)rdma_)?(\w+): (.*)")
# How many events there are in the trace, and how many there were.
KEPT = re.compile(r"entries-in-buffer/entries-written: (\d+)/(\d+)")
VALUE = re.compile(r"([a-z_.-]+)=(\S+)")
SEGMENT = re.compile(r"(\d+)@(0x\w+):(0x\w+)")
TASK = re.compile(r"task:(\w+)@(\w+)")


class Segment(NamedTuple):
    """An RDMA segment."""

    length: int
    offset: int
    handle: int


class Task(NamedTuple):
    """A task of the RPC layer, and its client."""

    number: int
    client: int


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
    def segment(self) -> Segment:
        return Segment(*(int(part, 0) for part in self.parts(SEGMENT)))

    @property
    def task(self) -> Task:
        return Task(*(int(part, 16) for part in self.parts(TASK)))

    def parts(self, pattern: re.Pattern) -> tuple[str, ...]:
        """What a pattern finds in the text, which has to be there."""
        found = pattern.search(self.text)
        if found is None:
            raise progress.Failure(f"not as expected: {self.name}: {self.text}")
        return found.groups()


@dataclass
class Trace:
    """What was recorded."""

    events: list[Event] = field(default_factory=list)

    def named(self, *names: str) -> list[Event]:
        return [event for event in self.events if event.name in names]

    def total(self, name: str) -> int:
        """Bytes of all segments."""
        return sum(event.segment.length for event in self.named(name))

    def add(self, text: str) -> None:
        """Take in what a kernel has recorded."""
        kept = KEPT.search(text)
        if kept is None or kept[1] != kept[2]:
            raise progress.Failure(f"the kernel has not kept all events: {kept[0] if kept else 'it says not how many'}")
        for line in text.splitlines():
            found = LINE.search(line)
            if found is not None:
                self.events.append(Event(found[1], found[2], dict(VALUE.findall(found[2]))))

    def tell(self) -> None:
        """Print how often each event has fired."""
        counts = Counter(event.name for event in self.events)
        progress.line("  events: " + ", ".join(f"{count} {name}" for name, count in sorted(counts.items())))


def documented() -> tuple[set[str], set[str]]:
    """The events that the documentation says are here, and those that it says are not."""
    present, _, absent = DOCUMENTATION.read_text().partition(f"\n{ABSENT}\n")
    listed, without = (set(re.findall(r"^``(\w+)`` ", part, re.MULTILINE)) for part in (present, absent))
    return listed, without


def only_here() -> set[str]:
    """The events that the documentation says the in-tree module has not."""
    part = DOCUMENTATION.read_text().partition(f"\n{ONLY}\n")[2].partition(f"\n{ABSENT}\n")[0]
    return set(re.findall(r"^``(\w+)`` ", part, re.MULTILINE))


def in_tree() -> dict[str, set[str]]:
    """The fields of each event of the in-tree module."""
    fields: dict[str, set[str]] = {}
    name = ""
    for line in FIELDS.read_text().splitlines():
        if line.startswith(" "):
            fields[name].update(part.strip() for part in line.split(";") if part.strip())
        elif line and not line.startswith("#"):
            name = line
            fields[name] = set()
    return fields


def must_be_those_documented(machine: Machine) -> None:
    """Fail unless the module has exactly the events that the documentation lists."""
    there = set(machine.must(f"ls {DIRECTORY}/events/rpcrdma | grep -vx enable || true").split()) - {"filter"}
    listed, without = documented()
    wrong = (there ^ listed) | (listed & without)
    if wrong:
        raise progress.Failure(f"{DOCUMENTATION.name} is wrong about: {' '.join(sorted(wrong))}")


def must_have_fields(machine: Machine) -> None:
    """Fail unless each event of the in-tree module is here with its fields, or documented as not being here."""
    declared: dict[str, set[str]] = {}
    for name, text in DECLARED.findall(machine.must(f"cd {DIRECTORY}/events/rpcrdma && grep 'field:' */format")):
        declared.setdefault(name, set()).add(text)
    for complaint in missing(declared, documented()[1]):
        raise progress.Failure(complaint)


def missing(declared: dict[str, set[str]], absent: set[str]) -> Iterator[str]:
    """What events with these fields lack of those of the in-tree module, of which some are said not to be here."""
    for name, fields in in_tree().items():
        if name in absent:
            continue
        if name not in declared:
            yield f"{name} is neither there nor in {DOCUMENTATION.name}, below {ABSENT}"
        elif fields - declared[name]:
            lacking, there = ("; ".join(sorted(each)) for each in (fields - declared[name], declared[name]))
            yield f"{name} lacks: {lacking}; it has: {there}"


@contextlib.contextmanager
def recorded(machine: Machine, rpc_event: str) -> Iterator[Trace]:
    """All events of a guest, and one of its RPC layer's, for the length of a block; they are in the trace after it."""
    trace = Trace()
    switch = f"for event in rpcrdma {rpc_event}; do echo {{}} > events/$event/enable || exit 1; done"
    machine.must(f"cd {DIRECTORY} && echo > trace && {switch.format(1)}")
    off = f"cd {DIRECTORY} && {switch.format(0)}"
    with progress.undoing(lambda: machine.must(off)):
        yield trace
        text = machine.must(f"{off} && cat trace")
    trace.add(text)


def unnamed(trace: Trace, pairs: tuple[tuple[str, str], ...]) -> Iterator[str]:
    """Of events that are to be about the same work requests, one before the other, those that are not."""
    for begin, end in pairs:
        unknown = {event.request for event in trace.named(end)} - {event.request for event in trace.named(begin)}
        if unknown:
            yield f"{end} of what {begin} has not named: {unknown}"
