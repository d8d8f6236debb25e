"""Tests of what judges a run of the benchmark: goals, the spread of two guests, the same build in two boots."""

import unittest
from dataclasses import replace

from bench import costs as bench_costs, goals as bench_goals, plan as bench_plan
from bench.costs import Costs
from bench.goals import Verdict
from bench.measured import TCP, Measured
from bench.memory import Memory
from bench.mixed import Mixed
from bench.plan import NFS42, Goal, Part, Workload
from guests.pair import IN_TREE, OURS

WORKLOAD = Workload("read 64 KiB", "", 1000, limit=0.005)


def costs(total: float, rpcrdma: float = 0.0, **counts: float) -> Costs:
    return Costs(total, {"rpcrdma": rpcrdma}, {"RPCs": 1.0, **counts}, total, ())


class Goals(unittest.TestCase):
    GOAL = Goal(0.9, 0.8, most=(("ib_post_send", 2),), just=(("RegMR", 1),), parts=(("CQ wakeups", 0.7),))
    MET = {"ib_post_send": 2.01, "RegMR": 1, "CQ wakeups": 1.4}

    def missed(self, counts: dict[str, float], total: float = 90, rpcrdma: float = 8,
               goal: Goal = GOAL) -> list[str]:
        ours, in_tree = costs(total, rpcrdma, **{**self.MET, **counts}), costs(100, 10, **{"CQ wakeups": 2})
        return [verdict.what for verdict in bench_goals.judge("row", goal, ours, in_tree) if not verdict.met]

    def test_met(self) -> None:
        self.assertEqual(self.missed({}), [])

    def test_each_can_be_missed(self) -> None:
        self.assertEqual(self.missed({}, total=90.1), ["total instructions, ours / C"])
        self.assertEqual(self.missed({}, rpcrdma=8.1), ["instructions in rpcrdma, ours / C"])
        self.assertEqual(self.missed({"ib_post_send": 2.1}), ["ib_post_send"])
        self.assertEqual(self.missed({"RegMR": 2}), ["RegMR"])
        self.assertEqual(self.missed({"RegMR": 0}), ["RegMR"])
        self.assertEqual(self.missed({"CQ wakeups": 1.5}), ["CQ wakeups, ours / C"])

    def test_what_rust_has_out_of_line_counts_as_the_modules(self) -> None:
        ours = replace(costs(90), modules={"rpcrdma": 8.0, "rust": 0.5})
        verdicts = bench_goals.judge("row", Goal(rpcrdma=0.8), ours, costs(100, 10))
        self.assertEqual([verdict.met for verdict in verdicts], [False])

    def test_each_end_is_judged_by_itself(self) -> None:
        names = [bench_costs.AT_ONE_END.format(name) for name in ("ib_post_send", "ib_post_recv", "completions")]
        good = dict(zip(names, (1.0, 0.0625, 1.2)))
        self.assertEqual(self.missed(good, goal=bench_plan.INLINE), [])
        for name, value in zip(names, (1.03, 0.07, 1.3)):
            self.assertEqual(self.missed({**good, name: value}, goal=bench_plan.INLINE), [name])

    def test_a_long_reply_that_is_short_is_not_written(self) -> None:
        goal = bench_plan.READLINK.goal
        self.assertEqual(self.missed({"RDMA Write": 0}, goal=goal), [])
        self.assertEqual(self.missed({"RDMA Write": 1}, goal=goal), ["RDMA Write"])

    def test_nothing_is_registered_for_a_reply_that_is_short_as_a_rule(self) -> None:
        good: dict[str, float] = {"RDMA Write": 0, "RegMR": 0, "LocalInv": 0}
        for workload in (bench_plan.READDIR_SHORT, bench_plan.LISTXATTR, bench_plan.GETACL):
            self.assertEqual(self.missed(good, total=80, goal=workload.goal), [])
            for name in good:
                self.assertEqual(self.missed({**good, name: 1}, total=80, goal=workload.goal), [name])

    def test_nothing_of_nothing(self) -> None:
        self.assertEqual(bench_goals.ratio(0, 0), 1)
        self.assertEqual(bench_goals.ratio(1, 0), float("inf"))

    def test_memory(self) -> None:
        in_tree, good = Memory(16, 100, 100, 100, 0), Memory(16, 60, 90, 66, 0)
        self.assertEqual([verdict.met for verdict in bench_goals.judge_memory("row", good, in_tree)], [True] * 3)
        # Too much when idle, does not grow, does not shrink.
        for number, wrong in enumerate((replace(good, idle=61), replace(good, busy=60), replace(good, again=67))):
            self.assertFalse(bench_goals.judge_memory("row", wrong, in_tree)[number].met)


class MixedPairs(unittest.TestCase):
    def verdicts(self, alone: tuple[float, ...], ours: tuple[float, ...]) -> list[Verdict]:
        """Of ours with the in-tree module, against that one with itself."""
        return bench_goals.judge_mixed([
            Mixed("rxe", client, server, workload, list(totals), [], {}) for client, server, workload, totals in (
                (IN_TREE, IN_TREE, "read", alone), (OURS, IN_TREE, "read", ours), (OURS, IN_TREE, "write", ours))])

    def test_against_the_in_tree_module_with_itself(self) -> None:
        # The write has nothing to be compared with.
        self.assertEqual([verdict.met for verdict in self.verdicts((100, 100.5), (103, 103))], [True])
        self.assertEqual([verdict.met for verdict in self.verdicts((100, 100), (104, 104))], [False])

    def test_no_verdict_where_the_numbers_are_spread(self) -> None:
        for alone, ours in (((100, 103), (90, 90)), ((100, 100), (120, 123))):
            verdict, = self.verdicts(alone, ours)
            self.assertIsNone(verdict.met)
            self.assertTrue(str(verdict).startswith("no verdict  rxe, client ours, server c, read: "))

    def test_what_is_rare_does_not_count(self) -> None:
        verdict, = self.verdicts((100, 100, 100, 100, 130), (103, 103, 103, 70, 103))
        self.assertEqual((verdict.met, verdict.value), (True, 1.03))


class SameBuild(unittest.TestCase):
    def measured(self, column: str, *boots: Costs) -> Measured:
        measured = Measured()
        for one in boots:
            found = Measured()
            found.note("rxe", Part(NFS42, "4.2", ()), WORKLOAD, column, [one])
            measured.include(found)
        return measured

    def test_spread(self) -> None:
        self.assertAlmostEqual(bench_costs.spread([100, 110]), 10 / 105)
        self.assertEqual(bench_costs.spread([100, 100]), 0)

    def test_every_boot_counts(self) -> None:
        self.assertEqual(list(self.measured(OURS, costs(1000), costs(1004)).differences()), [])
        for boots in ((costs(1000), costs(1006)), (costs(1000), costs(1000), costs(994))):
            wrong, = self.measured(OURS, *boots).differences()
            self.assertRegex(wrong, r"rxe, NFS 4.2, read 64 KiB, ours: differs by 0\.60%, more than 0\.5%")

    def test_the_limit_is_the_workloads(self) -> None:
        several = [costs(1000), costs(1006)]
        self.assertEqual(bench_goals.differences(replace(WORKLOAD, limit=0.01), "row", several), [])
        self.assertEqual(len(bench_goals.differences(WORKLOAD, "row", several)), 1)

    def test_one_boot_is_no_comparison(self) -> None:
        self.assertEqual(len(list(self.measured(OURS, costs(1000)).differences())), 1)
        # TCP is there to look at.
        self.assertEqual(list(self.measured(TCP, costs(1000)).differences()), [])
        self.assertEqual(list(self.measured(TCP, costs(1000), costs(1010)).differences()), [])

    def test_both_modules_are_asked_for_the_same(self) -> None:
        def unequal(ours: float, in_tree: float) -> list[str]:
            measured = self.measured(OURS, costs(1, RPCs=ours))
            measured.include(self.measured(IN_TREE, costs(1, RPCs=in_tree)))
            return list(measured.unequal())

        # Of 1000 operations one RPC more may be of a lease.
        for equal in ((2, 2), (2.001, 2), (2, 2.001)):
            self.assertEqual(unequal(*equal), [])
        self.assertEqual(unequal(2.002, 2),
                         ["rxe, NFS 4.2, read 64 KiB: 2.002 RPCs with ours, 2 with the in-tree module"])
        self.assertEqual(len(unequal(1, 2)), 1)
