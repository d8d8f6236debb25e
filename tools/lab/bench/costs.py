"""What an operation costs: instructions by module, calls of what is worth counting, work requests by kind, traffic."""

import re
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass

import progress
from bench.counting import Window
from guests.symbols import RUST, Function, Symbols, Tally

# What a verbs consumer does and gets, by device: the kind of a function of the driver, by its arguments; the function;
# and what its calls are.
VERBS: dict[str, tuple[tuple[str, Function, str], ...]] = {
    "rxe": (("send", ("rdma_rxe", "rxe_post_send"), "ib_post_send"),
            ("receive", ("rdma_rxe", "rxe_post_recv"), "ib_post_recv"),
            ("completion", ("rdma_rxe", "rxe_cq_post"), "completions")),
    "siw": (("send", ("siw", "siw_post_send"), "ib_post_send"),
            ("receive", ("siw", "siw_post_receive"), "ib_post_recv"),
            ("queue", ("siw", "siw_sqe_complete"), "completions"),
            ("queue", ("siw", "siw_rqe_complete"), "completions")),
}
# Of the same, at the end that has more of them, where there is one connection.
AT_ONE_END = "{} at one end"
# Each of them once: what is large goes on to __kmalloc_large_node_noprof.
SLAB = ("__kmalloc_noprof __kmalloc_node_noprof __kmalloc_cache_noprof __kmalloc_cache_node_noprof "
        "__kmalloc_node_track_caller_noprof __kmalloc_flags_noprof __kvmalloc_node_noprof "
        "kmem_cache_alloc_noprof kmem_cache_alloc_node_noprof kmem_cache_alloc_lru_noprof kmem_cache_alloc_bulk_noprof")
PAGES = "__alloc_frozen_pages_noprof alloc_pages_bulk_noprof"
# What each device's completion of a queue leads to when somebody waits for it.
WAKEUPS = (("ib_core", "ib_cq_completion_workqueue"), ("ib_core", "ib_cq_completion_softirq"))
RPCS = "RPCs"
CALLS: dict[str, tuple[Function, ...]] = {
    RPCS: (("sunrpc", "xprt_complete_rqst"),),
    "CQ wakeups": WAKEUPS,
    # Called also where the thread had not left the run queue yet.
    "thread wakeups": (("kernel", "wakeup_preempt"),),
    "context switches": (("kernel", "__switch_to"),),
    "kmalloc and slab calls": tuple(("kernel", name) for name in SLAB.split()),
    "page allocator calls": tuple(("kernel", name) for name in PAGES.split()),
}
# enum ib_wr_opcode.
OPERATIONS = {0: "RDMA Write", 2: "Send", 4: "RDMA Read", 7: "LocalInv", 9: "Send With Invalidate",
              11: "RDMA Read With Invalidate", 32: "RegMR"}
RECEIVE, SIGNALED = "Receive", "signaled"
# Counters of interfaces and devices. rxe hands what is for its own machine to itself, past any interface.
PACKETS = re.compile(r"(lo|eth0)\.tx_packets|rxe0\.sent_pkts")
BYTES = re.compile(r"(lo|eth0)\.tx_bytes|rxe0\.sent_bytes")
# Of rxe: what tells that something went wrong.
TROUBLES = re.compile(r"rxe0\.(duplicate_request|out_of_seq_request|rcvd_rnr_err|send_rnr_err|rcvd_seq_err|"
                      r"retry_exceeded_err|retry_rnr_exceeded_err|completer_retry_err|send_err)")
# Functions that are told of, beside all of the measured module's.
MOST_FUNCTIONS = 40
MODULE = "rpcrdma"
OWN = (MODULE, RUST)
REPETITION = re.compile(r"repetition (\d+) (\d+)((?: \S+=\d+)*)")


@dataclass(frozen=True)
class Run:
    """What the workload said of one repetition."""

    nanoseconds: int
    traffic: dict[str, int]


@dataclass(frozen=True)
class Costs:
    """Of one operation, on average over a repetition."""

    total: float
    modules: dict[str, float]
    counts: dict[str, float]
    # The guest's time, which is instructions and waiting where the clock counts instructions.
    nanoseconds: float
    # Module, function, instructions.
    functions: tuple[tuple[str, str, float], ...]

    @property
    def rpcrdma(self) -> float:
        """In the module, and in what the kernel has out of line for it because it is in Rust."""
        return sum(self.modules.get(name, 0.0) for name in OWN)

    def json(self) -> dict:
        return asdict(self)


def runs(output: str) -> list[Run]:
    """The workload's lines."""
    found = []
    for line in output.splitlines():
        match = REPETITION.fullmatch(line)
        if match is None:
            raise progress.Failure(f"the workload said: {line}")
        pairs = (pair.rsplit("=", 1) for pair in match[3].split())
        found.append(Run(int(match[2]), {name: int(value) for name, value in pairs}))
    return found


def of(window: Window, symbols: Symbols, run: Run, device: str | None, operations: int) -> Costs:
    """Costs of each of so many operations; `device` is None without RDMA."""
    if window.lost or window.unreadable:
        raise progress.Failure(f"{window.lost} instructions had no counter, {window.used} are used; "
                          f"the arguments of {window.unreadable} calls could not be read")
    tally = symbols.tally(window)
    counts = Counter[str]()
    for name, functions in CALLS.items():
        counts[name] = calls(tally, symbols, functions)
    for pattern, name in ((PACKETS, "packets"), (BYTES, "bytes"), (TROUBLES, "troubles")):
        counts[name] = sum(value for counter, value in run.traffic.items() if pattern.fullmatch(counter))
    if device is not None:
        counts.update(_of_verbs(window, tally, symbols, device))
    named = [(function, value) for rank, (function, value) in enumerate(tally.functions.most_common())
             if rank < MOST_FUNCTIONS or function[0] in OWN]
    return Costs(tally.total / operations, {name: value / operations for name, value in tally.modules.most_common()},
                 {name: value / operations for name, value in counts.items()}, run.nanoseconds / operations,
                 tuple((module, name, value / operations) for (module, name), value in named))


def calls(tally: Tally, symbols: Symbols, functions: tuple[Function, ...]) -> int:
    """How often any of these was called; a kernel that lacks one is another than this was written for."""
    found = {function: symbols.entries(function) for function in functions}
    missing = [name for (_, name), addresses in found.items() if not addresses]
    if missing:
        raise progress.Failure(f"the kernel has no function {', '.join(missing)}")
    return sum(tally.entries[address] for address in {address for addresses in found.values() for address in addresses})


def _of_verbs(window: Window, tally: Tally, symbols: Symbols, device: str) -> Counter[str]:
    counts = Counter[str]()
    queue_pairs: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for _, function, name in VERBS[device]:
        called, seen = calls(tally, symbols, (function,)), window.calls.get(function[1], {})
        if called != sum(seen.values()):
            raise progress.Failure(f"{function[1]} was called {called} times, of which {sum(seen.values())} were looked at")
        counts[name] += called
        queue_pairs[name].update(seen)
    for name, seen in queue_pairs.items():
        counts[AT_ONE_END.format(name)] = max(seen.values(), default=0)
    for posted, count in window.posted.items():
        if posted.opcode is None:
            counts[RECEIVE] += count
            continue
        counts[OPERATIONS.get(posted.opcode, f"operation {posted.opcode}")] += count
        counts[SIGNALED] += count if posted.signaled else 0
    return counts


def mean(several: list[Costs]) -> Costs:
    """The average of repetitions, with the functions of the first."""
    def average(parts: list[dict[str, float]]) -> dict[str, float]:
        names = dict.fromkeys(name for part in parts for name in part)
        return {name: sum(part.get(name, 0.0) for part in parts) / len(parts) for name in names}

    return Costs(sum(costs.total for costs in several) / len(several), average([costs.modules for costs in several]),
                 average([costs.counts for costs in several]),
                 sum(costs.nanoseconds for costs in several) / len(several), several[0].functions)


def spread(totals: list[float]) -> float:
    """How much the largest is more than the least, as a part of their average."""
    return (max(totals) - min(totals)) / (sum(totals) / len(totals))
