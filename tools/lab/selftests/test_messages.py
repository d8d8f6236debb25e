"""Tests of the judgement of kernel logs and captures."""

import re
import unittest
import unittest.mock

import host
import matrix
import progress
from guests.cell import NO_SECURITY
from guests.pair import OURS
from judges import capture, messages, statistics_line
from judges.messages import Expected
from tests import mount as mount_tests


class Messages(unittest.TestCase):
    def test_checked_in_list_parses(self) -> None:
        self.assertTrue(messages.read_expected())

    def test_only_listed_lines_pass_and_only_so_often(self) -> None:
        expected = [Expected(1, re.compile("link (up|down)"), "why")]
        self.assertEqual(messages.unexpected(["link up"], expected), [])
        self.assertEqual(len(messages.unexpected(["link up", "link down"], expected)), 1)
        self.assertEqual(messages.unexpected(["a link up"], expected), ["a link up"])

    def test_a_device_that_plays_an_adapter_is_the_device(self) -> None:
        line = "platform rpcrdma-test-adapter.1.auto rxe0: qp#7 failed"
        self.assertEqual(messages.unexpected([line], [Expected(1, re.compile(r"rxe0: qp#\d+ failed"), "why")]), [])
        self.assertEqual(messages.unexpected([line], []), [line])

    def test_a_report_is_never_expected(self) -> None:
        report = "rpcrdma: DMA ledger: 3 mappings were never undone"
        self.assertEqual(messages.unexpected([report], [Expected(10, re.compile("rpcrdma: .*"), "why")]), [report])

    def test_reports_of_a_boot(self) -> None:
        lines = ["BUG: KASAN: slab-use-after-free in x", "eth0: up", "WARNING: possible circular locking dependency",
                 "INFO: task kworker/0:1 blocked for more than 120 seconds."]
        self.assertEqual(len(messages.reports(lines)), 3)


class Capture(unittest.TestCase):
    def test_forms_of_one_frame(self) -> None:
        message = capture._message("7;1;1;0;1;0;100;0x17;;")
        counts = capture.forms([message])
        self.assertEqual(counts["Position Zero Read chunk"], 1)
        self.assertEqual(counts["Reply chunk"], 1)
        self.assertEqual(counts["remote invalidation"], 1)
        self.assertEqual(counts["Read chunk"], 0)
        self.assertEqual(counts["inline"], 0)

    def test_what_counts_as_malformed(self) -> None:
        text = "[Malformed Packet: NFS],_ws.malformed"
        self.assertFalse(capture._message(f"7;0;0;1;0;;;0x17;;{text}").malformed)
        self.assertTrue(capture._message(f"7;0;0;0;0;;;0x04;;{text}").malformed)
        self.assertTrue(capture._message("7;0;0;1;0;;;0x04;;[Malformed Packet: RPCoRDMA]").malformed)

    def test_procedures_that_are_reserved(self) -> None:
        found = [capture._message(f"{frame};{procedure};0;0;0;;;0x04;;") for frame, procedure in enumerate(range(5))]
        one, both = capture.PULLS + b"\1\0\0", capture.PULLS + b"\1\0\0 " + capture.PULLS + b"\2\0\0"
        self.assertEqual(capture.reserved(found, one), ["2", "3"])
        self.assertEqual(capture.reserved(found, both), ["2"])


    def test_protection_is_that_of_the_credential(self) -> None:
        self.assertEqual(capture._protection("6,6;3"), "RPCSEC_GSS service 3")
        self.assertEqual(capture._protection("1,0;"), "flavor 1")


class Matrix(unittest.TestCase):
    def test_cells_have_names_of_their_own_and_kerberos_comes_last(self) -> None:
        plans = matrix._plans()
        self.assertEqual(len({plan.name for plan in plans}), len(plans))
        secured = [plan.security != NO_SECURITY for plan in plans]
        self.assertEqual(secured, sorted(secured))

    def test_trace_events_are_looked_for_where_they_are(self) -> None:
        for plan in matrix._plans():
            for test, whose in ((mount_tests.TRACED, plan.server), (mount_tests.TRACED_CLIENT, plan.client)):
                wanted = whose == OURS and plan.security == NO_SECURITY and not plan.disk
                # The latter breaks connections, for which it wants a kernel of our own.
                wanted &= test == mount_tests.TRACED or not plan.arm64
                # Version 2 has events of its own.
                wanted &= plan.protocol == 1 and not plan.nodes
                self.assertEqual(test in plan.tests, wanted, plan.name)

    def test_choice_of_cells(self) -> None:
        def chosen(cells: str) -> list[str]:
            with unittest.mock.patch.dict("os.environ", CELLS=cells):
                return [plan.name for plan in matrix._chosen(matrix._plans())]

        self.assertEqual(chosen("rxe NFSv4.2"), ["rxe NFSv4.2"])
        self.assertEqual(len(chosen("rxe NFSv4.*")), len([name for name in chosen("rxe") if "NFSv4." in name]))
        self.assertTrue(all("krb5p" in name for name in chosen("krb5p")))
        self.assertEqual(chosen("arm64"), [plan.name for plan in matrix._plans() if plan.arm64])
        self.assertEqual(chosen("rxe NFSv4.2 arm64"), ["rxe NFSv4.2 arm64"])
        self.assertEqual(chosen("arm64 client"), ["rxe NFSv4.2 arm64 client", "rxe NFSv4.2 arm64 client version 2"])
        with self.assertRaises(progress.Failure):
            chosen("roce")


class Confinement(unittest.TestCase):
    def test_comments_and_strings_do_not_count(self) -> None:
        text = host.without_comments('// unsafe\nlet a = "unsafe"; /* unsafe\n */ b\n')
        self.assertNotIn("unsafe", text)
        self.assertEqual(text.count("\n"), 3)


class Statistics(unittest.TestCase):
    def test_every_number_has_a_name(self) -> None:
        line = "\txprt:\trdma " + " ".join(str(number) for number in range(28))
        self.assertEqual(len(statistics_line.in_words(line)), 28)
