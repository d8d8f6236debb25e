"""The credits of one direction."""

import unittest

from flow import Flow


class Flows(unittest.TestCase):
    """Two ends that send to one another."""

    def setUp(self) -> None:
        self.one, self.other = Flow(), Flow()

    def one_sends(self, value: int = 1, is_grant: bool = False) -> list[str]:
        return [finding.rule for finding in self.one.send(self.other, is_grant, value)]

    def other_sends(self, value: int = 1, is_grant: bool = False) -> list[str]:
        return [finding.rule for finding in self.other.send(self.one, is_grant, value)]

    def test_one_credit_at_first(self) -> None:
        self.assertEqual(self.one_sends(), [])
        self.assertEqual(self.one_sends(), ["credit"])

    def test_each_message_uses_a_credit(self) -> None:
        self.other_sends(3)
        self.assertEqual([self.one_sends() for _ in range(3)], [[], [], []])
        self.assertEqual(self.one_sends(), ["credit"])

    def test_one_grant_more(self) -> None:
        self.one_sends()
        self.assertEqual(self.one_sends(is_grant=True), [])
        self.assertEqual(self.one_sends(is_grant=True), ["grant-credit"])
        self.assertEqual(self.one_sends(), ["credit"])

    def test_counters_wrap(self) -> None:
        self.one.sent, self.other.credits = 0xfffffffe, 0xffffffff
        self.assertEqual(self.one_sends(), [])
        self.assertEqual(self.other_sends(2), [])
        self.assertEqual([self.one_sends() for _ in range(4)], [[], [], [], ["credit"]])

    def test_back_by_what_is_not_used(self) -> None:
        self.other_sends(10)
        self.one_sends(9)
        self.assertEqual(self.other_sends(1), [])
        self.other.credits = 10
        self.assertEqual(self.other_sends(0), ["credit-backward"])

    def test_zero_credits_may_be_told(self) -> None:
        self.assertEqual(self.other_sends(0), [])
        self.assertEqual(self.one_sends(), ["credit"])

    def test_advance(self) -> None:
        self.assertEqual(self.other_sends((1 << 31) - 2), [])
        self.setUp()
        self.assertEqual(self.other_sends((1 << 31) - 1), ["credit-advance"])
        self.setUp()
        self.assertEqual(self.other_sends(1 << 31), ["credit-advance"])
        self.setUp()
        self.assertEqual(self.other_sends((1 << 31) + 1), ["credit-backward"])

    def test_grant_that_answers_a_grant(self) -> None:
        self.other_sends(9)
        self.one_sends(9, is_grant=True)
        self.assertEqual(self.other_sends(10, is_grant=True), ["grant-answer"])
        self.one_sends(9, is_grant=True)
        self.one_sends(9)
        self.assertEqual(self.other_sends(10, is_grant=True), [])
        self.assertEqual(self.other_sends(10, is_grant=True), [])

    def test_grant_that_answers_a_grant_with_more(self) -> None:
        self.other_sends(9)
        self.one_sends(9, is_grant=True)
        self.assertEqual(self.other_sends(11, is_grant=True), [])
        self.one_sends(9, is_grant=True)
        self.assertEqual(self.other_sends(12, is_grant=True), ["grant-answer"])


if __name__ == "__main__":
    unittest.main()
