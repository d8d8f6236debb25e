"""Tests of what compares the codec of version 2 with the referee."""

import contextlib
import io
import unittest

import progress
from judges import agreement

CASE = {"messages": ["00", "01", "02"]}
ACCEPTED, DISCARDED = {"verdict": "accept", "header": "00", "xid": 1}, {"verdict": "discard"}
REFUSED, ANSWERS = {"verdict": "refuse", "answer": "02"}, {"verdict": "refuse", "answers": ["02", "05"]}


class Agreement(unittest.TestCase):
    def judge(self, codec: list, referee: list) -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            agreement.judge([CASE], [codec], [referee])

    def test_the_same(self) -> None:
        self.judge([ACCEPTED, REFUSED, DISCARDED], [ACCEPTED, ANSWERS, DISCARDED])

    def test_any_difference(self) -> None:
        good = [ACCEPTED, REFUSED, DISCARDED]
        for number, verdict in ((0, {**ACCEPTED, "xid": 2}), (0, DISCARDED), (1, {"verdict": "refuse", "answer": "03"}),
                                (1, DISCARDED), (2, ACCEPTED), (2, REFUSED)):
            with self.subTest(verdict), self.assertRaises(progress.Failure):
                self.judge([verdict if each == number else other for each, other in enumerate(good)],
                           [ACCEPTED, ANSWERS, DISCARDED])

    def test_a_verdict_that_is_missing(self) -> None:
        with self.assertRaises(progress.Failure):
            self.judge([ACCEPTED, REFUSED], [ACCEPTED, ANSWERS, DISCARDED])
        with self.assertRaises(progress.Failure):
            agreement.judge([CASE], [], [[]])

    def test_read_chunks_are_too_few(self) -> None:
        reads = {**ACCEPTED, "reads": [[40, 1, 4, 0], [48, 1, 4, 0]]}
        verdicts = [ACCEPTED, REFUSED, DISCARDED] * 100
        answers = [ACCEPTED, ANSWERS, DISCARDED] * 100
        case = {"messages": ["00"] * 300}
        with contextlib.redirect_stdout(io.StringIO()):
            with self.assertRaises(progress.Failure):
                agreement.judge([case], [verdicts], [answers])
            agreement.judge([case], [[reads, *verdicts[1:]]], [[reads, *answers[1:]]])

    def test_messages_of_one_kind_prove_nothing(self) -> None:
        with self.assertRaises(progress.Failure):
            self.judge([ACCEPTED] * 3, [ACCEPTED] * 3)
