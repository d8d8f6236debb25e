"""`make check-kunit`: the KUnit suites of our module, on the debug kernel."""

import json
import re
import shutil
from pathlib import Path

import progress
import repository
from guests import accel, arch, kernels, module, pair, roots
from guests.kernels import Kernel
from guests.machine import SERVER, Build, Machine
from judges import messages
from judges.messages import Expected
from results import Results

SUITE_SECONDS = 600
KTAP = re.compile(r"\s*(KTAP version|\d+\.\.\d+|ok \d|not ok \d|#).*")
# Inserting a module with suites in it says so.
TAINT = re.compile(r"rpcrdma: loading (out-of-tree|test) module.*|.*taints kernel.*")
LOST = Expected(10, re.compile(r"rpcrdma: connection to \S+ lost: .*"), "the suite rpcrdma_alarm loses connections")
GIVEN_UP = Expected(2, re.compile(r"rpcrdma: \d connections given up: .*"), "the suite rpcrdma_backlog has nobody take them")


def run() -> int:
    """All suites, and the last line."""
    results = Results()
    check(results)
    return results.finish()


def check(results: Results) -> None:
    """All of them on the debug kernel."""
    on(kernels.debug(arch.chosen()), results)


def on(kernel: Kernel, results: Results, build: Build = Build()) -> None:
    """Insert the module with its suites, which runs them, and judge what the kernel said."""
    built = module.build(kernel, module.KUNIT)
    directory = repository.BUILD / "run/kunit"
    with pair.alone():
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        with progress.step(f"running the KUnit suites on the {kernel.name} kernel (console in {directory})"):
            log = _in_guest(kernel, build, built, directory, results)
    if log is not None:
        _count(kernel, log, results)


def _in_guest(kernel: Kernel, build: Build, built: Path, directory: Path, results: Results) -> Path | None:
    """What the kernel said from the insertion on, as a file; None if the module could not be inserted."""
    machine = Machine(SERVER, kernel, accel.choose(kernel), directory, build)
    try:
        machine.offer_module("ours", built.read_bytes())
        machine.ready()
        before = len(machine.log())

        def insert() -> None:
            machine.must("/lab/insert-module ours", SUITE_SECONDS)
            machine.must("grep -q O /sys/module/rpcrdma/taint")
            machine.must("rmmod rpcrdma")

        whole = results.test("kunit: the module with its suites goes in and out", insert)
        lines = machine.log()[before:] if whole else []
    finally:
        machine.stop()
    if not whole:
        return None
    log = directory / "dmesg"
    log.write_text("\n".join(lines) + "\n")
    others = [line for line in lines if not KTAP.fullmatch(line) and not TAINT.fullmatch(line)]

    def quiet() -> None:
        wrong = messages.unexpected(others, [LOST, GIVEN_UP, *messages.read_expected()])
        if wrong:
            raise progress.Failure(f"{len(wrong)} unexpected kernel messages, such as: {wrong[0]}", log=log)

    results.test("kunit: nothing else in the kernel log", quiet)
    return log


def _count(kernel: Kernel, log: Path, results: Results) -> None:
    """Let the kernel's own parser read the results; a skipped case has not passed."""
    report = log.with_name("kunit.json")
    output = log.with_name("kunit.log")
    argv = ["python3", "-B", "tools/testing/kunit/kunit.py", "parse", f"--json={report}", str(log)]
    # The parser's status says only that a case failed.
    roots.tool_root().run(["sh", "-c", '"$@" || true', "sh", *argv], output, "kunit.py", directory=kernel.kdir)
    cases = list(_cases(json.loads(report.read_text()), ""))
    if not cases:
        results.fail("kunit: suites", f"no test case in the kernel log {log}")
    for name, status in cases:
        if status == "PASS":
            results.ok(f"kunit: {name}")
        else:
            results.fail(f"kunit: {name}", f"{status}; see {output}")


def _cases(group: dict, path: str):
    """Every case below a group of the report, with its path and status."""
    for case in group.get("test_cases", []):
        yield f"{path}{case['name']}", case["status"]
    for below in group.get("sub_groups", []):
        yield from _cases(below, f"{path}{below['name']}.")
