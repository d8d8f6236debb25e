"""`make on-device`: tests of a mount between two real machines, over ssh, and a report of what was found."""

import os
import re
import shlex
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import progress
import repository
from guests.cell import FEW_SIZES, LONG_SECONDS, MANY, NAMES, SUMS_OF, Cell
from judges import statistics_line
from results import Results
from tests.payload import EDGES, MIB, READ_SEGMENTS, REPLY_SEGMENTS, WRITE_SEGMENTS

REPORT = Path(os.environ.get("REPORT") or repository.BUILD / "on-device.txt")
TOOL = repository.ROOT / "tests" / "guest" / "files.py"
LARGE = 16 * MIB
ENTRIES, WORKERS, WORK_BYTES = 5000, 100, 60_000
CONNECTS, BAD_REPLIES = 3, 20
FACTS = """uname -srm; sed -n 's/^PRETTY_NAME=//p' /etc/os-release
cd /sys/module/rpcrdma
echo rpcrdma: version $(cat version 2> /dev/null || echo unknown), taint $(cat taint), build $(od -An -v -tx1 -j16 notes/.note.gnu.build-id | tr -d ' \\n')
for device in /sys/class/infiniband/*; do test -e $device || continue
echo $(basename $device): driver $(basename $(readlink -f $device/device/driver)), \\
firmware $(cat $device/fw_ver 2> /dev/null)
for port in $device/ports/*; do echo "  port $(basename $port):" $(cat $port/link_layer $port/state $port/rate); done; done
dmesg | grep 'rpcrdma: ' | tail -n 20
cd /proc/sys/sunrpc && grep -s . *rdma* svc_rdma/* || true"""
# As the kernel writes addresses.
ADDRESS = re.compile(r"\d+\.\d+\.\d+\.\d+(:\d+)?|\[?[0-9a-f]*(:[0-9a-f]*){2,}\]?(:\d+)?")


class Machine(Protocol):
    """One end: a command is run there, and must succeed within some time."""

    def must(self, command: str, seconds: float) -> str:
        """What it prints."""


@dataclass(frozen=True)
class Remote:
    """A machine that ssh reaches without asking for a password."""

    host: str
    ssh: tuple[str, ...]

    def must(self, command: str, seconds: float) -> str:
        return self._run(command, seconds, None)

    def copy(self, source: Path, target: str) -> None:
        """Put a file there, which may be executed."""
        self._run(f"cat > {target} && chmod +x {target}", LONG_SECONDS, source.read_bytes())

    def _run(self, command: str, seconds: float, given: bytes | None) -> str:
        argv = [*self.ssh, self.host, f"set -e; {command}"]
        try:
            done = subprocess.run(argv, input=given if given is not None else b"", capture_output=True, timeout=seconds)
        except subprocess.TimeoutExpired:
            raise progress.TimedOut(f"{self.host}: still running after {seconds:.0f} s: {command}") from None
        if done.returncode != 0:
            why = done.stderr.decode(errors="replace").strip()
            raise progress.Failure(f"{self.host}: `{command}` ended with status {done.returncode}: {why}")
        return done.stdout.decode(errors="replace")


@dataclass(frozen=True)
class Place:
    """A directory of our own on a mount, as a shell of either end is told of it, and the tool that makes and checks files."""

    client: Machine
    server: Machine
    here: str
    there: str
    tool: str

    def small(self) -> None:
        """Small files and symbolic links, from each end to the other."""
        tool = self.tool
        self.server.must(f"{tool} make {self.there}/in {FEW_SIZES} then link {self.there}/links", LONG_SECONDS)
        self.client.must(f"{tool} make {self.here}/out {FEW_SIZES} then forget then check {self.here}/out then "
                         f"check {self.here}/in --direct then follow {self.here}/links", LONG_SECONDS)
        self._judge("out")

    def sizes(self) -> None:
        """Through the page cache and past it, on page boundaries and off them."""
        for name, mode in (("cached", ""), ("direct", "--direct"), ("odd", "--direct --odd")):
            path = f"{self.here}/{name} {mode}"
            self.client.must(f"{self.tool} make {path} {EDGES} {LARGE} then forget then check {path}", LONG_SECONDS)
            self._judge(name)

    def directory(self) -> None:
        """The names of many entries."""
        there = self.server.must(f"cd {self.there} && {MANY.format(ENTRIES)} && {NAMES.format('.')}", LONG_SECONDS)
        if self.client.must(NAMES.format(f"{self.here}/many"), LONG_SECONDS) != there:
            raise progress.Failure("the client lists other names than the server has")

    def workers(self) -> None:
        """Many processes write, read back and compare at the same time."""
        self.client.must(f"{self.tool} workers {self.here}/workers {WORKERS} {WORK_BYTES} then forget then "
                         f"check {self.here}/workers", LONG_SECONDS)
        self._judge("workers")

    def keys(self, counted: Callable[[], list[int]]) -> str:
        """How many keys 1 MiB of READ and of WRITE, and a directory, take."""
        self.server.must(f"truncate -s {MIB} {self.there}/read", LONG_SECONDS)
        copy = "dd bs=1M count=1 status=none"
        before = counted()
        self.client.must(f"{copy} if={self.here}/read of=/dev/null iflag=direct && {copy} if=/dev/zero "
                         f"of={self.here}/written oflag=direct && ls {self.here}/many > /dev/null", LONG_SECONDS)
        made = [now - then for now, then in zip(counted(), before)]
        words = ("READ of 1 MiB", "WRITE of 1 MiB", f"directory of {ENTRIES:,}")
        return ", ".join(f"{word}: {count}" for word, count in zip(words, made))

    def _judge(self, directory: str) -> None:
        Cell.judge(directory, self.server.must(SUMS_OF.format(f"{self.there}/{directory}"), LONG_SECONDS))


def run() -> int:
    """Copy what is needed, run it on the mount, and write the report."""
    ssh = tuple(shlex.split(os.environ.get("SSH") or "ssh -o BatchMode=yes"))
    client, server = (Remote(_wanted(name, "a host that ssh reaches as root"), ssh) for name in ("CLIENT", "SERVER"))
    mount = _wanted("MOUNT", "where the client has mounted the export over RDMA").rstrip("/")
    export = _wanted("EXPORT", "the same directory on the server").rstrip("/")
    copied = client.must("mktemp -d", LONG_SECONDS).strip()
    tool = f"{copied}/files.py"
    try:
        for machine in (client, server):
            machine.must(f"mkdir -p {copied}", LONG_SECONDS)
            machine.copy(TOOL, tool)
        return examine(client, server, mount, export, tool).finish()
    finally:
        for machine in (client, server):
            machine.must(f"rm -rf {shlex.quote(copied)}", LONG_SECONDS)


def examine(client: Machine, server: Machine, mount: str, export: str, tool: str) -> Results:
    """Run all tests in a directory of their own, which goes at the end, and write the report."""
    name = Path(client.must(f"mktemp -d {shlex.quote(mount)}/rpcrdma-on-device.XXXXXX", LONG_SECONDS).strip()).name
    place = Place(client, server, shlex.quote(f"{mount}/{name}"), shlex.quote(f"{export}/{name}"), tool)
    results, lines = Results(), list[str]()

    def test(title: str, function: Callable[[], None]) -> None:
        lines.append(f"{'ok' if results.test(title, function) else 'FAILED':8}{title}")

    try:
        before = _statistics(client, mount)
        _same(place)
        for title, function in (("small files and links each way", place.small), ("files of all sizes", place.sizes),
                                (f"directory of {ENTRIES:,}", place.directory),
                                (f"{WORKERS} readers and writers", place.workers)):
            test(title, function)
        keys = place.keys(lambda: [_number(_statistics(client, mount), number)
                                   for number in (WRITE_SEGMENTS, READ_SEGMENTS, REPLY_SEGMENTS)])
        after = _statistics(client, mount)
        test("one connection, no bad reply", lambda: _held(before, after))
        progress.line(f"keys: {keys}")
        _write(client, server, mount, [*lines, f"keys: {keys}", "", "counted by the transport:",
                                       *statistics_line.in_words(after)])
    finally:
        client.must(f"rm -rf {place.here}", LONG_SECONDS)
    progress.line(f"the report is in {REPORT}; read it before it is sent to anybody")
    return results


def _wanted(name: str, what: str) -> str:
    value = os.environ.get(name)
    if not value:
        raise progress.Failure(f"{name} is not set: {what}",
                          "make on-device CLIENT=root@one SERVER=root@other MOUNT=/mnt EXPORT=/export")
    return value


def _same(place: Place) -> None:
    """Fail unless the server has the directory of the mount."""
    try:
        place.server.must(f"test -d {place.there}", LONG_SECONDS)
    except progress.TimedOut:
        raise
    except progress.Failure:
        raise progress.Failure(f"{place.here} of the client is not {place.there} of the server",
                          "EXPORT is the path, on the server, of what the client has mounted") from None


def _statistics(client: Machine, mount: str) -> str:
    """The line of the mount's transport in mountstats."""
    entries = client.must("cat /proc/self/mountstats", LONG_SECONDS).split("\ndevice ")
    for entry in entries:
        if f" mounted on {mount} with fstype nfs" in entry:
            found = re.search(r"^\s*(xprt:\s+rdma .*)$", entry, re.MULTILINE)
            if found:
                return found[1]
    raise progress.Failure(f"{mount} of the client is no NFS mount over RDMA", "mount it with -o proto=rdma")


def _number(line: str, number: int) -> int:
    """One of the counters, by its number in the user guide."""
    return int(line.split()[1 + number])


def _held(before: str, after: str) -> None:
    """Fail if the connection was lost in between, or the server's Replies were bad."""
    for number, what in ((CONNECTS, "new connections"), (BAD_REPLIES, "bad replies")):
        more = _number(after, number) - _number(before, number)
        if more:
            raise progress.Failure(f"{more} {what}")


def _write(client: Machine, server: Machine, mount: str, lines: list[str]) -> None:
    """The report, without the addresses of the machines."""
    options = client.must(f"grep ' {mount} nfs' /proc/mounts", LONG_SECONDS).split()[3]
    text = [f"mount options: {options}", ""]
    for name, machine in (("client", client), ("server", server)):
        text += [f"{name}:", *(f"  {line}" for line in machine.must(FACTS, LONG_SECONDS).splitlines()), ""]
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text(ADDRESS.sub("...", "\n".join([*text, *lines, ""])))
