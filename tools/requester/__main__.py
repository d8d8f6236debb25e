"""A requester of RPC-over-RDMA on raw verbs: sends what no Linux client sends, and compares every byte of the answers.

Usage: python3 requester ADDRESS ours|c [PART [CASE...]]
"""

import re
import sys
import time
import zlib

import connections
import credits_2
import drops
import errors
import forged_keys
import mutated_2
import nfs_2
import pulls
import read_chunks
import reply_chunks
import reverse_calls
import sessions
import version_2
import write_chunks
from bench import IN_TREE, OURS, Bench
from case import Case
from failure import Failure

PARTS = {"Read lists": read_chunks.CASES, "Write lists": write_chunks.CASES, "Reply chunks": reply_chunks.CASES,
         "errors": errors.CASES, "NFS 2": nfs_2.CASES, "sessions": sessions.CASES,
         "reverse Calls": reverse_calls.CASES, "given-up Calls": reverse_calls.GIVEN_UP,
         "never answered": reverse_calls.NEVER_ANSWERED, "connections": connections.CASES, "dropped Calls": drops.CASES,
         "pulls": pulls.CASES, "late pulls": pulls.LATE, "held pulls": pulls.HOLDING, "crowded pulls": pulls.CROWDED,
         "forged keys": forged_keys.CASES, "version 2": version_2.CASES,
         "version 2 back": version_2.REVERSE, "mutated messages": mutated_2.CASES,
         "many mutated messages": mutated_2.MANY_CASES, "held Replies": credits_2.HOLDING}


def main() -> int:
    """One line for each case; status 0 when none has failed."""
    address, server, *chosen = sys.argv[1:]
    cases = [case for part, cases in PARTS.items() if not chosen or part == chosen[0]
             for case in cases if not chosen[1:] or case.name in chosen[1:]]
    if server not in (OURS, IN_TREE) or not cases:
        sys.exit(__doc__)
    # Those of another part may be known to have broken a connection: their Calls are refused (RFC 8166, section 4.5.3).
    bench = Bench(address, server, zlib.crc32(" ".join(chosen).encode()))
    bench.prepare()
    outcomes = [run(bench, case) for case in cases]
    bench.close()
    return 0 if all(outcomes) else 1


def run(bench: Bench, case: Case) -> bool:
    """Whether a case is well."""
    began = time.monotonic()
    known = None if bench.is_ours else case.in_tree
    if known is not None and known.device not in (None, bench.adapter.name):
        known = None
    try:
        bench.begin()
        case.function(bench)
        bench.end()
    except (Failure, OSError) as failure:
        bench.abandon()
        if known is None or not re.search(known.finds, str(failure)):
            say(f"FAILED {case.name}: {failure}")
            return False
        say(f"ok {case.name} (differs: {known.why})")
        return True
    if known is not None:
        say(f"FAILED {case.name}: does not differ any more: {known.why}")
        return False
    differences = f"; differs: {', '.join(bench.differences)}" if bench.differences else ""
    say(f"ok {case.name} ({time.monotonic() - began:.1f} s{differences})")
    return True


def say(line: str) -> None:
    # At once, so that it is known how far a run came that does not end.
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
