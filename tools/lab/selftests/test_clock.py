"""Tests of the time that guests have had."""

import os
import subprocess
import time
import unittest
import unittest.mock

import progress
from guests import clock, pair, tsc
from guests.machine import CLIENT, SERVER


class Rate(unittest.TestCase):
    def test_it_is_measured_to_be_the_same_each_time(self) -> None:
        found = [tsc.kilohertz.__wrapped__() for _ in range(3)]
        self.assertLess(max(found) / min(found), 1.0001)
        self.assertGreater(min(found), 100_000)


class Had(unittest.TestCase):
    def setUp(self) -> None:
        self.host = 100.0
        patch = unittest.mock.patch("time.monotonic", lambda: self.host)
        patch.start()
        self.addCleanup(patch.stop)
        self.clock = clock.Clock()

    def pass_time(self, seconds: float) -> float:
        before = self.clock.now()
        self.host += seconds
        return self.clock.now() - before

    def test_an_idle_host_holds_nobody_up(self) -> None:
        self.clock.add(lambda: {1: 5.0, 2: 7.0})
        self.assertAlmostEqual(self.pass_time(10), 10)

    def test_who_waits_longest_says_how_much_a_guest_has_had(self) -> None:
        waits = {1: 5.0, 2: 7.0}
        self.clock.add(lambda: dict(waits))
        waits |= {1: 11.0, 2: 8.0, 3: 1.0}
        self.assertAlmostEqual(self.pass_time(10), 4)
        self.assertAlmostEqual(self.pass_time(10), 10)

    def test_guests_hold_each_other_up(self) -> None:
        waits = {1: 0.0}
        for _ in range(2):
            self.clock.add(lambda: dict(waits))
        waits[1] = 5.0
        self.assertAlmostEqual(self.pass_time(10), 2.5)

    def test_a_limit_is_reached_without_any_processor(self) -> None:
        waits = {1: 0.0}
        self.clock.add(lambda: dict(waits))
        waits[1] = 50.0
        self.assertAlmostEqual(self.pass_time(50), 5)

    def test_sleep(self) -> None:
        waits = {1: 0.0}
        self.clock.add(lambda: dict(waits))

        def sleep(seconds: float) -> None:
            self.host += seconds
            waits[1] += seconds / 2

        with unittest.mock.patch("time.sleep", sleep):
            self.clock.sleep(10)
        self.assertGreater(self.host, 118)

    def test_a_guest_that_begins_anew(self) -> None:
        waits = {1: 90.0}
        self.clock.add(lambda: dict(waits))
        waits.clear()
        self.assertAlmostEqual(self.pass_time(5), 5)
        waits[2] = 1.0
        self.assertAlmostEqual(self.pass_time(5), 4)


class Waits(unittest.TestCase):
    def test_those_of_a_child(self) -> None:
        # More than one of these for each processor.
        count = os.cpu_count() or 1
        burn = " & ".join(["while :; do :; done"] * (2 * count))
        with subprocess.Popen(["timeout", "-k", "1", "10", "sh", "-c", f"while :; do :; done & {burn}"],
                              start_new_session=True) as parent:
            try:
                deadline = time.monotonic() + 10
                while sum(clock.waits_of_child(parent.pid).values()) < 0.05:
                    self.assertLess(time.monotonic(), deadline, "nobody waited")
                    time.sleep(0.01)
            finally:
                os.killpg(parent.pid, 9)

    def test_nobody(self) -> None:
        self.assertEqual(clock.waits_of_child(os.getpid()), {})


class Strayed(unittest.TestCase):
    def said(self, server: float | None, client: float | None) -> str:
        """What is said of clocks that have gone so much less than the host's; None: of a guest that does not answer."""
        guests = object.__new__(pair.Pair)
        guests.machines = [unittest.mock.Mock(role=role, strayed=unittest.mock.Mock(
            side_effect=progress.Failure("it does not answer") if seconds is None else None, return_value=seconds))
            for role, seconds in ((SERVER, server), (CLIENT, client))]
        return guests.strayed()

    def test_a_slow_answer(self) -> None:
        self.assertEqual(self.said(0.4, -4.9), "")

    def test_behind_and_ahead(self) -> None:
        self.assertEqual(self.said(0.0, 8.01), " (the client's clock has gone 8.0 s less than the host's)")
        self.assertIn("the server's clock has gone -60.0 s less", self.said(-60.0, 0.0))

    def test_a_guest_that_does_not_answer(self) -> None:
        self.assertEqual(self.said(None, None), "")
        self.assertIn("the client's", self.said(None, 6.0))
