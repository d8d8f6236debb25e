# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The `xprt: rdma` line of /proc/self/mountstats in words."""

# In the order of the line. Words in brackets are the unit.
NAMES = (
    "local port (always 0)", "binds", "connects", "time spent connecting [s]", "idle for [s]", "RPCs sent",
    "RPCs with a result from a Reply", "messages whose XID no RPC waited for", "RPCs under way, summed over the sends",
    "RPCs that waited for a slot, summed over the sends", "segments of Read chunks sent",
    "segments of Write chunks sent", "segments of Reply chunks sent", "bytes that the server was offered to write",
    "bytes that the server has written", "bytes of pages and tails copied into inline Calls",
    "bytes copied from inline Replies behind the head", "(always 0)", "Calls that could not be encoded at once",
    "bad replies", "Calls sent through a Position Zero Read chunk", "(always 0)", "(always 0)", "memory regions made",
    "RPCs whose regions the client invalidated", "waits for a send buffer", "(always 0)",
    "version of RPC-over-RDMA",
)
# The in-tree module has no version.
IN_TREE = len(NAMES) - 1


def in_words(line: str) -> list[str]:
    """One text for each number."""
    words = line.split()
    if words[:2] != ["xprt:", "rdma"] or len(words) - 2 not in (IN_TREE, len(NAMES)):
        raise ValueError(f"mountstats has no line of an RDMA transport but: {line.strip()}")
    return [f"{value:>12}  {name}" for value, name in zip(words[2:], NAMES)]
