"""The credits of one direction."""

import pytest

from flow import Flow

# Of two ends that send to one another: which does, and whether a GRANT.
ONE, ONE_GRANTS, OTHER, OTHER_GRANTS = (0, False), (0, True), (1, False), (1, True)
# With each, the credits that it tells of, and the rule that it breaks.
Steps = list[tuple[tuple[int, bool], int, str]]
SENT: dict[str, Steps] = {
    "one credit at first": [(ONE, 1, ""), (ONE, 1, "credit")],
    "each message uses a credit": [(OTHER, 3, ""), *3 * [(ONE, 1, "")], (ONE, 1, "credit")],
    "one GRANT more": [(ONE, 1, ""), (ONE_GRANTS, 1, ""), (ONE_GRANTS, 1, "grant-credit"), (ONE, 1, "credit")],
    "zero credits may be told": [(OTHER, 0, ""), (ONE, 1, "credit")],
    "advance": [(OTHER, (1 << 31) - 2, "")],
    "advance by too much": [(OTHER, (1 << 31) - 1, "credit-advance")],
    "advance by half of all": [(OTHER, 1 << 31, "credit-advance")],
    "advance that is none": [(OTHER, (1 << 31) + 1, "credit-backward")],
    "GRANT that answers a GRANT": [(OTHER, 9, ""), (ONE_GRANTS, 9, ""), (OTHER_GRANTS, 10, "grant-answer"),
                                   (ONE_GRANTS, 9, "grant-answer"), (ONE, 9, ""), *2 * [(OTHER_GRANTS, 10, "")]],
    "GRANT that answers a GRANT with more": [(OTHER, 9, ""), (ONE_GRANTS, 9, ""), (OTHER_GRANTS, 11, ""),
                                             (ONE_GRANTS, 9, "grant-answer"), (OTHER_GRANTS, 12, "grant-answer")]}


def send(flows: tuple[Flow, Flow], steps: Steps) -> None:
    for (end, is_grant), value, rule in steps:
        assert [finding.rule for finding in flows[end].send(flows[1 - end], is_grant, value)] == [rule] * bool(rule)


@pytest.mark.parametrize("steps", SENT.values(), ids=SENT)
def test_sent(steps: Steps) -> None:
    send((Flow(), Flow()), steps)


def test_counters_wrap() -> None:
    one, other = Flow(), Flow()
    one.sent, other.credits = 0xfffffffe, 0xffffffff
    send((one, other), [(ONE, 1, ""), (OTHER, 2, ""), *3 * [(ONE, 1, "")], (ONE, 1, "credit")])


def test_back_by_what_is_not_used() -> None:
    one, other = Flow(), Flow()
    send((one, other), [(OTHER, 10, ""), (ONE, 9, ""), (OTHER, 1, "")])
    other.credits = 10
    send((one, other), [(OTHER, 0, "credit-backward")])
