"""Tests of what compares the codec of version 2 with the referee."""

from typing import Any

import pytest

import progress
from judges import agreement

CASE = {"messages": ["00", "01", "02"]}
ACCEPTED, DISCARDED = {"verdict": "accept", "header": "00", "xid": 1}, {"verdict": "discard"}
REFUSED, ANSWERS = {"verdict": "refuse", "answer": "02"}, {"verdict": "refuse", "answers": ["02", "05"]}
CODEC, REFEREE = [ACCEPTED, REFUSED, DISCARDED], [ACCEPTED, ANSWERS, DISCARDED]


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "line", lambda text: None)


def test_the_same() -> None:
    agreement.judge([CASE], [CODEC], [REFEREE])


@pytest.mark.parametrize(("number", "verdict"), [
    (0, {**ACCEPTED, "xid": 2}), (0, DISCARDED), (1, {"verdict": "refuse", "answer": "03"}), (1, DISCARDED), (2, ACCEPTED),
    (2, REFUSED)])
def test_any_difference(number: int, verdict: dict[str, Any]) -> None:
    with pytest.raises(progress.Failure):
        agreement.judge([CASE], [[*CODEC[:number], verdict, *CODEC[number + 1:]]], [REFEREE])


@pytest.mark.parametrize(("codec", "referee"), [([CODEC[:2]], [REFEREE]), ([], [[]])])
def test_a_verdict_that_is_missing(codec: list, referee: list) -> None:
    with pytest.raises(progress.Failure):
        agreement.judge([CASE], codec, referee)


def test_read_chunks_are_too_few() -> None:
    reads = {**ACCEPTED, "reads": [[40, 1, 4, 0], [48, 1, 4, 0]]}
    case = {"messages": ["00"] * 300}
    with pytest.raises(progress.Failure):
        agreement.judge([case], [CODEC * 100], [REFEREE * 100])
    agreement.judge([case], [[reads, *(CODEC * 100)[1:]]], [[reads, *(REFEREE * 100)[1:]]])


def test_messages_of_one_kind_prove_nothing() -> None:
    with pytest.raises(progress.Failure):
        agreement.judge([CASE], [[ACCEPTED] * 3], [[ACCEPTED] * 3])
