"""Guests whose instructions are counted, by a plugin of QEMU's emulator (tools/bench/plugin), and what it counted."""

import contextlib
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import progress

CONTROL, COUNTS = "counting", "counts"
CONTROL_SECONDS = 20
# Where things are must not change from boot to boot.
KERNEL_ARGUMENTS = ("nokaslr", "norandmaps")
# One instruction takes one nanosecond of the guest's time, and waiting takes none of ours. The date and all random
# numbers are the same each time, too.
EXACT = ("-icount", "shift=0,sleep=off", "-seed", "1", "-rtc", "base=2026-01-01T00:00:00,clock=vm")
# The largest MTU of rxe, 4096, and its headers.
EXACT_MTU = 4200


@dataclass(frozen=True)
class Counting:
    """How a guest's instructions are counted."""

    plugin: Path
    # The program that sets the marks.
    workload: Path
    # With a clock that counts instructions and nothing that comes from outside: one guest, with both ends.
    exact: bool = True
    # The guest, in the same directory, whose counts begin and end when this one's do.
    peer: str = ""

    @property
    def mtu(self) -> int | None:
        """Of the link inside of the guest; None where it is the usual link."""
        return EXACT_MTU if self.exact else None

    @property
    def kernel_arguments(self) -> tuple[str, ...]:
        return KERNEL_ARGUMENTS

    def qemu(self, name: str) -> list[str]:
        """QEMU's arguments for a guest of this name."""
        plugin = f"file={self.plugin},out={name}/{COUNTS},control={name}/{CONTROL}"
        if self.peer:
            plugin += f",peer={self.peer}/{CONTROL}"
        return ["-plugin", plugin, *(EXACT if self.exact else ())]


@dataclass(frozen=True, order=True)
class Posted:
    """A kind of work request."""

    function: str
    # None for Receives.
    opcode: int | None
    signaled: bool


@dataclass(frozen=True)
class Block:
    """A block of the kernel's code that was executed."""

    address: int
    # In instructions.
    length: int
    count: int


@dataclass
class Window:
    """What was executed between two marks."""

    number: int
    # Instructions in user mode, and of blocks that had no counter.
    user: int = 0
    lost: int = 0
    # How many counters have a meaning.
    used: int = 0
    # Calls of watched functions whose arguments could not be read.
    unreadable: int = 0
    # By function and address of the queue pair.
    calls: dict[str, dict[int, int]] = field(default_factory=dict)
    posted: dict[Posted, int] = field(default_factory=dict)
    blocks: list[Block] = field(default_factory=list)


class Counter:
    """The plugin of one guest."""

    def __init__(self, directory: Path) -> None:
        """`directory` is the guest's."""
        self._directory = directory
        self._read = 0

    def watch(self, kind: str, function: str, address: int) -> None:
        """Have calls of a function looked at; `kind` tells its arguments: send, receive, completion, queue."""
        self._ask(f"watch {kind} {function} {address:x}")

    def windows(self) -> list[Window]:
        """Those that have ended since the last call."""
        with (self._directory / COUNTS).open("rb") as file:
            file.seek(self._read)
            text = file.read()
        # What is being written has no end yet.
        text = text[:text.rfind(b"\n") + 1]
        self._read += len(text)
        return list(parse(text.decode().splitlines()))

    def skip(self) -> None:
        """What there is, of a workload that failed, is not for the next one."""
        self._read = (self._directory / COUNTS).stat().st_size

    def _ask(self, command: str) -> None:
        # As in agent.py: the path may be longer than a socket's address.
        directory = os.open(self._directory, os.O_PATH)
        try:
            with contextlib.closing(socket.socket(socket.AF_UNIX)) as control:
                control.settimeout(CONTROL_SECONDS)
                control.connect(f"/proc/self/fd/{directory}/{CONTROL}")
                control.sendall(f"{command}\n".encode())
                answer = control.recv(64).decode().strip()
        except OSError as error:
            raise progress.Failure(f"{self._directory.name}: the counting plugin does not answer ({error})") from None
        finally:
            os.close(directory)
        if answer != "ok":
            raise progress.Failure(f"{self._directory.name}: the counting plugin refused `{command}`")


def parse(lines: list[str]) -> Iterator[Window]:
    """The windows in what a plugin wrote; tools/bench/plugin/src/window.rs has the format."""
    window: Window | None = None
    for line in lines:
        kind, *words = line.split(" ")
        if kind == "error":
            raise progress.Failure(f"the counting plugin: {' '.join(words)}")
        if kind == "window":
            window = Window(int(words[0]))
            continue
        if window is None:
            raise progress.Failure(f"the counting plugin wrote outside of a window: {line}")
        if kind == "end":
            yield window
            window = None
        else:
            _note(window, kind, words)
    if window is not None:
        raise progress.Failure(f"the counting plugin did not end window {window.number}")


def _note(window: Window, kind: str, words: list[str]) -> None:
    match kind, words:
        case "block", [address, length, count]:
            window.blocks.append(Block(int(address, 16), int(length), int(count)))
        case "calls", [function, queue_pair, count]:
            window.calls.setdefault(function, {})[int(queue_pair, 16)] = int(count)
        case "posted", [function, opcode, signaled, count]:
            posted = Posted(function, None if opcode == "-" else int(opcode), signaled == "1")
            window.posted[posted] = int(count)
        case ("user" | "lost" | "used" | "unreadable"), [count]:
            setattr(window, kind, int(count))
        case _:
            raise progress.Failure(f"the counting plugin wrote: {kind} {' '.join(words)}")
