"""Tests of the time that guests have had."""

import os
import subprocess
import time
from types import SimpleNamespace
from unittest import mock

import pytest

import progress
from guests import clock, pair, tsc
from guests.machine import CLIENT, SERVER

# How many guests that wait alike; how long each thread has waited before; and then, while how many seconds pass, how many of
# these the guest has had.
Steps = list[tuple[dict[int, float], float, float]]
HAD: dict[str, tuple[int, dict[int, float], Steps]] = {
    "an idle host holds nobody up": (1, {1: 5, 2: 7}, [({1: 5, 2: 7}, 10, 10)]),
    "who waits longest says how much a guest has had": (
        1, {1: 5, 2: 7}, [({1: 11, 2: 8, 3: 1}, 10, 4), ({1: 11, 2: 8, 3: 1}, 10, 10)]),
    "guests hold each other up": (2, {1: 0}, [({1: 5}, 10, 2.5)]),
    "a limit is reached without any processor": (1, {1: 0}, [({1: 50}, 50, 5)]),
    "a guest that begins anew": (1, {1: 90}, [({}, 5, 5), ({2: 1}, 5, 4)])}


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A host whose time passes as a test says."""
    passed = SimpleNamespace(seconds=100.0)
    monkeypatch.setattr(time, "monotonic", lambda: passed.seconds)
    return passed


def test_it_is_measured_to_be_the_same_each_time() -> None:
    found = [tsc.kilohertz.__wrapped__() for _ in range(3)]
    assert max(found) / min(found) < 1.0001 and min(found) > 100_000


@pytest.mark.parametrize(("guests", "before", "steps"), HAD.values(), ids=HAD)
def test_time_that_a_guest_has_had(host: SimpleNamespace, guests: int, before: dict[int, float], steps: Steps) -> None:
    had, waits = clock.Clock(), dict(before)
    for _ in range(guests):
        had.add(lambda: dict(waits))
    for now, seconds, wanted in steps:
        waits.clear()
        waits |= now
        began = had.now()
        host.seconds += seconds
        assert had.now() - began == pytest.approx(wanted)


def test_sleep(host: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    had, waits = clock.Clock(), {1: 0.0}
    had.add(lambda: dict(waits))

    def sleep(seconds: float) -> None:
        host.seconds += seconds
        waits[1] += seconds / 2

    monkeypatch.setattr(time, "sleep", sleep)
    had.sleep(10)
    assert host.seconds > 118


def test_those_of_a_child() -> None:
    # More than one of these for each processor.
    count = os.cpu_count() or 1
    burn = " & ".join(["while :; do :; done"] * (2 * count))
    command = ["timeout", "-k", "1", "10", "sh", "-c", f"while :; do :; done & {burn}"]
    with subprocess.Popen(command, start_new_session=True) as parent:
        try:
            deadline = time.monotonic() + 10
            while sum(clock.waits_of_child(parent.pid).values()) < 0.05:
                assert time.monotonic() < deadline, "nobody waited"
                time.sleep(0.01)
        finally:
            os.killpg(parent.pid, 9)


def test_nobody() -> None:
    assert clock.waits_of_child(os.getpid()) == {}


def said(server: float | None, client: float | None) -> str:
    """What is said of clocks that have gone so much less than the host's; None: of a guest that does not answer."""
    guests = object.__new__(pair.Pair)
    silent = progress.Failure("it does not answer")
    guests.machines = [mock.Mock(role=role, **{"strayed.side_effect": silent if seconds is None else [seconds]})
                       for role, seconds in ((SERVER, server), (CLIENT, client))]
    return guests.strayed()


def test_a_slow_answer() -> None:
    assert said(0.4, -4.9) == ""


def test_behind_and_ahead() -> None:
    assert said(0.0, 8.01) == " (the client's clock has gone 8.0 s less than the host's)"
    assert "the server's clock has gone -60.0 s less" in said(-60.0, 0.0)


def test_a_guest_that_does_not_answer() -> None:
    assert said(None, None) == ""
    assert "the client's" in said(None, 6.0)
