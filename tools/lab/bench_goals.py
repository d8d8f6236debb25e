"""Which goals are met, and whether the same build costs the same each time."""

from dataclasses import dataclass

import bench_costs
from bench_costs import Costs
from bench_memory import Memory
from bench_mixed import PAIRS, Mixed
from bench_plan import MEMORY_MOST, MIXED_MOST, SHRUNK_MOST, Goal, Workload

# A lease that is renewed meanwhile is no mistake: of counts for one operation, as a part of what may be, or of one.
SLACK = 0.02


@dataclass(frozen=True)
class Verdict:
    """A goal, and whether it is met."""

    row: str
    what: str
    value: float
    goal: str
    met: bool

    def __str__(self) -> str:
        return f"{'met   ' if self.met else 'MISSED'}  {self.row}: {self.what} {self.value:.3f}, goal {self.goal}"


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
        value = ratio(sum(mixed.totals), sum(reference.totals))
        row = f"{mixed.device}, client {mixed.client}, server {mixed.server}, {mixed.workload}"
        verdicts.append(_at_most(row, "total instructions / C with C", value, MIXED_MOST))
    return verdicts


def judge_memory(row: str, ours: Memory, in_tree: Memory) -> list[Verdict]:
    """The memory of an idle connection, which is to grow with use, and to shrink after it."""
    grown = ratio(ours.busy, ours.idle)
    return [_at_most(row, "bytes of an idle connection, ours / C", ratio(ours.idle, in_tree.idle), MEMORY_MOST),
            Verdict(row, "bytes of ours, busy / idle", grown, "> 1", grown > 1),
            _at_most(row, "bytes of ours, some time after use / before it", ratio(ours.again, ours.idle), SHRUNK_MOST)]


def differences(workload: Workload, row: str, several: list[Costs], again: list[Costs]) -> list[str]:
    """What is wrong when the same build does not cost the same: from repetition to repetition, from boot to boot."""
    wrong = []
    totals = [costs.total for costs in several]
    if (found := bench_costs.spread(totals)) > workload.limit:
        wrong.append(f"{row}: repetitions differ by {found:.2%}, more than {workload.limit:.1%}")
    if again:
        means = [sum(totals) / len(totals), sum(costs.total for costs in again) / len(again)]
        if (found := bench_costs.spread(means)) > workload.limit:
            wrong.append(f"{row}: boots differ by {found:.2%}, more than {workload.limit:.1%}")
    return wrong


def _at_most(row: str, what: str, value: float, most: float) -> Verdict:
    return Verdict(row, what, value, f"<= {most:g}", value <= most)
