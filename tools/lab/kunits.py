"""The KUnit suites of our module, in a guest."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import progress
import repository
from guests import accel, module, pair, roots
from guests.kernels import Kernel
from guests.machine import SERVER, Build, Machine
from judges import messages
from judges.messages import Expected

SUITE_SECONDS = 600
# Where the source has one.
SUITE = re.compile(r"#\[kunit_tests\((\w+)\)\]")
KTAP = re.compile(r"\s*(KTAP version|\d+\.\.\d+|ok \d|not ok \d|#).*")
# Inserting a module with suites in it says so.
TAINT = re.compile(r"rpcrdma: loading (out-of-tree|test) module.*|.*taints kernel.*")
GIVEN_UP = Expected(2, re.compile(r"rpcrdma: \d connections given up: .*"), "the suite rpcrdma_backlog has nobody take them")


def suites() -> list[str]:
    """The names of those that there are."""
    return sorted(name for directory in ("rust", "kunit") for path in (repository.ROOT / directory).rglob("*.rs")
                  for name in SUITE.findall(path.read_text()))


def run(kernel: Kernel, build: Build = Build()) -> Path:
    """Insert the module with its suites, which runs them; what the kernel said, as a file."""
    built = module.build(kernel, module.KUNIT).read_bytes()
    directory = pair.fresh_directory("kunit")
    with progress.step(f"running the KUnit suites on the {kernel.name} kernel (console in {directory})"):
        machine = Machine(SERVER, kernel, accel.choose(kernel), directory, build)
        try:
            machine.offer_module("ours", built)
            machine.ready()
            before = len(machine.log())
            machine.must("/lab/insert-module ours", SUITE_SECONDS)
            machine.must("grep -q O /sys/module/rpcrdma/taint")
            machine.must("rmmod rpcrdma")
            lines = machine.log()[before:]
        finally:
            machine.stop()
    log = directory / "dmesg"
    log.write_text("\n".join(lines) + "\n")
    return log


def must_be_quiet(log: Path) -> None:
    """Fail if the kernel said anything that is neither a result nor expected."""
    others = [line for line in log.read_text().splitlines() if not KTAP.fullmatch(line) and not TAINT.fullmatch(line)]
    if wrong := messages.unexpected(others, [GIVEN_UP, *messages.read_expected()]):
        raise progress.Failure(f"{len(wrong)} unexpected kernel messages, such as: {wrong[0]}", log=log)


def results(kernel: Kernel, log: Path) -> dict[str, dict[str, str]]:
    """How the cases of each suite ended, as the kernel's own parser reads it."""
    report = log.with_name("kunit.json")
    argv = ["python3", "-B", "tools/testing/kunit/kunit.py", "parse", f"--json={report}", str(log)]
    # The parser's status says only that a case failed.
    roots.tool_root().run(["sh", "-c", '"$@" || true', "sh", *argv], parsed(log), "kunit.py", directory=kernel.kdir)
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for suite, case, status in _cases(json.loads(report.read_text())):
        found[suite][case] = status
    return found


def parsed(log: Path) -> Path:
    """What the parser prints for people."""
    return log.with_name("kunit.log")


def _cases(group: dict) -> Iterator[tuple[str, str, str]]:
    """Every case below a group of the report: its suite, its name, how it ended."""
    for case in group.get("test_cases", []):
        yield group["name"], case["name"], case["status"]
    for below in group.get("sub_groups", []):
        yield from _cases(below)
