"""Tests of the time that guests have had."""

import os
import subprocess
import time
import unittest
import unittest.mock

from guests import clock


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
