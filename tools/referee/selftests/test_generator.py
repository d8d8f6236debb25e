"""The generator of cases, and what the receiver says to them."""

import io
import json
import unittest
from typing import Any

import differential
import protocol
from generator import Generator

COUNT = 20000


class Cases(unittest.TestCase):
    """What the cases are good for."""

    cases: list[dict[str, Any]]
    answers: list[list[dict[str, Any]]]

    @classmethod
    def setUpClass(cls) -> None:
        cls.cases = list(Generator(3).cases(COUNT))
        cls.answers = [differential.judge(case) for case in cls.cases]

    def test_same_for_the_same_seed(self) -> None:
        self.assertEqual(self.cases[:100], [case for case, _ in zip(Generator(3).cases(COUNT), range(100))])
        self.assertNotEqual(self.cases[:100], [case for case, _ in zip(Generator(4).cases(COUNT), range(100))])

    def test_count(self) -> None:
        self.assertEqual(sum(len(case["messages"]) for case in self.cases), COUNT)
        self.assertEqual([len(case["messages"]) for case in self.cases], [len(answer) for answer in self.answers])

    def test_many_are_accepted_and_many_are_not(self) -> None:
        verdicts = [each["verdict"] for answer in self.answers for each in answer]
        for verdict in ("accept", "refuse", "discard"):
            self.assertGreater(verdicts.count(verdict), COUNT // 8, verdict)

    def test_all_types_are_accepted(self) -> None:
        accepted = [each for answer in self.answers for each in answer if each["verdict"] == "accept"]
        for kind in protocol.HEADERS:
            self.assertGreater(sum(each["type"] == kind for each in accepted), 50, protocol.NAMES[kind])
        self.assertGreater(sum(each.get("whole", 0) > each["payload"] for each in accepted), 50)

    def test_all_errors_of_a_receiver_come(self) -> None:
        refused = [each for answer in self.answers for each in answer if each["verdict"] == "refuse"]
        codes = {int(octets[32:40], 16) for each in refused for octets in each["answers"]}
        # The others say that a version is refused at the beginning, or need an RPC that was executed.
        self.assertEqual(codes, set(protocol.ERRORS) - {protocol.ERR_VERS, protocol.WRITE_RESOURCE, protocol.REPLY_RESOURCE})

    def test_answers_are_decoded_by_the_other_end(self) -> None:
        for case, answer in zip(self.cases[:2000], self.answers, strict=False):
            for octets in (octets for each in answer for octets in each.get("answers", ())):
                if octets[8:16] == "00000002":
                    (again,) = differential.judge({**case, "messages": [octets]})
                    self.assertEqual((again["verdict"], again["header"]), ("accept", octets))

    def test_headers_are_encoded_as_they_came(self) -> None:
        for case, answer in zip(self.cases, self.answers, strict=True):
            for octets, each in zip(case["messages"], answer, strict=True):
                # Padding and the XID of a GRANT may hold anything when they come.
                if each["verdict"] == "accept" and each["type"] not in (*protocol.PROPERTIES, protocol.GRANT):
                    self.assertTrue(octets.startswith(each["header"]))


class Lines(unittest.TestCase):
    """The form of the lines."""

    def test_line(self) -> None:
        limits = {name: 9 for name in ("read_segments", "read_chunks", "write_chunks", "write_segments", "chunk_segments",
                                       "chunk_bytes", "message_bytes")}
        case = {"role": "server", "limits": limits, "awaited": [],
                "messages": ["00", "00000001000000020000000300000005", "0000000100000002000000030000000e",
                             "000000010000000200000003000000040000000a00000009",
                             "00000001000000020000000300000007000000010000000600000001aa000000"]}
        out = io.StringIO()
        differential.run([json.dumps(case) + "\n", "\n"], out)
        self.assertEqual(out.getvalue(), '[{"verdict":"discard"},'
                         '{"credits":3,"header":"00000000000000020000000300000005","payload":0,"type":5,'
                         '"verdict":"accept","xid":1},'
                         '{"answers":["0000000100000002000000070000000400000004"],"verdict":"refuse"},'
                         '{"args":[9],"credits":3,"error":10,"header":"000000010000000200000003000000040000000a00000009",'
                         '"payload":0,"type":4,"verdict":"accept","xid":1},'
                         '{"credits":3,"header":"00000001000000020000000300000007000000010000000600000001aa000000","payload":0,'
                         '"props":[[6,"aa"]],"type":7,"verdict":"accept","xid":1}]\n')


if __name__ == "__main__":
    unittest.main()
