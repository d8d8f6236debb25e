"""All that a run of the benchmark has found."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field

from bench import costs as bench_costs, goals as bench_goals
from bench.costs import Costs
from bench.goals import Verdict
from bench.memory import Memory
from bench.mixed import Mixed
from bench.plan import Part, Workload
from guests.pair import IN_TREE, OURS

TCP = "tcp"
COLUMNS = (OURS, IN_TREE, TCP)
# Of connections that speak version 2 of RPC-over-RDMA.
OURS_2 = "ours, version 2"


@dataclass(frozen=True, order=True)
class Row:
    """A workload on a kind of mount."""

    device: str
    part: str
    workload: str

    def __str__(self) -> str:
        return f"{self.device}, {self.part}, {self.workload}"


@dataclass
class Measured:
    """By row and column; a row is there in the order in which it was measured."""

    workloads: dict[Row, Workload] = field(default_factory=dict)
    # Of each boot, or each repetition.
    costs: dict[tuple[Row, str], list[Costs]] = field(default_factory=dict)
    # The row of the in-tree module that a row is held against.
    references: dict[Row, Row] = field(default_factory=dict)
    # By device and column: NFS 3 mounts, and connections of one NFS 4.2 mount.
    memory: dict[tuple[str, str], list[Memory]] = field(default_factory=dict)
    nconnect: dict[tuple[str, str], Memory] = field(default_factory=dict)
    mixed: list[Mixed] = field(default_factory=list)

    def note(self, device: str, part: Part, workload: Workload, column: str, costs: list[Costs]) -> None:
        """Take down what was measured of a workload, beside what was before."""
        row = Row(device, part.name, workload.name)
        self.workloads.setdefault(row, workload)
        self.references[row] = Row(device, part.reference or part.name, workload.name)
        self.costs.setdefault((row, column), []).extend(costs)

    def mean(self, row: Row, column: str) -> Costs | None:
        """The average of the repetitions, if there are any."""
        several = self.costs.get((row, column))
        return bench_costs.mean(several) if several else None

    def reference(self, row: Row) -> Costs | None:
        """What the in-tree module costs."""
        return self.mean(self.references[row], IN_TREE)

    def include(self, other: "Measured") -> None:
        """Take over what was measured elsewhere."""
        self.workloads.update(other.workloads)
        self.references.update(other.references)
        for place, costs in other.costs.items():
            self.costs.setdefault(place, []).extend(costs)
        self.memory.update(other.memory)
        self.nconnect.update(other.nconnect)
        self.mixed += other.mixed

    def verdicts(self) -> list[Verdict]:
        """All goals of this run. They are those of rxe."""
        found = []
        for row, workload in self.workloads.items():
            ours, in_tree = self.mean(row, OURS), self.reference(row)
            if row.device == "rxe" and ours is not None and in_tree is not None:
                found += bench_goals.judge(str(row), workload.goal, ours, in_tree)
        ours_alone, in_tree_alone = (self.nconnect.get(("rxe", column)) for column in (OURS, IN_TREE))
        if ours_alone is not None and in_tree_alone is not None:
            found += bench_goals.judge_memory("rxe, NFS 4.2", ours_alone, in_tree_alone)
        return found + bench_goals.judge_mixed([mixed for mixed in self.mixed if mixed.device == "rxe"])

    def differences(self) -> Iterator[str]:
        """Where the same build did not cost the same, or was not compared with itself."""
        for (row, column), several in self.costs.items():
            # TCP is neither of the two builds that are compared.
            if column != TCP:
                yield from bench_goals.differences(self.workloads[row], f"{row}, {column}", several)

    def unequal(self) -> Iterator[str]:
        """Where the server was not asked as often for ours as for the in-tree module."""
        for row, workload in self.workloads.items():
            ours, in_tree = self.mean(row, OURS), self.reference(row)
            if ours is not None and in_tree is not None:
                yield from bench_goals.unequal(workload, str(row), ours, in_tree)

    def json(self) -> dict:
        """For people's own programs."""
        costs = [{**asdict(row), "column": column, "operations": self.workloads[row].operations,
                  "repetitions": [costs.json() for costs in several]}
                 for (row, column), several in self.costs.items()]
        return {"costs": costs,
                "memory": [{"device": device, "column": column, "mounts": [memory.json() for memory in found]}
                           for (device, column), found in self.memory.items()],
                "memory of nconnect": [{"device": device, "column": column, **memory.json()}
                                       for (device, column), memory in self.nconnect.items()],
                "mixed": [asdict(mixed) for mixed in self.mixed],
                "goals": [asdict(verdict) for verdict in self.verdicts()]}


def parts_of(parts: tuple[Part, ...], column: str) -> tuple[Part, ...]:
    """Those that are measured in a column."""
    return tuple(part for part in parts if column == OURS or not part.reference)
