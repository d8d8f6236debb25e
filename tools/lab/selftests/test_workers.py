"""Tests of cells that run side by side."""

import contextlib
import io
import threading
import unittest
import unittest.mock

import mounts
import progress
from guests.cell import Test
from guests.pair import OURS, Setup
from mounts import Worker, Outcome, Plan, Round
from results import Results


def workers(*names: str) -> list[Worker]:
    end = unittest.mock.sentinel.end
    return [Worker(Setup(name, end, end), []) for name in names]


class Workers(unittest.TestCase):
    def run_with(self, run_worker, *names: str) -> tuple[Results, str]:
        results, said = Results(), io.StringIO()
        with (unittest.mock.patch("mounts._run_worker", run_worker), unittest.mock.patch("mounts.room", lambda: 2),
              unittest.mock.patch("guests.pair.alone", contextlib.nullcontext), contextlib.redirect_stdout(said)):
            mounts.run_workers(results, workers(*names))
        return results, said.getvalue()

    def test_results_of_all_count_and_lines_say_whose_they_are(self) -> None:
        def run_worker(results: Results, worker: Worker, tell) -> None:
            results.ok(f"cell of {worker.setup.name}")
            results.fail("another", "it had to")
            tell(Outcome(worker.setup.name, 1, 1, 0))

        results, said = self.run_with(run_worker, "one", "two", "three")
        self.assertEqual((results.passed, results.failed), (3, 3))
        self.assertIn("two: ok      cell of two\n", said)

    def test_no_more_than_there_is_room_for(self) -> None:
        at_once, most, lock, both = 0, 0, threading.Lock(), threading.Barrier(2)

        def run_worker(results: Results, worker: Worker, tell) -> None:
            nonlocal at_once, most
            with lock:
                at_once += 1
                most = max(most, at_once)
            both.wait(10)
            with lock:
                at_once -= 1

        self.run_with(run_worker, "one", "two", "three", "four")
        self.assertEqual(most, 2)

    def test_choice_of_tests(self) -> None:
        def tests(*names: str) -> list[Test]:
            return [Test(name, unittest.mock.sentinel.function) for name in names]

        both = workers("one", "two")
        both[0].plans.append(Plan("rxe", "3", OURS, OURS, tests("tea", "milk tea")))
        both[1].plans.append(Plan("siw", "3", OURS, OURS, tests("coffee", "milk")))

        def chosen(wanted: str) -> list[tuple[str, list[str]]]:
            with unittest.mock.patch.dict("os.environ", TESTS=wanted):
                return [(worker.setup.name, [test.name for plan in worker.plans for test in plan.tests])
                        for worker in mounts.chosen(both)]

        self.assertEqual(chosen(""), [("one", ["tea", "milk tea"]), ("two", ["coffee", "milk"])])
        self.assertEqual(chosen("milk"), [("one", ["milk tea"]), ("two", ["milk"])])
        self.assertEqual(chosen("NFSv3: tea"), [("one", ["tea"])])
        with self.assertRaises(progress.Failure):
            chosen("water")

    def test_a_mistake_in_a_worker_is_not_lost(self) -> None:
        def run_worker(results: Results, worker: Worker, tell) -> None:
            raise ZeroDivisionError

        with self.assertRaises(ZeroDivisionError):
            self.run_with(run_worker, "one", "two")


class Turns(unittest.TestCase):
    ROUNDS = [Round("one", []), Round("two", []), Round("three", [])]

    def reached(self, seconds: float) -> tuple[list[str], list[str]]:
        now, done = 0.0, list[str]()

        def run(each: Round) -> None:
            nonlocal now
            now += 10
            done.append(each.name)

        with unittest.mock.patch("time.monotonic", lambda: now):
            unreached = mounts.take_turns(self.ROUNDS, seconds, run)
        return done, [each.name for each in unreached]

    def test_none_begins_after_the_end(self) -> None:
        self.assertEqual(self.reached(15), (["one", "two"], ["three"]))
        self.assertEqual(self.reached(20), (["one", "two"], ["three"]))

    def test_the_first_comes_again(self) -> None:
        self.assertEqual(self.reached(31), (["one", "two", "three", "one"], []))


class Undoing(unittest.TestCase):
    def test_undone_after_success_and_after_failure(self) -> None:
        undone = unittest.mock.Mock()
        with progress.undoing(undone):
            pass
        with self.assertRaises(progress.Failure), progress.undoing(undone):
            raise progress.Failure("first")
        self.assertEqual(undone.call_count, 2)

    def test_the_first_failure_is_the_one_that_is_told(self) -> None:
        def undo() -> None:
            raise progress.Failure("second")

        with contextlib.redirect_stdout(io.StringIO()) as said, self.assertRaisesRegex(progress.Failure, "first"):
            with progress.undoing(undo):
                raise progress.Failure("first")
        self.assertIn("second", said.getvalue())

    def test_nothing_is_asked_of_a_guest_that_hangs(self) -> None:
        undone = unittest.mock.Mock()
        with self.assertRaises(progress.TimedOut), progress.undoing(undone):
            raise progress.TimedOut("gone")
        undone.assert_not_called()
