"""Tests of how what a test has changed is undone, also after a failure."""

from unittest import mock

import pytest

import progress


def test_undone_after_success_and_after_failure() -> None:
    undone = mock.Mock()
    with progress.undoing(undone):
        pass
    with pytest.raises(progress.Failure), progress.undoing(undone):
        raise progress.Failure("first")
    assert undone.call_count == 2


def test_the_first_failure_is_the_one_that_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    said = list[str]()
    monkeypatch.setattr(progress, "line", said.append)
    with pytest.raises(progress.Failure, match="first"), progress.undoing(mock.Mock(side_effect=progress.Failure("second"))):
        raise progress.Failure("first")
    assert "second" in said[0]


def test_nothing_is_asked_of_a_guest_that_hangs() -> None:
    undone = mock.Mock()
    with pytest.raises(progress.TimedOut), progress.undoing(undone):
        raise progress.TimedOut("gone")
    undone.assert_not_called()
