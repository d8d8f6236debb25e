"""The tools that people run, with our module and with the kernel's own: what they print."""

import pytest

import progress
from observed import OURS_ALONE, Observed
from observers.machine import KEEP_ALIVE
from observers.tools import TOOLS, Tool, file_of

TOOL_SECONDS = 300


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name.replace(" ", "-"))
def test_tool(observed: Observed, tool: Tool) -> None:
    """It ends well, and complains of nothing."""
    result = observed.system.run(tool.command, TOOL_SECONDS)
    file_of(observed.directory, tool.name).write_text(result.out)
    if result.status or result.err.strip() or not result.out.strip():
        raise progress.Failure(f"status {result.status}; {result.err.strip()[:500]}")


@OURS_ALONE
def test_what_the_client_asks_by_itself_is_no_unknown_xid(observed: Observed) -> None:
    """The answer to the question whether the server is there is not counted as one that nobody waits for. No count of
    what went wrong grows."""
    asked = "sed -n 's/^proc4 [0-9]* \\([0-9]*\\) .*/\\1/p' /proc/net/rpc/nfsd"
    before = observed.system.must(asked)
    observed.system.must(f"echo 1 > {KEEP_ALIVE} && for try in $(seq 100); do "
                f"test $({asked}) -gt {before.strip()} && break; sleep 0.5; done")
    # The answer has come when another RPC has had its own.
    said = observed.system.must(f"echo 0 > {KEEP_ALIVE} && stat -f /mnt > /dev/null && mountstats mountstats --xprt /mnt")
    if observed.system.must(asked) == before or "XIDs not found: 0" not in said:
        raise progress.Failure(f"NULL was called {before.strip()} times before; then mountstats says:\n{said}")
