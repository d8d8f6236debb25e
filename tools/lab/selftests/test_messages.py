"""Tests of the judgement of kernel logs and captures."""

import os
import re
from unittest import mock

import pytest

import test_mount as mount
from guests.cell import NO_SECURITY
from guests.pair import OURS
from judges import capture, messages, source
from judges.messages import Expected
from plan import Plan
from plans import matrix

with mock.patch.dict(os.environ):
    os.environ.pop("DEVICE", None)
    PLANS = [plan for lane in matrix.lanes() for plan in lane.plans]


def test_checked_in_list_parses() -> None:
    assert messages.read_expected()


def test_only_listed_lines_pass_and_only_so_often() -> None:
    expected = [Expected(1, re.compile("link (up|down)"), "why")]
    assert messages.unexpected(["link up"], expected) == []
    assert len(messages.unexpected(["link up", "link down"], expected)) == 1
    assert messages.unexpected(["a link up"], expected) == ["a link up"]


def test_a_device_that_plays_an_adapter_is_the_device() -> None:
    line = "platform rpcrdma-test-adapter.1.auto rxe0: qp#7 failed"
    assert messages.unexpected([line], [Expected(1, re.compile(r"rxe0: qp#\d+ failed"), "why")]) == []
    assert messages.unexpected([line], []) == [line]


def test_a_report_is_never_expected() -> None:
    report = "rpcrdma: DMA ledger: 3 mappings were never undone"
    assert messages.unexpected([report], [Expected(10, re.compile("rpcrdma: .*"), "why")]) == [report]


def test_reports_of_a_boot() -> None:
    lines = ["BUG: KASAN: slab-use-after-free in x", "eth0: up", "WARNING: possible circular locking dependency",
             "INFO: task kworker/0:1 blocked for more than 120 seconds."]
    assert len(messages.reports(lines)) == 3


def test_forms_of_one_frame() -> None:
    counts = capture.forms([capture._message("7;1;1;0;1;0;100;0x17;;")])
    wanted = {"Position Zero Read chunk": 1, "Reply chunk": 1, "remote invalidation": 1, "Read chunk": 0, "inline": 0}
    assert {name: counts[name] for name in wanted} == wanted


@pytest.mark.parametrize(("line", "malformed"), [
    ("7;0;0;1;0;;;0x17;;[Malformed Packet: NFS],_ws.malformed", False),
    ("7;0;0;0;0;;;0x04;;[Malformed Packet: NFS],_ws.malformed", True),
    ("7;0;0;1;0;;;0x04;;[Malformed Packet: RPCoRDMA]", True)])
def test_what_counts_as_malformed(line: str, malformed: bool) -> None:
    assert capture._message(line).malformed == malformed


def test_procedures_that_are_reserved() -> None:
    found = [capture._message(f"{frame};{procedure};0;0;0;;;0x04;;") for frame, procedure in enumerate(range(5))]
    one, both = capture.PULLS + b"\1\0\0", capture.PULLS + b"\1\0\0 " + capture.PULLS + b"\2\0\0"
    assert capture.reserved(found, one) == ["2", "3"]
    assert capture.reserved(found, both) == ["2"]


def test_protection_is_that_of_the_credential() -> None:
    assert capture._protection("6,6;3") == "RPCSEC_GSS service 3"
    assert capture._protection("1,0;") == "flavor 1"


def test_cells_have_names_of_their_own_and_kerberos_comes_last() -> None:
    assert len({plan.name for plan in PLANS}) == len(PLANS)
    for lane in matrix.lanes():
        secured = [plan.security != NO_SECURITY for plan in lane.plans]
        assert secured == sorted(secured)


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.name)
def test_trace_events_are_looked_for_where_they_are(plan: Plan) -> None:
    of_server, of_client = mount.test_trace_events_of_the_server, mount.test_trace_events_of_the_client
    for test, whose in ((of_server, plan.server), (of_client, plan.client)):
        wanted = whose == OURS and plan.security == NO_SECURITY and not plan.disk
        # The latter breaks connections, for which it wants a kernel of our own.
        wanted &= test == of_server or not plan.arm64
        # Version 2 has events of its own.
        wanted &= plan.protocol == 1 and not plan.nodes
        assert (test in plan.tests) == wanted


def test_comments_and_strings_do_not_count() -> None:
    text = source.without_comments('// unsafe\nlet a = "unsafe"; /* unsafe\n */ b\n')
    assert "unsafe" not in text and text.count("\n") == 3
