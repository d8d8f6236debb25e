"""Which goals are met, and whether the same build costs the same each time."""

from dataclasses import dataclass, replace

from bench import costs as bench_costs
from bench.costs import RPCS, Costs
from bench.memory import Memory
from bench.mixed import PAIRS, Mixed
from bench.plan import MEMORY_MOST, MIXED_LIMIT, MIXED_MOST, SHRUNK_MOST, Goal, Workload

# A lease that is renewed meanwhile is no mistake: of counts for one operation, as a part of what may be, or of one.
SLACK = 0.02
# For the same reason, so many RPCs more may be in one of the two that are compared.
STRAY_RPCS = 1


# In the order in which they are told.
WORDS = {False: "MISSED", None: "no verdict", True: "met   "}


@dataclass(frozen=True)
class Verdict:
    """A goal, and whether it is met; None where that cannot be told."""

    row: str
    what: str
    value: float
    goal: str
    met: bool | None

    def __str__(self) -> str:
        return f"{WORDS[self.met]}  {self.row}: {self.what} {self.value:.3f}, goal {self.goal}"


def ratio(ours: float, other: float) -> float:
    """Ours as a part of another's; nothing is as much as nothing."""
    if other == 0:
        return 1.0 if ours == 0 else float("inf")
    return ours / other


def judge(row: str, goal: Goal, ours: Costs, in_tree: Costs) -> list[Verdict]:
    """The goals of one workload."""
    found = []
    for what, value, most in (("total instructions", ratio(ours.total, in_tree.total), goal.total),
                              ("instructions in rpcrdma", ratio(ours.rpcrdma, in_tree.rpcrdma), goal.rpcrdma)):
        if most is not None:
            found.append(_at_most(row, f"{what}, ours / C", value, most))
    for name, most in goal.most:
        value = ours.counts.get(name, 0.0)
        found.append(Verdict(row, name, value, f"<= {most:g}", value <= most * (1 + SLACK)))
    for name, wanted in goal.just:
        value = ours.counts.get(name, 0.0)
        found.append(Verdict(row, name, value, f"{wanted:g}", abs(value - wanted) <= SLACK))
    for name, most in goal.parts:
        value = ratio(ours.counts.get(name, 0.0), in_tree.counts.get(name, 0.0))
        found.append(_at_most(row, f"{name}, ours / C", value, most))
    return found


def judge_mixed(found: list[Mixed]) -> list[Verdict]:
    """Ours with the in-tree module at the other end, against that one at both."""
    alone = {(mixed.device, mixed.workload): mixed for mixed in found if (mixed.client, mixed.server) == PAIRS[0]}
    verdicts = []
    for mixed in found:
        reference = alone.get((mixed.device, mixed.workload))
        if mixed is reference or reference is None:
            continue
        value = ratio(mixed.total, reference.total)
        row = f"{mixed.device}, client {mixed.client}, server {mixed.server}, {mixed.workload}"
        verdict = _at_most(row, "total instructions / C with C", value, MIXED_MOST)
        widest = max(mixed.spread, reference.spread)
        if widest > MIXED_LIMIT:
            verdict = replace(verdict, goal=f"{verdict.goal}, but a spread of {widest:.2%}", met=None)
        verdicts.append(verdict)
    return verdicts


def judge_memory(row: str, ours: Memory, in_tree: Memory) -> list[Verdict]:
    """The memory of an idle connection, which is to grow with use, and to shrink after it."""
    grown = ratio(ours.busy, ours.idle)
    return [_at_most(row, "bytes of an idle connection, ours / C", ratio(ours.idle, in_tree.idle), MEMORY_MOST),
            Verdict(row, "bytes of ours, busy / idle", grown, "> 1", grown > 1),
            _at_most(row, "bytes of ours, some time after use / before it", ratio(ours.again, ours.idle), SHRUNK_MOST)]


def differences(workload: Workload, row: str, several: list[Costs]) -> list[str]:
    """What is wrong when the same build does not cost the same from boot to boot, or from repetition to repetition."""
    if len(several) < 2:
        return [f"{row}: there is nothing to compare with"]
    found = bench_costs.spread([costs.total for costs in several])
    return [f"{row}: differs by {found:.2%}, more than {workload.limit:.1%}"] if found > workload.limit else []


def unequal(workload: Workload, row: str, ours: Costs, in_tree: Costs) -> list[str]:
    """What is wrong when an operation is not as many RPCs with ours as with the in-tree module."""
    found = [costs.counts[RPCS] for costs in (ours, in_tree)]
    if round(abs(found[0] - found[1]) * workload.operations, 3) <= STRAY_RPCS:
        return []
    return [f"{row}: {found[0]:g} RPCs with ours, {found[1]:g} with the in-tree module"]


def _at_most(row: str, what: str, value: float, most: float) -> Verdict:
    return Verdict(row, what, value, f"<= {most:g}", value <= most)
