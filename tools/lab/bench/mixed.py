"""Two guests, ours with the in-tree module and that one with itself: the instructions of both, added up.

There is no clock that counts instructions here, since two guests wait for each other in the host's time; so the numbers
differ a little from run to run, and their spread is told.
"""

import statistics
from collections import Counter as Tally
from dataclasses import dataclass
from pathlib import Path

import progress
from bench import costs as bench_costs, guest as bench_guest
from bench.counting import Counter, Counting
from bench.plan import QUICK_SIZES, SMALL_LIMIT, Workload
from bench.tools import Programs
from guests import devices, kernels, pair
from guests.machine import SERVER
from guests.pair import IN_TREE, OURS, End, Pair, Setup
from guests.symbols import Symbols
from results import Results

# More where an operation is short, of which chance is a larger part.
REPETITIONS, SMALL_REPETITIONS = 3, 9
VERSION = "4.2"
# Client, server. The first is what the others are compared with.
PAIRS = ((IN_TREE, IN_TREE), (OURS, IN_TREE), (IN_TREE, OURS))


@dataclass(frozen=True)
class Mixed:
    """Instructions of an operation at both ends together, for each repetition."""

    device: str
    client: str
    server: str
    workload: str
    totals: list[float]
    # In rpcrdma.
    rpcrdma: list[float]
    # Doorbells and completions of each end, on average.
    counts: dict[str, float]

    @property
    def total(self) -> float:
        """The median, since what chance brings in is sometimes much."""
        return statistics.median(self.totals)

    @property
    def spread(self) -> float:
        """How far the middle half of the repetitions reaches, as a part of the median."""
        lower, _, upper = statistics.quantiles(self.totals, method="inclusive")
        return (upper - lower) / self.total


def measure(results: Results, device: str, ours: Path, programs: Programs) -> list[Mixed]:
    """Every pair, with two guests of their own."""
    def end(peer: str) -> End:
        return End(kernels.stock(), ours, counting=Counting(programs.plugin, programs.workload, exact=False, peer=peer))

    found: list[Mixed] = []
    with pair.running(Setup(f"bench-mixed-{device}", end(""), end(SERVER.name))) as guests:
        guests.both("/lab/bench quiet")
        counters = [Counter(machine.directory) for machine in guests.machines]
        for client_module, server_module in PAIRS:
            cell = _Cell(guests, counters, device, client_module, server_module)
            results.test(cell.name, lambda: found.extend(cell.measure()))
    return found


@dataclass(frozen=True)
class _Cell:
    """Two guests with their modules, in the order of the guests' counters."""

    guests: Pair
    counters: list[Counter]
    device: str
    client: str
    server: str

    @property
    def name(self) -> str:
        return f"{self.device}: client {self.client}, server {self.server}"

    def measure(self) -> list[Mixed]:
        """All workloads."""
        guests = self.guests
        guests.load(devices.named(self.device), self.server, self.client)
        guests.server.must(f"test -d /export/bench || {bench_guest.FILES}")
        words = bench_guest.mount_words(VERSION, bench_guest.RDMA)
        guests.client.must(f"{bench_guest.BENCH} mount {bench_guest.WHERE} {words}")
        with progress.undoing(lambda: guests.client.must(f"umount {bench_guest.WHERE}")):
            # The modules are elsewhere each time, and the mount brings some.
            guests.both(f"{bench_guest.BENCH} symbols")
            symbols = [bench_guest.read_symbols(machine) for machine in guests.machines]
            found = [self._workload(workload, symbols) for workload in QUICK_SIZES]
            guests.prove_modules()
        return found

    def _workload(self, workload: Workload, symbols: list[Symbols]) -> Mixed:
        for counter in self.counters:
            counter.skip()
        repetitions = SMALL_REPETITIONS if workload.limit == SMALL_LIMIT else REPETITIONS
        self.guests.client.must(f"{bench_guest.WORKLOAD} {repetitions} {workload.warmup} {workload.operations} "
                                f"{workload.arguments.format(bench_guest.WHERE)}", bench_guest.MEASURE_SECONDS)
        totals, rpcrdma, counts = [0.0] * repetitions, [0.0] * repetitions, Tally[str]()
        for machine, counter, places in zip(self.guests.machines, self.counters, symbols):
            windows = counter.windows()
            if len(windows) != repetitions:
                raise progress.Failure(f"{len(windows)} windows, not {repetitions}")
            for number, window in enumerate(windows):
                tally = places.tally(window)
                totals[number] += tally.total / workload.operations
                rpcrdma[number] += sum(tally.modules[name] for name in bench_costs.OWN) / workload.operations
                for _, function, name in bench_costs.VERBS[self.device]:
                    counts[f"{name} of the {machine.role.name}"] += bench_costs.calls(tally, places, (function,))
        done = repetitions * workload.operations
        mixed = Mixed(self.device, self.client, self.server, workload.name, totals, rpcrdma,
                      {name: count / done for name, count in counts.items()})
        progress.line(f"  {workload.name}: {mixed.total:,.0f} instructions at both ends, spread {mixed.spread:.2%}")
        return mixed
