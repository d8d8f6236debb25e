"""Tests of what judges the results of tests."""

import contextlib
import io
import json
import unittest
import unittest.mock

import mutants
import progress
import totals
from guests import cell
from judges import documents, messages, trace_events
from results import Results
from tests import (callback as callback_tests, keep_alive as keep_alive_tests, memory as memory_tests, objects,
                   responder, responder_2, storm as storm_tests)
from tests.keep_alive import Heard

EVENT = "    kworker/u4:1-33      [000] .....   123.456789: nfsd_{}: addr=192.0.2.2:0 client 6921a7f3:4c1b6d4e {}"


class Callbacks(unittest.TestCase):
    def test_events_are_counted_by_name(self) -> None:
        lines = ["# tracer: nop", EVENT.format("cb_recall", "stateid 00000001:00000001"),
                 *[EVENT.format("cb_recall_done", "stateid 00000001:00000001 status=0")] * 2]
        self.assertEqual(callback_tests.counts(lines), {"nfsd_cb_recall": 1, "nfsd_cb_recall_done": 2})

    def test_a_callback_that_failed_is_a_failure(self) -> None:
        for status in ("status=-5", "status=10008", ""):
            with self.subTest(status), self.assertRaises(progress.Failure):
                callback_tests.counts([EVENT.format("cb_offload_done", status)])

    def test_another_event_may_have_a_status(self) -> None:
        lines = [EVENT.format("cb_offload", "fh_hash=0x00000001 count=1000003 status=5")]
        self.assertEqual(callback_tests.counts(lines), {"nfsd_cb_offload": 1})


class Chunks(unittest.TestCase):
    NAMES = [f"kind {number}" for number in range(responder.KINDS - 1)]

    def said(self, answer: str, other: str = "refused 1") -> str:
        return "listening\naccepted\n" + "".join(f"called {name}\n{answer} {name}\n" for name in self.NAMES) + \
            f"called another version\n{other} another version\n"

    def test_all_refused(self) -> None:
        self.assertEqual(responder.unrefused(self.said("refused 2")), [])

    def test_answered_or_refused_otherwise(self) -> None:
        for answer in ("answered", "refused 1"):
            self.assertEqual(len(responder.unrefused(self.said(answer))), len(self.NAMES))
        self.assertEqual(len(responder.unrefused(self.said("refused 2", "refused 2"))), 1)

    def test_a_kind_that_was_not_tried(self) -> None:
        text = self.said("refused 2").replace("called kind 2\nrefused 2 kind 2\n", "")
        self.assertEqual(responder.unrefused(text),
                         [f"{responder.KINDS - 1} of {responder.KINDS} kinds of Calls were made"])


class Provoked(unittest.TestCase):
    def test_the_events_are_documented(self) -> None:
        listed, _ = trace_events.documented()
        self.assertLessEqual({f"xprtrdma_{event}" for events in responder.EVENTS.values() for event in events}, listed)


class Sweep(unittest.TestCase):
    def test_all_failed_but_the_last(self) -> None:
        memory_tests.judge_sweep("93 mounts, 91 allocations failed, 20 mounts were refused\n")

    def test_nothing_failed_or_all(self) -> None:
        for said in ("6 mounts, 0 allocations failed, 0 mounts were refused",
                     "6 mounts, 2 allocations failed, 0 mounts were refused",
                     "6 mounts, 6 allocations failed, 6 mounts were refused", ""):
            with self.subTest(said), self.assertRaises(progress.Failure):
                memory_tests.judge_sweep(said)


class Places(unittest.TestCase):
    def test_enough(self) -> None:
        memory_tests.judge_places("slab", "40 places failed, 12 mounts were refused\n")
        memory_tests.judge_places("page", "4 places failed, 0 mounts were refused\n")

    def test_too_few_or_of_no_effect(self) -> None:
        for kind, said in (("slab", "3 places failed, 2 mounts were refused"), ("page", ""),
                           ("slab", "40 places failed, 0 mounts were refused")):
            with self.subTest(said), self.assertRaises(progress.Failure):
                memory_tests.judge_places(kind, said)


class Storm(unittest.TestCase):
    TREE = {"operations": 100, "bytes": 1000, "counted": 7, "names": "x"}

    def fio(self, **changed: dict) -> str:
        jobs = [{"jobname": name, "error": 0, "read": {"io_bytes": 4096}, **changed.get(name, {})}
                for name in storm_tests.WAYS]
        return "fio: a word before\n" + json.dumps({"jobs": jobs})

    def test_bytes_are_summed(self) -> None:
        self.assertEqual(storm_tests.judge(self.fio(), self.TREE), 4 * 4096 + 1000)

    def test_an_error_and_idleness_are_failures(self) -> None:
        for fio, tree in ((self.fio(mapped={"error": 84}), self.TREE),
                          (self.fio(direct={"read": {"io_bytes": 0}}), self.TREE),
                          (self.fio(), {**self.TREE, "counted": 0})):
            with self.assertRaises(progress.Failure):
                storm_tests.judge(fio, tree)

    def test_it_is_long_enough_for_everything(self) -> None:
        for test in storm_tests.tests(60)[:len(storm_tests.CONNECTIONS)]:
            self.assertEqual(test.function.args[1], storm_tests.LEAST_SECONDS)  # type: ignore[attr-defined]


class Done(unittest.TestCase):
    SAID = ("\txprt:\trdma 0 0 3 0 0 1204 1204 0 2891 0 0 512 3\n\txprt:\trdma 0 0 1 0 0 96 96 0 2891 0 0 512 3\n"
            "state= CONNECTED   BOUND       \ntaint:OE\n")

    def test_what_mounts_did_is_summed(self) -> None:
        counts = totals.Totals()
        with unittest.mock.patch("guests.cell.TOTALS", counts), contextlib.redirect_stdout(io.StringIO()) as said:
            cell.count_transports(self.SAID)
            cell.count_transports("taint:OE\n")
            counts.tell()
        self.assertEqual(said.getvalue(),
                         "in all: 1300 RPCs, 3 disconnects, 2 reconnects, 0 device removals, 0 bytes verified\n")


class Recalls(unittest.TestCase):
    LINE = "   nfsd-1   [000] .....   123.456789: nfsd_cb_recall_done: client 6921a7f3:4c1b6d4e stateid 00000001:00000001 "

    def test_only_what_was_answered_counts(self) -> None:
        for status, counts in (("status=0", True), ("status=-107", False), ("status=10008", False)):
            self.assertEqual(bool(storm_tests.ANSWERED.search(self.LINE + status)), counts)


class AtRest(unittest.TestCase):
    SAID = "1: rxe0: pd 3 cq 4 qp 3 cm_id 2 mr 8 ctx 0 srq 0 \n"

    def test_counts_are_read(self) -> None:
        self.assertEqual(objects.parse(self.SAID).counts, {"pd": 3, "cq": 4, "qp": 3, "cm_id": 2, "mr": 8})
        self.assertEqual(objects.parse("1: rxe0: qp 3/65536 cq 4/1 pd 3/1 cm_id 2 mr 8/9").regions, 8)

    def test_nothing_is_read_of_no_device(self) -> None:
        with self.assertRaises(progress.Failure):
            objects.parse("")

    def test_one_more_is_too_many(self) -> None:
        before = objects.parse(self.SAID)
        for kind, there in before.of_connections.items():
            for count in (there - 1, there + 1):
                self.assertFalse(objects.alike(objects.Objects({**before.counts, kind: count}), before, 100))
        for count, right in ((4, True), (100, True), (101, False)):
            self.assertEqual(objects.alike(objects.Objects({**before.counts, "mr": count}), before, 100), right)

    def test_the_command_is_one(self) -> None:
        command = objects.REACH.format(4, 7)
        self.assertIn("awk '{n += $5} END {print n}'", command)
        self.assertIn("test $made -ge 7 -a $(grep -c 'type RC' /tmp/reached) = 4", command)


class Boots(unittest.TestCase):
    FIRST = ["ACPI: something", "eth0: up", messages.READY]
    SECOND = [f"{messages.BOOTS}7.3.4", "ACPI: something", messages.READY]

    def test_the_first_is_under_way(self) -> None:
        self.assertEqual(messages.boots([*self.FIRST, "rpcrdma: lost"], True), (self.FIRST, ["rpcrdma: lost"]))

    def test_another_between_tests(self) -> None:
        boot, rest = messages.boots(["before", *self.SECOND, "after"], False)
        self.assertEqual((boot, rest), (self.SECOND, ["before", "after"]))


class KeepAlive(unittest.TestCase):
    def heard(self, said: str) -> Heard:
        heard = Heard()
        heard.add(said)
        return heard

    def judge(self, said: str) -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            keep_alive_tests.judge(self.heard(said))

    def test_silences_and_messages(self) -> None:
        heard = self.heard("post_send 4.05 120\ndisconnect 12.5 120\nend 0 131\n")
        self.assertEqual((heard.asked, heard.ended, heard.messages), ([4.05], [12.5], 131))

    def test_a_question_in_silence(self) -> None:
        self.judge("post_send 4.01 900\nend 0 901\n")
        # The machine was so busy that nothing came.
        self.judge("post_send 4.2 7\npost_send 5.3 900\nend 0 901\n")

    def test_a_question_too_soon_or_never(self) -> None:
        for said in ("post_send 0.02 500\npost_send 4.1 900\nend 0 901\n", "end 0 900\n", "end 0 0\n",
                     "post_send 4.01 3\nend 0 3\n"):
            with self.subTest(said), self.assertRaises(progress.Failure):
                self.judge(said)


class Refusals(unittest.TestCase):
    def test_when_a_client_came(self) -> None:
        text = "listening\naccepted at 10.5\nended: lost\naccepted at 15.6\nrejected at 20.0\n"
        self.assertEqual(responder.attempts(text, "accepted"), [10.5, 15.6])


class Versions(unittest.TestCase):
    def test_by_connection(self) -> None:
        lines = ["listening", "accepted at 1.0", "spoken to in version 2", "spoken to in version 1", "accepted at 2.0"]
        self.assertEqual(responder_2.spoken(lines), [[2, 1], []])

    def test_answers(self) -> None:
        lines = ["called a", "refused 4 a", "called a", "called b", "answered b"]
        self.assertEqual(responder_2.unanswered(lines, {"a": "refused 4", "b": "answered"}), [])

    def test_other_answers_or_none(self) -> None:
        wanted = {"a": "refused 4"}
        for said in ([], ["called a", "called a"], ["called a", "refused 5 a"],
                     ["called a", "refused 4 a", "called b"]):
            with self.subTest(said):
                self.assertEqual(len(responder_2.unanswered(said, wanted)), 1)


class Mutants(unittest.TestCase):
    NAME = "src/a.rs: replace & with | in f"
    FIRST, SECOND = "src/a.rs:1:2: replace & with | in f", "src/a.rs:1:9: replace & with | in f"

    def judged(self, verdicts: dict[str, str], *listed: mutants.Survivors) -> tuple[int, int]:
        results = Results()
        with contextlib.redirect_stdout(io.StringIO()):
            mutants.judge(verdicts, listed, results)
        return results.passed, results.failed

    def test_a_survivor_is_a_failure(self) -> None:
        verdicts = {self.FIRST: "caught", self.SECOND: "missed", "src/b.rs:3:4: replace g": "timeout",
                    "src/b.rs:5:6: replace h": "unviable"}
        self.assertEqual(self.judged(verdicts), (1, 2))

    def test_unless_it_is_listed(self) -> None:
        verdicts = {self.FIRST: "missed", self.SECOND: "missed"}
        self.assertEqual(self.judged(verdicts, mutants.Survivors(2, self.NAME)), (2, 0))

    def test_a_list_that_is_not_so_is_a_failure(self) -> None:
        for verdicts in ({self.FIRST: "caught"}, {self.FIRST: "missed", self.SECOND: "caught"},
                         {f"{self.FIRST}g": "caught"}):
            found = sum(verdict == "caught" for verdict in verdicts.values())
            self.assertEqual(self.judged(verdicts, mutants.Survivors(2, self.NAME)), (found, 1))

    def test_the_list_can_be_read(self) -> None:
        mutants.read_list()

    def test_a_mutant_is_named_by_the_place_of_its_file(self) -> None:
        for said, name in (("xdr/src/a.rs:1:2: f", "xdr/src/a.rs:1:2: f"),
                           ("tests/machines/src/../../../rust/a.rs:1:2: f: g", "rust/a.rs:1:2: f: g")):
            self.assertEqual(mutants.named(said), name)


class Names(unittest.TestCase):
    SOURCES = {"rust/ring.rs": "pub(super) struct Ring { slots: u32 }", "rust/other.rs": "fn retire() {} struct Other;"}

    def test_what_is_there(self) -> None:
        self.assertEqual(list(documents.names("``Ring.slots``, ``retire()``, ``ring.rs``, slots, ``rdma_rw``", self.SOURCES)), [])

    def test_what_is_gone(self) -> None:
        said = list(documents.names("``Ring.tail``, ``Ring::retire()``, ``buried``, and ``Buried.slots``", self.SOURCES))
        self.assertEqual(said, ["design.rst says Ring.tail, and nothing is called tail", "design.rst says Ring.tail, and Ring has no tail",
                                "design.rst says Ring::retire(), and Ring has no retire",
                                "design.rst says buried, and nothing is called buried",
                                "design.rst says Buried.slots, and nothing is called Buried"])
