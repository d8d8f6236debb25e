"""The `xprt: rdma` line of /proc/self/mountstats in words."""

import say

# In the order of the line. Words in brackets are the unit.
NAMES = (
    "local port", "binds", "connects", "time spent connecting [s]", "idle for [s]", "calls sent", "replies received",
    "replies with an unknown XID", "requests in use, summed over the sends", "backlog, summed over the sends",
    "calls with a Read chunk", "calls with a Write chunk", "calls with a Reply chunk",
    "bytes moved by RDMA in calls", "bytes moved by RDMA in replies", "bytes copied to send inline",
    "bytes copied from inline replies", "buffers registered the slow way", "calls that could not be marshalled",
    "bad replies", "calls sent whole by RDMA (RDMA_NOMSG)", "regions recycled", "regions orphaned",
    "regions allocated", "regions invalidated by the client", "waits for a send slot", "(always 0)",
)


def in_words(line: str) -> list[str]:
    """One text for each number."""
    words = line.split()
    if words[:2] != ["xprt:", "rdma"] or len(words) != 2 + len(NAMES):
        raise say.Failure(f"mountstats has no line of an RDMA transport but: {line.strip()}")
    return [f"{value:>12}  {name}" for value, name in zip(words[2:], NAMES)]
