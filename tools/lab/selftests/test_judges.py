"""Tests of what judges the results of tests."""

import json

import pytest

import mutants
import progress
import objects
import test_callback as callback_tests
import test_keep_alive as keep_alive_tests
import test_memory as memory_tests
import test_calls_back as calls_back
import test_responder as responder
import test_responder_2 as responder_2
import test_storm as storm_tests
import totals
from guests import cell
from judges import documents, messages, trace_events
from plan import case
from results import Results
from test_keep_alive import Heard

EVENT = "    kworker/u4:1-33      [000] .....   123.456789: nfsd_{}: addr=192.0.2.2:0 client 6921a7f3:4c1b6d4e {}"
# Kinds of Calls.
KINDS = [f"kind {number}" for number in range(calls_back.KINDS - 1)]
TREE = {"operations": 100, "bytes": 1000, "counted": 7, "names": "x"}
TRANSPORTS = ("\txprt:\trdma 0 0 3 0 0 1204 1204 0 2891 0 0 512 3\n\txprt:\trdma 0 0 1 0 0 96 96 0 2891 0 0 512 3\n"
              "state= CONNECTED   BOUND       \ntaint:OE\n")
RECALL = "   nfsd-1   [000] .....   123.456789: nfsd_cb_recall_done: client 6921a7f3:4c1b6d4e stateid 00000001:00000001 "
AT_REST = "1: rxe0: pd 3 cq 4 qp 3 cm_id 2 mr 8 ctx 0 srq 0 \n"
FIRST_BOOT = ["ACPI: something", "eth0: up", messages.READY]
SECOND_BOOT = [f"{messages.BOOTS}7.3.4", "ACPI: something", messages.READY]
MUTANT = "src/a.rs: replace & with | in f"
FIRST, SECOND = "src/a.rs:1:2: replace & with | in f", "src/a.rs:1:9: replace & with | in f"
SOURCES = {"rust/ring.rs": "pub(super) struct Ring { slots: u32 }", "rust/other.rs": "fn retire() {} struct Other;"}


@pytest.fixture(autouse=True)
def lines(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is printed."""
    printed = list[str]()
    monkeypatch.setattr(progress, "line", printed.append)
    return printed


def test_events_are_counted_by_name() -> None:
    found = ["# tracer: nop", EVENT.format("cb_recall", "stateid 00000001:00000001"),
             *[EVENT.format("cb_recall_done", "stateid 00000001:00000001 status=0")] * 2]
    assert callback_tests.counts(found) == {"nfsd_cb_recall": 1, "nfsd_cb_recall_done": 2}


@pytest.mark.parametrize("status", ["status=-5", "status=10008", ""])
def test_a_callback_that_failed_is_a_failure(status: str) -> None:
    with pytest.raises(progress.Failure):
        callback_tests.counts([EVENT.format("cb_offload_done", status)])


def test_another_event_may_have_a_status() -> None:
    found = [EVENT.format("cb_offload", "fh_hash=0x00000001 count=1000003 status=5")]
    assert callback_tests.counts(found) == {"nfsd_cb_offload": 1}


def called(answer: str, other: str = "refused 1") -> str:
    """What the server says that calls back."""
    return "listening\naccepted\n" + "".join(f"called {name}\n{answer} {name}\n" for name in KINDS) + \
        f"called another version\n{other} another version\n"


@pytest.mark.parametrize(("said", "count"), [
    (called("refused 2"), 0), (called("answered"), len(KINDS)), (called("refused 1"), len(KINDS)),
    (called("refused 2", "refused 2"), 1)], ids=["all refused", "answered", "refused otherwise", "another version"])
def test_answered_or_refused_otherwise(said: str, count: int) -> None:
    assert len(calls_back.unrefused(said)) == count


def test_a_kind_that_was_not_tried() -> None:
    text = called("refused 2").replace("called kind 2\nrefused 2 kind 2\n", "")
    assert calls_back.unrefused(text) == [f"{calls_back.KINDS - 1} of {calls_back.KINDS} kinds of Calls were made"]


def test_the_events_are_documented() -> None:
    listed, _ = trace_events.documented()
    assert {f"xprtrdma_{event}" for events in responder.EVENTS.values() for event in events} <= listed


def test_all_failed_but_the_last() -> None:
    memory_tests.judge_sweep("93 mounts, 91 allocations failed, 20 mounts were refused\n")


@pytest.mark.parametrize("said", ["6 mounts, 0 allocations failed, 0 mounts were refused",
                                  "6 mounts, 2 allocations failed, 0 mounts were refused",
                                  "6 mounts, 6 allocations failed, 6 mounts were refused", ""])
def test_nothing_failed_or_all(said: str) -> None:
    with pytest.raises(progress.Failure):
        memory_tests.judge_sweep(said)


def test_enough_places() -> None:
    memory_tests.judge_places("slab", "40 places failed, 12 mounts were refused\n")
    memory_tests.judge_places("page", "4 places failed, 0 mounts were refused\n")


@pytest.mark.parametrize(("kind", "said"), [("slab", "3 places failed, 2 mounts were refused"), ("page", ""),
                                            ("slab", "40 places failed, 0 mounts were refused")])
def test_places_too_few_or_of_no_effect(kind: str, said: str) -> None:
    with pytest.raises(progress.Failure):
        memory_tests.judge_places(kind, said)


def fio(**changed: dict) -> str:
    jobs = [{"jobname": name, "error": 0, "read": {"io_bytes": 4096}, **changed.get(name, {})} for name in storm_tests.WAYS]
    return "fio: a word before\n" + json.dumps({"jobs": jobs})


def test_bytes_are_summed() -> None:
    assert storm_tests.judge(fio(), TREE) == 4 * 4096 + 1000


@pytest.mark.parametrize(("said", "tree"), [
    (fio(mapped={"error": 84}), TREE), (fio(direct={"read": {"io_bytes": 0}}), TREE), (fio(), {**TREE, "counted": 0})],
    ids=["error", "idle", "nothing counted"])
def test_an_error_and_idleness_are_failures(said: str, tree: dict) -> None:
    with pytest.raises(progress.Failure):
        storm_tests.judge(said, tree)


def test_it_is_long_enough_for_everything() -> None:
    for each in map(case, storm_tests.cases(60)[:len(storm_tests.CONNECTIONS)]):
        assert each.arguments[1] == storm_tests.LEAST_SECONDS


def test_what_mounts_did_is_summed(monkeypatch: pytest.MonkeyPatch, lines: list[str]) -> None:
    counts = totals.Totals()
    monkeypatch.setattr(cell, "TOTALS", counts)
    cell.count_transports(TRANSPORTS)
    cell.count_transports("taint:OE\n")
    counts.tell()
    assert lines == ["in all: 1300 RPCs, 3 disconnects, 2 reconnects, 0 device removals, 0 bytes verified"]


@pytest.mark.parametrize(("status", "counts"), [("status=0", True), ("status=-107", False), ("status=10008", False)])
def test_only_what_was_answered_counts(status: str, counts: bool) -> None:
    assert bool(storm_tests.ANSWERED.search(RECALL + status)) == counts


def test_counts_are_read() -> None:
    assert objects.parse(AT_REST).counts == {"pd": 3, "cq": 4, "qp": 3, "cm_id": 2, "mr": 8}
    assert objects.parse("1: rxe0: qp 3/65536 cq 4/1 pd 3/1 cm_id 2 mr 8/9").regions == 8


def test_nothing_is_read_of_no_device() -> None:
    with pytest.raises(progress.Failure):
        objects.parse("")


def test_one_more_is_too_many() -> None:
    before = objects.parse(AT_REST)
    for kind, there in before.of_connections.items():
        for count in (there - 1, there + 1):
            assert not objects.alike(objects.Objects({**before.counts, kind: count}), before, 100)
    for count, right in ((4, True), (100, True), (101, False)):
        assert objects.alike(objects.Objects({**before.counts, "mr": count}), before, 100) == right


def test_the_command_is_one() -> None:
    command = objects.REACH.format(4, 7)
    assert "awk '{n += $5} END {print n}'" in command
    assert "test $made -ge 7 -a $(grep -c 'type RC' /tmp/reached) = 4" in command


def test_the_first_boot_is_under_way() -> None:
    assert messages.boots([*FIRST_BOOT, "rpcrdma: lost"], True) == (FIRST_BOOT, ["rpcrdma: lost"])


def test_another_boot_between_tests() -> None:
    assert messages.boots(["before", *SECOND_BOOT, "after"], False) == (SECOND_BOOT, ["before", "after"])


def heard(said: str) -> Heard:
    found = Heard()
    found.add(said)
    return found


def test_silences_and_messages() -> None:
    found = heard("post_send 4.05 120\ndisconnect 12.5 120\nend 0 131\n")
    assert (found.asked, found.ended, found.messages) == ([4.05], [12.5], 131)


def test_a_question_in_silence() -> None:
    keep_alive_tests.judge(heard("post_send 4.01 900\nend 0 901\n"))
    # The machine was so busy that nothing came.
    keep_alive_tests.judge(heard("post_send 4.2 7\npost_send 5.3 900\nend 0 901\n"))


@pytest.mark.parametrize("said", ["post_send 0.02 500\npost_send 4.1 900\nend 0 901\n", "end 0 900\n", "end 0 0\n",
                                  "post_send 4.01 3\nend 0 3\n"])
def test_a_question_too_soon_or_never(said: str) -> None:
    with pytest.raises(progress.Failure):
        keep_alive_tests.judge(heard(said))


def test_when_a_client_came() -> None:
    text = "listening\naccepted at 10.5\nended: lost\naccepted at 15.6\nrejected at 20.0\n"
    assert responder.attempts(text, "accepted") == [10.5, 15.6]


def test_versions_by_connection() -> None:
    said = ["listening", "accepted at 1.0", "spoken to in version 2", "spoken to in version 1", "accepted at 2.0"]
    assert responder_2.spoken(said) == [[2, 1], []]


def test_answers() -> None:
    said = ["called a", "refused 4 a", "called a", "called b", "answered b"]
    assert responder_2.unanswered(said, {"a": "refused 4", "b": "answered"}) == []


@pytest.mark.parametrize("said", [[], ["called a", "called a"], ["called a", "refused 5 a"],
                                  ["called a", "refused 4 a", "called b"]])
def test_other_answers_or_none(said: list[str]) -> None:
    assert len(responder_2.unanswered(said, {"a": "refused 4"})) == 1


def judged(verdicts: dict[str, str], *listed: mutants.Survivors) -> tuple[int, int]:
    results = Results()
    mutants.judge(verdicts, listed, results)
    return results.passed, results.failed


def test_a_survivor_is_a_failure() -> None:
    verdicts = {FIRST: "caught", SECOND: "missed", "src/b.rs:3:4: replace g": "timeout", "src/b.rs:5:6: replace h": "unviable"}
    assert judged(verdicts) == (1, 2)


def test_unless_it_is_listed() -> None:
    assert judged({FIRST: "missed", SECOND: "missed"}, mutants.Survivors(2, MUTANT)) == (2, 0)


@pytest.mark.parametrize("verdicts", [{FIRST: "caught"}, {FIRST: "missed", SECOND: "caught"}, {f"{FIRST}g": "caught"}])
def test_a_list_that_is_not_so_is_a_failure(verdicts: dict[str, str]) -> None:
    assert judged(verdicts, mutants.Survivors(2, MUTANT)) == (list(verdicts.values()).count("caught"), 1)


def test_the_list_can_be_read() -> None:
    mutants.read_list()


@pytest.mark.parametrize(("said", "name"), [("xdr/src/a.rs:1:2: f", "xdr/src/a.rs:1:2: f"),
                                            ("tests/machines/src/../../../rust/a.rs:1:2: f: g", "rust/a.rs:1:2: f: g")])
def test_a_mutant_is_named_by_the_place_of_its_file(said: str, name: str) -> None:
    assert mutants.named(said) == name


def test_what_is_there() -> None:
    assert list(documents.names("``Ring.slots``, ``retire()``, ``ring.rs``, slots, ``rdma_rw``", SOURCES)) == []


def test_what_is_gone() -> None:
    said = list(documents.names("``Ring.tail``, ``Ring::retire()``, ``buried``, and ``Buried.slots``", SOURCES))
    assert said == ["design.rst says Ring.tail, and nothing is called tail", "design.rst says Ring.tail, and Ring has no tail",
                    "design.rst says Ring::retire(), and Ring has no retire",
                    "design.rst says buried, and nothing is called buried",
                    "design.rst says Buried.slots, and nothing is called Buried"]
