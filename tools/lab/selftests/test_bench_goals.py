"""Tests of what judges a run of the benchmark: goals, the spread of two guests, the same build in two boots."""

from dataclasses import replace

import pytest

from bench import costs as bench_costs, goals as bench_goals, plan as bench_plan
from bench.costs import Costs
from bench.goals import Verdict
from bench.measured import TCP, Measured
from bench.memory import Memory
from bench.mixed import Mixed
from bench.plan import NFS42, Goal, Part, Workload
from guests.pair import IN_TREE, OURS

WORKLOAD = Workload("read 64 KiB", "", 1000, limit=0.005)
GOAL = Goal(0.9, 0.8, most=(("ib_post_send", 2),), just=(("RegMR", 1),), parts=(("CQ wakeups", 0.7),))
MET = {"ib_post_send": 2.01, "RegMR": 1, "CQ wakeups": 1.4}
SEND, RECEIVE, COMPLETION = (bench_costs.AT_ONE_END.format(name) for name in ("ib_post_send", "ib_post_recv", "completions"))
# Of some workloads, with a total and counts that meet each, and counts that miss it.
GOALS: dict[str, tuple[Goal, float, dict[str, float], dict[str, float]]] = {
    "each end is judged by itself": (bench_plan.INLINE, 90, {SEND: 1.0, RECEIVE: 0.0625, COMPLETION: 1.2},
                                     {SEND: 1.03, RECEIVE: 0.07, COMPLETION: 1.3}),
    "a long Reply that is short is not written": (bench_plan.READLINK.goal, 90, {"RDMA Write": 0}, {"RDMA Write": 1}),
    **{f"nothing is registered for a Reply that is short as a rule, {workload.name}": (
        workload.goal, 80, {"RDMA Write": 0, "RegMR": 0, "LocalInv": 0}, {"RDMA Write": 1, "RegMR": 1, "LocalInv": 1})
       for workload in (bench_plan.READDIR_SHORT, bench_plan.LISTXATTR, bench_plan.GETACL)}}


def costs(total: float, rpcrdma: float = 0.0, **counts: float) -> Costs:
    return Costs(total, {"rpcrdma": rpcrdma}, {"RPCs": 1.0, **counts}, total, ())


def missed(counts: dict[str, float], total: float = 90, rpcrdma: float = 8, goal: Goal = GOAL) -> list[str]:
    ours, in_tree = costs(total, rpcrdma, **{**MET, **counts}), costs(100, 10, **{"CQ wakeups": 2})
    return [verdict.what for verdict in bench_goals.judge("row", goal, ours, in_tree) if not verdict.met]


@pytest.mark.parametrize(("counts", "total", "rpcrdma", "what"), [
    ({}, 90, 8, []), ({}, 90.1, 8, ["total instructions, ours / C"]), ({}, 90, 8.1, ["instructions in rpcrdma, ours / C"]),
    ({"ib_post_send": 2.1}, 90, 8, ["ib_post_send"]), ({"RegMR": 2}, 90, 8, ["RegMR"]), ({"RegMR": 0}, 90, 8, ["RegMR"]),
    ({"CQ wakeups": 1.5}, 90, 8, ["CQ wakeups, ours / C"])])
def test_each_can_be_missed(counts: dict[str, float], total: float, rpcrdma: float, what: list[str]) -> None:
    assert missed(counts, total, rpcrdma) == what


def test_what_rust_has_out_of_line_counts_as_the_modules() -> None:
    ours = replace(costs(90), modules={"rpcrdma": 8.0, "rust": 0.5})
    assert [verdict.met for verdict in bench_goals.judge("row", Goal(rpcrdma=0.8), ours, costs(100, 10))] == [False]


@pytest.mark.parametrize(("goal", "total", "good", "wrong"), GOALS.values(), ids=GOALS)
def test_goals_of_workloads(goal: Goal, total: float, good: dict[str, float], wrong: dict[str, float]) -> None:
    assert missed(good, total, goal=goal) == []
    for name, value in wrong.items():
        assert missed({**good, name: value}, total, goal=goal) == [name]


def test_nothing_of_nothing() -> None:
    assert (bench_goals.ratio(0, 0), bench_goals.ratio(1, 0)) == (1, float("inf"))


def test_memory() -> None:
    in_tree, good = Memory(16, 100, 100, 100, 0), Memory(16, 60, 90, 66, 0)
    assert [verdict.met for verdict in bench_goals.judge_memory("row", good, in_tree)] == [True] * 3
    # Too much when idle, does not grow, does not shrink.
    for number, wrong in enumerate((replace(good, idle=61), replace(good, busy=60), replace(good, again=67))):
        assert not bench_goals.judge_memory("row", wrong, in_tree)[number].met


def verdicts(alone: tuple[float, ...], ours: tuple[float, ...]) -> list[Verdict]:
    """Of ours with the in-tree module, against that one with it"""
    return bench_goals.judge_mixed([
        Mixed("rxe", client, server, workload, list(totals), [], {}) for client, server, workload, totals in (
            (IN_TREE, IN_TREE, "read", alone), (OURS, IN_TREE, "read", ours), (OURS, IN_TREE, "write", ours))])


def test_against_the_in_tree_module_with_itself() -> None:
    # The write has nothing to be compared with.
    assert [verdict.met for verdict in verdicts((100, 100.5), (103, 103))] == [True]
    assert [verdict.met for verdict in verdicts((100, 100), (104, 104))] == [False]


@pytest.mark.parametrize(("alone", "ours"), [((100, 103), (90, 90)), ((100, 100), (120, 123))])
def test_no_verdict_where_the_numbers_are_spread(alone: tuple[float, ...], ours: tuple[float, ...]) -> None:
    verdict, = verdicts(alone, ours)
    assert verdict.met is None and str(verdict).startswith("no verdict  rxe, client ours, server c, read: ")


def test_what_is_rare_does_not_count() -> None:
    verdict, = verdicts((100, 100, 100, 100, 130), (103, 103, 103, 70, 103))
    assert (verdict.met, verdict.value) == (True, 1.03)


def measured(column: str, *boots: Costs) -> Measured:
    every = Measured()
    for one in boots:
        found = Measured()
        found.note("rxe", Part(NFS42, "4.2", ()), WORKLOAD, column, [one])
        every.include(found)
    return every


def test_spread() -> None:
    assert bench_costs.spread([100, 110]) == pytest.approx(10 / 105)
    assert bench_costs.spread([100, 100]) == 0


def test_every_boot_counts() -> None:
    assert list(measured(OURS, costs(1000), costs(1004)).differences()) == []
    for boots in ((costs(1000), costs(1006)), (costs(1000), costs(1000), costs(994))):
        wrong, = measured(OURS, *boots).differences()
        assert "rxe, NFS 4.2, read 64 KiB, ours: differs by 0.60%, more than 0.5%" in wrong


def test_the_limit_is_the_workloads() -> None:
    several = [costs(1000), costs(1006)]
    assert bench_goals.differences(replace(WORKLOAD, limit=0.01), "row", several) == []
    assert len(bench_goals.differences(WORKLOAD, "row", several)) == 1


def test_one_boot_is_no_comparison() -> None:
    assert len(list(measured(OURS, costs(1000)).differences())) == 1
    # TCP is there to look at.
    assert list(measured(TCP, costs(1000)).differences()) == []
    assert list(measured(TCP, costs(1000), costs(1010)).differences()) == []


def test_both_modules_are_asked_for_the_same() -> None:
    def unequal(ours: float, in_tree: float) -> list[str]:
        both = measured(OURS, costs(1, RPCs=ours))
        both.include(measured(IN_TREE, costs(1, RPCs=in_tree)))
        return list(both.unequal())

    # Of 1000 operations one RPC more may be of a lease.
    for equal in ((2, 2), (2.001, 2), (2, 2.001)):
        assert unequal(*equal) == []
    assert unequal(2.002, 2) == ["rxe, NFS 4.2, read 64 KiB: 2.002 RPCs with ours, 2 with the in-tree module"]
    assert len(unequal(1, 2)) == 1
