#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Tests a mount over RDMA between two real machines, over ssh, and writes a report of what was found.

SSH in the environment is the command that reaches a machine, without asking for a password. See rpcrdma-on-device(1).
"""

import argparse
import hashlib
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import files
import statistics_line

# It makes and checks files, also on machines that have nothing else.
TOOL = Path(files.__file__)
LONG_SECONDS = 600
MIB = 1 << 20
# Nothing, inline, more than a page, more than one READ or WRITE moves; and around the sizes of pages, regions and payloads.
FEW_SIZES = "0 1023 4097 300001"
SIZES = " ".join(map(str, (0, 1, 4095, 4096, 4097, 65535, 65536, 65537, 131071, MIB - 1, MIB, MIB + 1, 3 * MIB + 4097, 16 * MIB)))
ENTRIES, WORKERS, WORK_BYTES = 5000, 100, 60_000
MAKE_ENTRIES = f"mkdir many && cd many && seq -f 'entry-with-a-name-of-some-length-%06g' {ENTRIES} | xargs touch"
# It asks for nothing else, where find would for the type of each.
NAMES = "ls -A {} | sha256sum"
# Numbers of mountstats, as the user guide counts them.
CONNECTS, READ_SEGMENTS, WRITE_SEGMENTS, REPLY_SEGMENTS, BAD_REPLIES = 3, 11, 12, 13, 20
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


class Failure(Exception):
    """What a test found, or what keeps it from running."""


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
        return self._run(command, seconds, b"")

    def copy(self, source: Path, target: str) -> None:
        """Put a file there, which may be executed."""
        self._run(f"cat > {target} && chmod +x {target}", LONG_SECONDS, source.read_bytes())

    def _run(self, command: str, seconds: float, given: bytes) -> str:
        argv = [*self.ssh, self.host, f"set -e; {command}"]
        try:
            done = subprocess.run(argv, input=given, capture_output=True, timeout=seconds)
        except subprocess.TimeoutExpired:
            raise Failure(f"{self.host}: still running after {seconds:.0f} s: {command}") from None
        if done.returncode != 0:
            why = done.stderr.decode(errors="replace").strip()
            raise Failure(f"{self.host}: `{command}` ended with status {done.returncode}: {why}")
        return done.stdout.decode(errors="replace")


@dataclass(frozen=True)
class Place:
    """A directory of our own on a mount, as a shell of either end is told of it, and where the tool is."""

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
            self.client.must(f"{self.tool} make {path} {SIZES} then forget then check {path}", LONG_SECONDS)
            self._judge(name)

    def directory(self) -> None:
        """The names of many entries."""
        there = self.server.must(f"cd {self.there} && {MAKE_ENTRIES} && {NAMES.format('.')}", LONG_SECONDS)
        if self.client.must(NAMES.format(f"{self.here}/many"), LONG_SECONDS) != there:
            raise Failure("the client lists other names than the server has")

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
        """Fail unless the server's checksums are those of the files' names."""
        sums = self.server.must(f"cd {self.there}/{directory} && sha256sum *", LONG_SECONDS)
        for found, name in map(str.split, sums.splitlines()):
            if found != hashlib.sha256(files.content(name, files.size_of(name))).hexdigest():
                raise Failure(f"{directory}/{name}: the server has other bytes than it should")


@dataclass
class Found:
    """What came of the tests, as the report has it."""

    lines: list[str] = field(default_factory=list)
    failed: int = 0

    def test(self, title: str, function: Callable[[], None]) -> None:
        """Run one. What stops it, whoever says so, is a failure."""
        began = time.monotonic()
        try:
            function()
        except Exception as failure:  # noqa: BLE001
            self.failed += 1
            self.lines.append(f"FAILED  {title}")
            say(f"FAILED  {title}: {failure}")
        else:
            self.lines.append(f"ok      {title}")
            say(f"ok      {title} ({time.monotonic() - began:.1f} s)")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("client", help="root@HOST, as ssh reaches it")
    parser.add_argument("server", help="the same")
    parser.add_argument("mount", help="where the client has mounted the export over RDMA")
    parser.add_argument("export", help="the same directory on the server")
    parser.add_argument("--report", type=Path, default=Path("rpcrdma-on-device.txt"), help="where the report goes (%(default)s)")
    options = parser.parse_args()
    ssh = tuple(shlex.split(os.environ.get("SSH") or "ssh -o BatchMode=yes"))
    try:
        return test(Remote(options.client, ssh), Remote(options.server, ssh), options.mount.rstrip("/"), options.export.rstrip("/"),
                    options.report)
    except Failure as failure:
        say(f"FAILED: {failure}")
        return 1


def test(client: Remote, server: Remote, mount: str, export: str, report: Path) -> int:
    """Copy what is needed, run it on the mount, and write the report."""
    copied = client.must("mktemp -d", LONG_SECONDS).strip()
    tool = f"{copied}/files.py"
    try:
        for machine in (client, server):
            machine.must(f"mkdir -p {copied}", LONG_SECONDS)
            machine.copy(TOOL, tool)
        found = examine(client, server, mount, export, tool, report)
    finally:
        for machine in (client, server):
            machine.must(f"rm -rf {shlex.quote(copied)}", LONG_SECONDS)
    say(f"the report is in {report}; read it before it is sent to anybody")
    say(f"{len(found.lines) - found.failed} passed, {found.failed} failed")
    return 1 if found.failed else 0


def examine(client: Machine, server: Machine, mount: str, export: str, tool: str, report: Path) -> Found:
    """Run all tests in a directory of their own, which goes at the end, and write the report."""
    name = Path(client.must(f"mktemp -d {shlex.quote(mount)}/rpcrdma-on-device.XXXXXX", LONG_SECONDS).strip()).name
    place = Place(client, server, shlex.quote(f"{mount}/{name}"), shlex.quote(f"{export}/{name}"), tool)
    found = Found()
    try:
        before = statistics_of(client, mount)
        _same(place)
        for title, function in (("small files and links each way", place.small), ("files of all sizes", place.sizes),
                                (f"directory of {ENTRIES:,}", place.directory),
                                (f"{WORKERS} readers and writers", place.workers)):
            found.test(title, function)
        keys = place.keys(lambda: [_number(statistics_of(client, mount), number)
                                   for number in (WRITE_SEGMENTS, READ_SEGMENTS, REPLY_SEGMENTS)])
        after = statistics_of(client, mount)
        found.test("one connection, no bad reply", lambda: _held(before, after))
        say(f"keys: {keys}")
        _write(report, client, server, mount, [*found.lines, f"keys: {keys}", "", "counted by the transport:",
                                               *statistics_line.in_words(after)])
    finally:
        client.must(f"rm -rf {place.here}", LONG_SECONDS)
    return found


def say(text: str) -> None:
    """Print one line at once, also into a pipe."""
    print(text, flush=True)


def _same(place: Place) -> None:
    """Fail unless the server has the directory of the mount."""
    if "there" not in place.server.must(f"! test -d {place.there} || echo there", LONG_SECONDS):
        raise Failure(f"{place.here} of the client is not {place.there} of the server: the latter is the path, on the server, of what "
                      "the client has mounted")


def statistics_of(client: Machine, mount: str) -> str:
    """The line of the mount's transport in mountstats."""
    for entry in client.must("cat /proc/self/mountstats", LONG_SECONDS).split("\ndevice "):
        if f" mounted on {mount} with fstype nfs" in entry:
            found = re.search(r"^\s*(xprt:\s+rdma .*)$", entry, re.MULTILINE)
            if found:
                return found[1]
    raise Failure(f"{mount} of the client is no NFS mount over RDMA: mount it with -o proto=rdma")


def _number(line: str, number: int) -> int:
    """One of the counters, by its number in the user guide."""
    return int(line.split()[1 + number])


def _held(before: str, after: str) -> None:
    """Fail if the connection was lost in between, or the server's Replies were bad."""
    for number, what in ((CONNECTS, "new connections"), (BAD_REPLIES, "bad replies")):
        if more := _number(after, number) - _number(before, number):
            raise Failure(f"{more} {what}")


def _write(report: Path, client: Machine, server: Machine, mount: str, lines: list[str]) -> None:
    """The report, without the addresses of the machines."""
    options = client.must(f"grep ' {mount} nfs' /proc/mounts", LONG_SECONDS).split()[3]
    text = [f"mount options: {options}", ""]
    for name, machine in (("client", client), ("server", server)):
        text += [f"{name}:", *(f"  {line}" for line in machine.must(FACTS, LONG_SECONDS).splitlines()), ""]
    report.parent.mkdir(parents=True, exist_ok=True)
    report.write_text(ADDRESS.sub("...", "\n".join([*text, *lines, ""])))


if __name__ == "__main__":
    sys.exit(main())
