"""`make check-tools`: the tools that people run, with our module and with the kernel's own."""

import shutil
from pathlib import Path

import progress
import repository
from guests.pair import IN_TREE, OURS
from guests.system import System
from observers import document, status, waiting
from observers.machine import KEEP_ALIVE, machine
from observers.tools import TOOLS, Tool, file_of
from results import Results

OUTPUTS = repository.BUILD / "tools"
TOOL_SECONDS = 300
# Differences that are told of one output.
MOST = 8


def run() -> int:
    """Run all on both machines, compare, write the outputs and the document, and the last line."""
    results = Results()
    shutil.rmtree(OUTPUTS, ignore_errors=True)
    for whose in (OURS, IN_TREE):
        (OUTPUTS / whose).mkdir(parents=True)
        with progress.step(f"the tools, with {document.NAMES[whose]}"), machine(whose) as system:
            system.must("load")
            for tool in TOOLS:
                results.test(f"{document.NAMES[whose]}: {tool.name}", lambda: _observe(system, tool, OUTPUTS / whose))
            if whose == OURS:
                results.test("what the client asks by itself is no unknown XID", lambda: _asks(system))
            status.check(results, system, whose, OUTPUTS / whose)
            waiting.check(results, system, whose, OUTPUTS / whose)
    for tool in TOOLS:
        results.test(f"both: {tool.name}", lambda: _compare(tool))
    results.test(f"{document.DOCUMENT.name} with these outputs", lambda: document.write(OUTPUTS))
    progress.line(f"outputs are in {OUTPUTS}")
    return results.finish()


def _observe(system: System, tool: Tool, directory: Path) -> None:
    """Run one; it has to end well, and to complain of nothing."""
    result = system.run(tool.command, TOOL_SECONDS)
    file_of(directory, tool.name).write_text(result.out)
    if result.status or result.err.strip() or not result.out.strip():
        raise progress.Failure(f"status {result.status}; {result.err.strip()[:500]}")


def _asks(system: System) -> None:
    """Fail if the answer to the question whether the server is there is counted as one that nobody waits for."""
    asked = "sed -n 's/^proc4 [0-9]* \\([0-9]*\\) .*/\\1/p' /proc/net/rpc/nfsd"
    before = system.must(asked)
    system.must(f"echo 1 > {KEEP_ALIVE} && for try in $(seq 100); do "
                f"test $({asked}) -gt {before.strip()} && break; sleep 0.5; done")
    # The answer has come when another RPC has had its own.
    said = system.must(f"echo 0 > {KEEP_ALIVE} && stat -f /mnt > /dev/null && mountstats mountstats --xprt /mnt")
    if system.must(asked) == before or "XIDs not found: 0" not in said:
        raise progress.Failure(f"NULL was called {before.strip()} times before; then mountstats says:\n{said}")


def _compare(tool: Tool) -> None:
    """Fail unless both outputs have in common what they are to have."""
    ours, theirs = (file_of(OUTPUTS / whose, tool.name).read_text() for whose in (OURS, IN_TREE))
    if differences := tool.differences(ours, theirs):
        raise progress.Failure(f"{len(differences)} lines differ: {'; '.join(differences[:MOST])}")
