"""The generator of cases, and what the receiver says to them."""

import io
import json
from typing import Any

import pytest

import differential
import protocol
from generator import Generator

COUNT = 20000
Cases = list[dict[str, Any]]
Answers = list[list[dict[str, Any]]]


@pytest.fixture(scope="module")
def cases() -> Cases:
    return list(Generator(3).cases(COUNT))


@pytest.fixture(scope="module")
def answers(cases: Cases) -> Answers:
    return [differential.judge(case) for case in cases]


def test_same_for_the_same_seed(cases: Cases) -> None:
    assert cases[:100] == [case for case, _ in zip(Generator(3).cases(COUNT), range(100))]
    assert cases[:100] != [case for case, _ in zip(Generator(4).cases(COUNT), range(100))]


def test_count(cases: Cases, answers: Answers) -> None:
    assert sum(len(case["messages"]) for case in cases) == COUNT
    assert [len(case["messages"]) for case in cases] == [len(answer) for answer in answers]


@pytest.mark.parametrize("verdict", ["accept", "refuse", "discard"])
def test_many_are_accepted_and_many_are_not(answers: Answers, verdict: str) -> None:
    assert sum(each["verdict"] == verdict for answer in answers for each in answer) > COUNT // 8


def test_all_types_are_accepted(answers: Answers) -> None:
    accepted = [each for answer in answers for each in answer if each["verdict"] == "accept"]
    for kind in protocol.HEADERS:
        assert sum(each["type"] == kind for each in accepted) > 50, protocol.NAMES[kind]
    assert sum(each.get("whole", 0) > each["payload"] for each in accepted) > 50


def test_all_errors_of_a_receiver_come(answers: Answers) -> None:
    refused = [each for answer in answers for each in answer if each["verdict"] == "refuse"]
    codes = {int(octets[32:40], 16) for each in refused for octets in each["answers"]}
    # The others say that a version is refused at the beginning, or need an RPC that was executed.
    assert codes == set(protocol.ERRORS) - {protocol.ERR_VERS, protocol.WRITE_RESOURCE, protocol.REPLY_RESOURCE}


def test_answers_are_decoded_by_the_other_end(cases: Cases, answers: Answers) -> None:
    for case, answer in zip(cases[:2000], answers, strict=False):
        for octets in (octets for each in answer for octets in each.get("answers", ())):
            if octets[8:16] == "00000002":
                (again,) = differential.judge({**case, "messages": [octets]})
                assert (again["verdict"], again["header"]) == ("accept", octets)


def test_headers_are_encoded_as_they_came(cases: Cases, answers: Answers) -> None:
    for case, answer in zip(cases, answers, strict=True):
        for octets, each in zip(case["messages"], answer, strict=True):
            # Padding and the XID of a GRANT may hold anything when they come.
            if each["verdict"] == "accept" and each["type"] not in (*protocol.PROPERTIES, protocol.GRANT):
                assert octets.startswith(each["header"])


def test_line() -> None:
    limits = {name: 9 for name in ("read_segments", "read_chunks", "write_chunks", "write_segments", "chunk_segments",
                                   "chunk_bytes", "message_bytes")}
    case = {"role": "server", "limits": limits, "awaited": [],
            "messages": ["00", "00000001000000020000000300000005", "0000000100000002000000030000000e",
                         "000000010000000200000003000000040000000a00000009",
                         "00000001000000020000000300000007000000010000000600000001aa000000"]}
    out = io.StringIO()
    differential.run([json.dumps(case) + "\n", "\n"], out)
    assert out.getvalue() == (
        '[{"verdict":"discard"},'
        '{"credits":3,"header":"00000000000000020000000300000005","payload":0,"type":5,"verdict":"accept","xid":1},'
        '{"answers":["0000000100000002000000070000000400000004"],"verdict":"refuse"},'
        '{"args":[9],"credits":3,"error":10,"header":"000000010000000200000003000000040000000a00000009",'
        '"payload":0,"type":4,"verdict":"accept","xid":1},'
        '{"credits":3,"header":"00000001000000020000000300000007000000010000000600000001aa000000","payload":0,'
        '"props":[[6,"aa"]],"type":7,"verdict":"accept","xid":1}]\n')
