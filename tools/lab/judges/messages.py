"""The kernel's log of a guest, held against the list of what may appear in it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import repository
from guests.machine import Machine

EXPECTED = repository.TESTS / "expected-messages"

# What is never all right, not even while a guest boots.
REPORTS = re.compile(
    r"WARNING:|BUG:|BUG at|KASAN|UBSAN|Oops|general protection|Kernel panic|kernel stack|refcount_t:|list_(add|del) corrupt"
    r"|possible (recursive|circular) locking|inconsistent lock state|suspicious RCU usage|held lock freed|lock held when"
    r"|INFO: task .* blocked|rcu: INFO|soft lockup|ODEBUG:|DMA-API: .*(error|leak|mismatch|not|disab)"
    r"|rpcrdma: .*(leak|ledger)|panicked at|sleeping function called|scheduling while atomic")
# What stands in front of the name of a device that plays an adapter (tests/kernel/adapter/).
PLAYS = re.compile(r"^platform rpcrdma-test-adapter\.\d+\.auto (?=(rxe|siw)0: )")
# What a boot begins with, and what ends it.
BOOTS, READY = "Linux version ", "guest ready"


@dataclass(frozen=True)
class Expected:
    """One line of the list."""

    most: int
    pattern: re.Pattern
    reason: str


# siw says so, and not that it was flushed, of what the server still sends when a client says good-bye.
SIW_GOODBYE = Expected(2, re.compile(r"rpcrdma: connection from \S+ lost: local QP operation error"), "a client leaves")


def of_device(kind: str) -> list[Expected]:
    """What devices of a kind bring about at any time."""
    return [SIW_GOODBYE] if kind == "siw" else []


class KernelLog:
    """What a guest's kernel said, from check to check."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._seen = 0
        self._expected = read_expected()

    def check(self, provoked: Sequence[Expected] = ()) -> list[str]:
        """What is wrong with the lines since the last check, one text a line; nothing when all is well.

        `provoked` are lines that are all right this time, beside those of the list, or more often.
        """
        lines = self._machine.log()
        boot, fresh = boots(lines[self._seen:], self._seen == 0)
        self._seen = len(lines)
        return reports(boot) + unexpected(fresh, [*provoked, *self._expected])


def boots(lines: list[str], booting: bool) -> tuple[list[str], list[str]]:
    """The lines of boots, the first of which may be under way, and the others."""
    boot: list[str] = []
    rest: list[str] = []
    for line in lines:
        booting = booting or line.startswith(BOOTS)
        (boot if booting else rest).append(line)
        booting = booting and line != READY
    return boot, rest


def reports(lines: list[str]) -> list[str]:
    """The lines that are never all right."""
    return [line for line in lines if REPORTS.search(line)]


def unexpected(lines: list[str], expected: list[Expected]) -> list[str]:
    """The lines that are not on the list, or more of them than it allows; reports are never on it."""
    counts = [0] * len(expected)
    wrong = []
    for line in lines:
        if REPORTS.search(line):
            wrong.append(line)
            continue
        for number, entry in enumerate(expected):
            if entry.pattern.fullmatch(PLAYS.sub("", line)):
                counts[number] += 1
                if counts[number] > entry.most:
                    wrong.append(f"{line} (more than {entry.most} times)")
                break
        else:
            wrong.append(line)
    return wrong


def read_expected(path: Path = EXPECTED) -> list[Expected]:
    """The checked-in list."""
    entries = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        parts = re.fullmatch(r"(\d+)  (\S.*?)  # (\S.*)", line)
        if parts is None:
            raise ValueError(f"{path}:{number}: not `count  pattern  # reason`")
        entries.append(Expected(int(parts[1]), re.compile(parts[2]), parts[3]))
    return entries
