"""Tests of whose guests are whose, and of the room for them."""

import contextlib
import multiprocessing
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest

import lane
import progress
import repository
import room
from guests import pair
from guests.cell import Cell
from lane import Guests, TimeOver
from plan import Case, Lane, Plan, case, of

BROKEN, HUNG = progress.Failure("it is broken"), progress.TimedOut("it hangs")


def test_something(cell: Cell) -> None:
    """To be found below, and to pass."""


@pytest.fixture(name="cell", params=[None])
def nothing() -> None:
    """The guests of the test above."""


@pytest.fixture
def pairs(monkeypatch: pytest.MonkeyPatch) -> list[mock.Mock]:
    """The pairs that were started, none of which is real."""
    started: list[mock.Mock] = []

    @contextlib.contextmanager
    def running(setup: object) -> Iterator[mock.Mock]:
        started.append(mock.Mock(name=f"pair {len(started)}"))
        started[-1].configure_mock(**{"strayed.return_value": "", "troubles.return_value": []})
        yield started[-1]
        started[-1].stopped()

    monkeypatch.setattr("guests.pair.running", running)
    monkeypatch.setattr(room, "place", lambda count: contextlib.nullcontext())
    monkeypatch.setattr(progress, "speak_as", lambda name: None)
    monkeypatch.setattr(Lane, "needed_setup", lambda self: None)
    return started


def plan(version: str = "4.2") -> Plan:
    return Plan("rxe", version, [])


def end(guests: Guests, cell: Cell, failure: Exception | None, usable: bool = True) -> None:
    """A test in a cell ends so."""
    with mock.patch.object(Cell, "clear", lambda self: usable), contextlib.suppress(progress.Failure):
        guests.judge(mock.Mock(side_effect=failure), cell, plan(), "test", [], mock.Mock())


def test_cells_of_a_lane_have_the_same_guests(pairs: list[mock.Mock]) -> None:
    guests, one = Guests(), Lane("one", mock.Mock(), [])
    for version in ("4.2", "3"):
        end(guests, guests.cell(one, plan(version)), None)
    assert len(pairs) == 1 and pairs[0].load.call_count == 2
    guests.cell(Lane("two", mock.Mock(), []), plan())
    assert len(pairs) == 2 and pairs[0].stopped.called and not pairs[1].stopped.called


@pytest.mark.parametrize(("failure", "usable", "lost"), [(BROKEN, True, False), (BROKEN, False, True), (HUNG, True, True)])
def test_guests_of_no_more_use_cost_the_rest_of_their_cell(pairs: list[mock.Mock], failure: Exception, usable: bool, lost: bool) -> None:
    guests, one, first = Guests(), Lane("one", mock.Mock(), []), plan()
    end(guests, guests.cell(one, first), failure, usable)
    assert pairs[0].keep_records.called and pairs[0].stopped.called == lost
    with pytest.raises(progress.Failure, match="could not run") if lost else contextlib.nullcontext():
        guests.cell(one, first)
    guests.cell(one, plan("3"))
    assert len(pairs) == 1 + lost


def test_guests_that_do_not_start_cost_their_cell(pairs: list[mock.Mock]) -> None:
    guests, one, first = Guests(), Lane("one", mock.Mock(), []), plan()
    with mock.patch.object(lane.pair, "running", mock.Mock(side_effect=BROKEN)):
        for _ in range(2):
            with pytest.raises(progress.Failure, match="it is broken"):
                guests.cell(one, first)
    guests.cell(one, plan("3"))
    assert len(pairs) == 1


def test_what_cannot_be_built_is_built_once_for_a_lane(pairs: list[mock.Mock]) -> None:
    guests, setup = Guests(), mock.Mock(side_effect=BROKEN)
    for name in ("one", "two"):
        with mock.patch.object(Lane, "needed_setup", setup):
            one = Lane(name, mock.Mock(), [])
            for version in ("4.2", "3"):
                with pytest.raises(progress.Failure, match="it is broken"):
                    guests.cell(one, plan(version))
    assert setup.call_count == 2 and not pairs


def test_what_kernels_say_meanwhile_is_heard(pairs: list[mock.Mock]) -> None:
    """Else the next test would fail with it."""
    guests, one = Guests(), Lane("one", mock.Mock(), [])
    for failure in (BROKEN, ValueError("mistake")):
        cell = guests.cell(one, plan())
        with mock.patch.object(Cell, "clear", lambda self: True), pytest.raises(type(failure)):
            guests.judge(mock.Mock(side_effect=failure), cell, plan(), "test", [], mock.Mock())
        assert pairs[0].troubles.call_count == 1
        pairs[0].troubles.reset_mock()


def test_what_kernels_say_that_is_no_failure_is_noted(pairs: list[mock.Mock]) -> None:
    """Where lines do not matter, or behind a fault of the test itself."""
    guests = Guests()
    noted: list[str] = []
    cell = guests.cell(Lane("one", mock.Mock(), []), plan())
    pairs[0].troubles.return_value = ["a line"]
    guests.judge(mock.Mock(), cell, replace(plan(), quiet=False), "test", [], noted.append)
    with mock.patch.object(Cell, "clear", lambda self: True), pytest.raises(ValueError):
        guests.judge(mock.Mock(side_effect=ValueError), cell, plan(), "test", [], noted.append)
    assert noted == ["a line"] * 2


def test_guests_that_are_not_set_up_are_of_no_use(pairs: list[mock.Mock]) -> None:
    """Whatever went wrong: the tests of a cell do not run in the one before."""
    guests, one, second = Guests(), Lane("one", mock.Mock(), []), plan("3")
    guests.cell(one, plan())
    pairs[0].load.side_effect = KeyError("mistake")
    with pytest.raises(KeyError):
        guests.cell(one, second)
    with pytest.raises(progress.Failure, match="could not run: 'mistake'"):
        guests.cell(one, second)
    assert pairs[0].stopped.called


def test_no_lane_begins_after_its_time(pairs: list[mock.Mock], monkeypatch: pytest.MonkeyPatch) -> None:
    """Which may be over while it waits for room; one that has begun goes on."""
    guests, one = Guests(), Lane("one", mock.Mock(), [], until=10)
    monkeypatch.setattr(room, "seconds", lambda: 9)
    guests.cell(one, plan())
    monkeypatch.setattr(room, "seconds", lambda: 11)
    guests.cell(one, plan("3"))
    with pytest.raises(TimeOver):
        guests.cell(Lane("two", mock.Mock(), [], until=10), plan())


def test_a_kernel_that_says_what_it_should_not_is_a_failure(pairs: list[mock.Mock]) -> None:
    guests = Guests()
    cell = guests.cell(Lane("one", mock.Mock(), []), plan())
    pairs[0].must_be_quiet.side_effect = BROKEN
    with mock.patch.object(Cell, "clear", lambda self: True), pytest.raises(progress.Failure):
        guests.judge(lambda: None, cell, plan(), "test", [], mock.Mock())


def test_cases_have_names() -> None:
    assert [case(each).id for each in (test_something, Case(test_something, (1, "b")), Case(test_something, (1,), "name"))] == [
        "", "1-b", "name"]
    assert test_something in of(__import__(__name__))


def hold(count: int, held: object) -> None:
    with room.place(count):
        held.put((time.monotonic(), "begun"))  # type: ignore[attr-defined]
        time.sleep(0.3)
        held.put((time.monotonic(), "ended"))  # type: ignore[attr-defined]


@pytest.mark.parametrize("count", [1, 2])
def test_no_more_than_there_is_room_for(count: int, monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    """Also of processes; nor does one that wants several wait for ever, where another has taken one of them."""
    monkeypatch.setenv(room.PLACES, str(count))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    taken = room._taken

    def slowly(stack: contextlib.ExitStack) -> bool:
        found = taken(stack)
        time.sleep(0.3)
        return found

    monkeypatch.setattr(room, "_taken", slowly)
    context = multiprocessing.get_context("fork")
    held = context.Queue()
    workers = [context.Process(target=hold, args=(count, held), daemon=True) for _ in range(2)]
    for worker in workers:
        worker.start()
    assert [what for _, what in sorted(held.get(timeout=60) for _ in range(4))] == ["begun", "ended"] * 2
    for worker in workers:
        worker.join()


def wait(begin: object, name: str, events: object) -> None:
    begin.wait()  # type: ignore[attr-defined]
    with room.place():
        events.put(name)  # type: ignore[attr-defined]


def test_who_waits_has_a_place_before_who_gives_it_back(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setenv(room.PLACES, "1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    context = multiprocessing.get_context("fork")
    begin, events = context.Event(), context.Queue()
    # It would have what this one has open.
    other = context.Process(target=wait, args=(begin, "other", events), daemon=True)
    other.start()
    with room.place():
        begin.set()
        turn = tmp_path / "rpcrdma/locks/turn"
        for _ in range(1000):
            if turn.exists() and f":{turn.stat().st_ino} " in Path("/proc/locks").read_text():
                break
            time.sleep(0.01)
    wait(begin, "this", events)
    assert [events.get(timeout=60) for _ in range(2)] == ["other", "this"]
    other.join()


def test_a_run_keeps_the_directories_of_all_its_guests(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    """And none of the run before."""
    monkeypatch.setattr(repository, "BUILD", tmp_path)
    for name in ("one", "one.2", "one.3", "one-more"):
        (tmp_path / "run" / name).mkdir(parents=True)
    monkeypatch.setattr(room, "seconds", lambda: -1)
    assert pair.fresh_directory("one").name == "one"
    assert {path.name for path in (tmp_path / "run").iterdir()} == {"one", "one-more"}
    monkeypatch.setattr(room, "seconds", lambda: 60)
    assert [pair.fresh_directory("one").name for _ in range(2)] == ["one.2", "one.3"]
