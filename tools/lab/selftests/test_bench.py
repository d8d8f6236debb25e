"""Tests of what is made of a guest's counts, of what is measured, and of what is said of it."""

import json
import re
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest

import progress
from bench import (boot as bench_boot, costs as bench_costs, counting, guest as bench_guest, memory as bench_memory,
                   plan as bench_plan, report as bench_report)
from bench.costs import Costs, Run
from bench.counting import Block, Counting, Posted, Window
from bench.measured import TCP, Measured, Row, parts_of
from bench.memory import Memory
from bench.mixed import Mixed
from bench.plan import NFS3, NFS42, Part
from guests.pair import IN_TREE, OURS
from guests.symbols import Symbols

# As /proc/kallsyms has them; two names at one place, two functions of one name, and a function's cut-off part.
KALLSYMS = """ffffffff81000000 T _stext
ffffffff81000000 T startup_64
ffffffff81000100 T __switch_to
ffffffff81000200 t wakeup_preempt.isra.0
ffffffff81000300 T __kmalloc_noprof
ffffffff81000400 T kmem_cache_alloc_noprof
ffffffff81000500 T __alloc_frozen_pages_noprof
ffffffff81000600 t helper
ffffffff81000700 t helper
ffffffffc0000000 t rxe_post_send\t[rdma_rxe]
ffffffffc0000100 t rxe_post_send.cold\t[rdma_rxe]
ffffffffc0000200 t rxe_post_recv\t[rdma_rxe]
ffffffffc0000300 T rxe_cq_post\t[rdma_rxe]
ffffffffc0010000 t ib_cq_completion_workqueue\t[ib_core]
ffffffffc0020000 t _RNvCs_7rpcrdma4post\t[rpcrdma]
""" + "".join(f"ffffffff810{number}000 T {name}\n" for number, name in enumerate((
    "rust_helper_spin_lock", "alloc_pages_bulk_noprof", "__kmalloc_node_noprof", "__kmalloc_cache_noprof",
    "__kmalloc_cache_node_noprof", "__kmalloc_node_track_caller_noprof", "__kmalloc_flags_noprof",
    "__kvmalloc_node_noprof", "__kmalloc_large_noprof", "kmem_cache_alloc_node_noprof",
    "kmem_cache_alloc_lru_noprof", "kmem_cache_alloc_bulk_noprof"), 10)) + """\
ffffffffc0010100 t ib_cq_completion_softirq\t[ib_core]
ffffffffc0030000 T xprt_complete_rqst\t[sunrpc]
"""
# Ten GETATTRs at both ends.
WINDOW = """window 3
user 500
lost 0
used 200000
unreadable 0
calls rxe_cq_post a0 10
calls rxe_cq_post b0 14
calls rxe_post_recv a0 1
calls rxe_post_send a0 10
calls rxe_post_send b0 10
posted rxe_post_recv - 1 32
posted rxe_post_send 2 0 10
posted rxe_post_send 9 1 10
posted rxe_post_send 32 0 10
block ffffffff81000100 4 30
block ffffffff81000200 2 20
block ffffffff81000300 5 10
block ffffffff81000304 5 10
block ffffffffc0000000 3 15
block ffffffffc0000000 7 5
block ffffffffc0000100 2 1
block ffffffffc0000200 1 1
block ffffffffc0000300 1 24
block ffffffffc0010000 1 20
block ffffffffc0020010 10 10
block ffffffff81010000 3 10
block ffffffffc0030000 6 10
end 3"""
RUN = Run(12345, {"rxe0.sent_pkts": 40, "rxe0.sent_bytes": 8000, "lo.tx_packets": 10, "rxe0.lifespan": 9})


def window(text: str = WINDOW) -> Window:
    found, = counting.parse(text.splitlines())
    return found


def costs(total: float, rpcrdma: float = 0.0, **counts: float) -> Costs:
    return Costs(total, {"rpcrdma": rpcrdma}, counts, total, ())


def test_a_window_is_read() -> None:
    found = window()
    assert (found.number, found.user, found.lost, found.used) == (3, 500, 0, 200000)
    assert found.calls["rxe_post_send"] == {0xa0: 10, 0xb0: 10}
    assert found.posted[Posted("rxe_post_send", 32, False)] == 10
    assert found.posted[Posted("rxe_post_recv", None, True)] == 32
    assert Block(0xffffffff81000100, 4, 30) in found.blocks


@pytest.mark.parametrize("text", ["error a window begins in another", "block 1 2 3", "window 1\nuser 1", "window 1\nwhat 1\nend 1"])
def test_what_should_not_be_there_is_a_failure(text: str) -> None:
    with pytest.raises(progress.Failure):
        list(counting.parse(text.splitlines()))


def test_only_whole_lines_and_each_once(tmp_path: Path) -> None:
    counter, path = counting.Counter(tmp_path), tmp_path / counting.COUNTS
    path.write_text("window 1\nuser 5\nend 1\n")
    assert [found.user for found in counter.windows()] == [5]
    assert counter.windows() == []
    with path.open("a") as file:
        file.write("window 2\nuser 6\nend 2\nwin")
    assert [found.user for found in counter.windows()] == [6]


def test_arguments_of_qemu() -> None:
    exact = Counting(Path("/p.so"), Path("/w")).qemu("guest")
    assert "file=/p.so,out=guest/counts,control=guest/counting" in exact and "-icount" in exact
    paired = Counting(Path("/p.so"), Path("/w"), exact=False, peer="server").qemu("client")
    assert paired[-1].split(",")[-1] == "peer=server/counting" and "-icount" not in paired


def test_instructions_by_module() -> None:
    tally = Symbols(KALLSYMS).tally(window())
    wanted = {"kernel": 4 * 30 + 2 * 20 + 5 * 10 + 5 * 10, "rdma_rxe": 3 * 15 + 7 * 5 + 2 + 1 + 24, "rpcrdma": 100, "rust": 30}
    assert {name: tally.modules[name] for name in wanted} == wanted
    assert tally.total == tally.modules.total()
    assert tally.functions["kernel", "__kmalloc_noprof"] == 100


def test_entries() -> None:
    symbols = Symbols(KALLSYMS)
    assert symbols.entry(("kernel", "wakeup_preempt")) == 0xffffffff81000200
    assert symbols.entry(("kernel", "_stext")) == symbols.entry(("kernel", "startup_64"))
    assert len(symbols.entries(("kernel", "helper"))) == 2
    for name in ("helper", "nothing"):
        with pytest.raises(progress.Failure):
            symbols.entry(("kernel", name))


def test_a_kernel_that_hides_its_addresses() -> None:
    with pytest.raises(progress.Failure):
        Symbols("0000000000000000 T _stext\n")


def test_everything_is_for_one_operation() -> None:
    found = bench_costs.of(window(), Symbols(KALLSYMS), RUN, "rxe", 10)
    wanted = {"RPCs": 1, "ib_post_send at one end": 1, "ib_post_recv at one end": 0.1, "completions at one end": 1.4,
              "ib_post_send": 2, "ib_post_recv": 0.1, "Receive": 3.2, "Send": 1, "Send With Invalidate": 1, "RegMR": 1,
              "signaled": 1, "completions": 2.4, "CQ wakeups": 2, "thread wakeups": 2, "context switches": 3,
              "kmalloc and slab calls": 1, "page allocator calls": 0, "packets": 5, "bytes": 800, "troubles": 0}
    assert {name: found.counts.get(name) for name in wanted} == wanted
    assert (found.rpcrdma, found.modules["user"], found.nanoseconds) == (13, 50, 1234.5)


@pytest.mark.parametrize(("seen", "wrong"), [
    ("calls rxe_post_send b0 10", "calls rxe_post_send b0 9"), ("lost 0", "lost 1"), ("unreadable 0", "unreadable 2")])
def test_a_post_that_was_not_seen(seen: str, wrong: str) -> None:
    with pytest.raises(progress.Failure):
        bench_costs.of(window(WINDOW.replace(seen, wrong)), Symbols(KALLSYMS), RUN, "rxe", 10)


@pytest.mark.parametrize("name", ["__switch_to", "kmem_cache_alloc_bulk_noprof"])
def test_a_kernel_without_a_counted_function(name: str) -> None:
    with pytest.raises(progress.Failure, match=name):
        bench_costs.of(window(), Symbols(KALLSYMS.replace(name, "other")), RUN, None, 10)


def test_without_rdma_nothing_is_posted() -> None:
    assert "completions" not in bench_costs.of(window(), Symbols(KALLSYMS), RUN, None, 10).counts


def test_lines_of_the_workload() -> None:
    found = bench_costs.runs("repetition 1 500 lo.tx_bytes=7 rxe0.sent_pkts=2\nrepetition 2 600\n")
    assert found == [Run(500, {"lo.tx_bytes": 7, "rxe0.sent_pkts": 2}), Run(600, {})]
    with pytest.raises(progress.Failure):
        bench_costs.runs("Killed\n")


def test_operations_that_a_cache_answers() -> None:
    bench_guest.reaches_server([costs(1, RPCs=1, troubles=0)])
    for wrong in (costs(1, RPCs=0.1, troubles=0), costs(1, RPCs=1, troubles=0.001)):
        with pytest.raises(progress.Failure):
            bench_guest.reaches_server([wrong])


def test_the_plugin_and_the_clock() -> None:
    waited, lost = (replace(costs(100), nanoseconds=nanoseconds) for nanoseconds in (150, 90))
    bench_guest.agrees_with_clock([costs(100), replace(costs(100), nanoseconds=100.9)], may_wait=False)
    bench_guest.agrees_with_clock([waited], may_wait=True)
    for wrong, may_wait in ((waited, False), (lost, False), (lost, True)):
        with pytest.raises(progress.Failure):
            bench_guest.agrees_with_clock([wrong], may_wait)


def test_all_functions_of_the_module_are_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_costs, "MOST_FUNCTIONS", 1)
    found = bench_costs.of(window(), Symbols(KALLSYMS), RUN, "rxe", 10)
    assert [module for module, _, _ in found.functions] == ["kernel", "rpcrdma", "rust"]


def test_mean() -> None:
    found = bench_costs.mean([costs(100, 10, packets=2), costs(110, 30)])
    assert (found.total, found.rpcrdma, found.counts["packets"]) == (105, 20, 1)


def measure(workload: bench_plan.Workload, repetitions: int, said: int, ended: int) -> tuple[list, list, list[str]]:
    """Costs, how many operations they are divided by, and what the guest is told; of so many repetitions and windows."""
    guest = bench_guest.Guest.__new__(bench_guest.Guest)
    guest.device, guest.counter, guest.symbols = "rxe", mock.Mock(), mock.Mock()
    guest.counter.windows.return_value = [Window(number) for number in range(ended)]
    must = mock.Mock(return_value="".join(f"repetition {number} 5\n" for number in range(said)))
    divisors = []

    def of(found: Window, *more) -> Costs:
        divisors.append(more[-1])
        return costs(found.number + 1.0, RPCs=1, troubles=0)

    with mock.patch.object(guest, "must", must), mock.patch("bench.costs.of", of), mock.patch("bench.guest.agrees_with_clock"):
        found = guest.measure(workload, bench_guest.RDMA, repetitions, guest.on_mount(Part(NFS3, "3", ()), bench_guest.RDMA))
    return [one.total for one in found], divisors, [each.args[0] for each in must.call_args_list]


def test_each_repetition() -> None:
    # A window more is of something else.
    totals, divisors, commands = measure(bench_plan.GETATTR, 2, 2, 3)
    assert (totals, divisors) == ([1, 2], [4000, 4000])
    mount, _, rest = commands[0].partition(" && {")
    assert mount.startswith("/run/bench mount /mnt/bench -t nfs -o vers=3,proto=rdma")
    assert rest == (" /run/workload 2 1000 4000 getattr /mnt/bench/bench/small; status=$?; "
                    "umount /mnt/bench && exit $status; }")


def test_what_stands_apart() -> None:
    # The first is not counted.
    totals, divisors, commands = measure(replace(bench_plan.CONNECTS[0], operations=4), 2, 5, 5)
    assert (totals, divisors) == ([(2 + 3 + 4 + 5) / 4], [1] * 5)
    assert "/run/workload 5 0 1 connect 192.0.2.1:/ vers=4.2,proto=rdma," in commands[0]


@pytest.mark.parametrize(("said", "ended"), [(1, 2), (2, 1)])
def test_one_is_missing(said: int, ended: int) -> None:
    with pytest.raises(progress.Failure):
        measure(bench_plan.GETATTR, 2, said, ended)


def test_names_tell_workloads_apart() -> None:
    for parts in bench_plan.SETS.values():
        rows = [(part.name, workload.name) for part in parts for workload in part.workloads]
        assert len(rows) == len(set(rows))


def test_limits_and_goals_by_size() -> None:
    by_name = {workload.name: workload for part in bench_plan.DEFAULT for workload in part.workloads if part.name == NFS42}
    assert by_name["read 4 KiB"].limit == bench_plan.SMALL_LIMIT
    assert by_name["write 1 MiB"].limit == by_name["GETATTR"].limit == bench_plan.LIMIT
    assert bench_memory.growth_workload(8).limit == bench_plan.SMALL_LIMIT
    assert by_name["read 65533 bytes"].goal == bench_plan.ODD
    assert by_name["write 4 KiB, 32 at once"].goal.parts == (("CQ wakeups", 0.70),)
    assert by_name["read 64 KiB"].arguments.format("/m") == "read 65536 1 /m/bench/data"


@pytest.mark.parametrize("chosen", bench_plan.SETS)
def test_everything_is_measured_twice(chosen: str) -> None:
    found = bench_boot.boots(chosen)
    for device in ("rxe", "siw") if chosen == "full" else ("rxe",):
        for whose in (OURS, IN_TREE):
            mine = [boot for boot in found if (boot.device, boot.whose) == (device, whose)]
            assert {boot.parts for boot in mine} == {parts_of(bench_plan.SETS[chosen], whose)}
            assert sum(boot.repetitions for boot in mine) == 2
    assert len({boot.name for boot in found}) == len(found)


def test_there_are_as_many_links_as_are_read() -> None:
    assert bench_plan.READLINK.warmup + bench_plan.READLINK.operations <= bench_plan.MANY_ENTRIES


def test_tcp_is_measured_once_and_without_what_only_ours_has() -> None:
    assert sum(boot.with_tcp for boot in bench_boot.boots("full")) == 1
    assert bench_plan.INLINE_4096 not in parts_of(bench_plan.DEFAULT, TCP)
    assert bench_plan.INLINE_4096 in parts_of(bench_plan.DEFAULT, OURS)


def test_mounts() -> None:
    words = bench_guest.mount_words
    assert words("3", "tcp") == "-t nfs -o vers=3,proto=tcp,port=2049,nolock,mountproto=tcp 192.0.2.1:/export"
    assert words("4.2", "rdma", ",nconnect=4") == "-t nfs -o vers=4.2,proto=rdma,port=20049,nconnect=4 192.0.2.1:/"


def test_growth_is_measured_on_all_connections() -> None:
    arguments = bench_memory.growth_workload(8).arguments.split()
    assert arguments[:3] == ["read", "4096", "8"] and len(arguments) == 11


def test_bytes_of_a_connection() -> None:
    # Free before; idle, busy, later; of umount; after; in KiB.
    guest = mock.Mock(**{"must.side_effect": ["1000", "920\n600\n840", "", "1000"], "measure.return_value": []})
    memory, _ = bench_memory.of_mounts(guest, bench_guest.RDMA, 8)
    assert memory == Memory(8, 10 * 1024, 50 * 1024, 20 * 1024, 0)
    # The workload's lines, and nothing else, are left for who measures.
    parts = guest.measure.call_args.kwargs["around"]("WORKLOAD").split(" && WORKLOAD && ")
    assert [part.rsplit(" ", 2)[1:] for part in parts] == [[">", "/run/free"], [">>", "/run/free"]]


def test_connections_without_their_mount() -> None:
    guest = mock.Mock(**{"must.side_effect": ["1000", "900\n800\n900", "", "1000", "1000", "750\n500\n600", "", "990"]})
    assert bench_memory.of_nconnect(guest, bench_guest.RDMA) == Memory(16, 10 * 1024, 20 * 1024, 20 * 1024, 10 * 1024)


@pytest.fixture
def measured() -> Measured:
    found, part = Measured(), Part(NFS42, "4.2", ())
    inline = Part("inline", "4.2", (), inline=4096, reference=NFS42)
    read, = (workload for workload in bench_plan.transfers(4096) if workload.name == "read 4 KiB")
    for column, total, counts in (
            (OURS, 90.0, {"ib_post_send": 2, "bytes": 4660}),
            (IN_TREE, 100.0, {"ib_post_send": 2.5, "RegMR": 1, "bytes": 4776}), (TCP, 50.0, {})):
        # One boot after the other.
        for _ in range(2):
            found.note("rxe", part, read, column, [costs(total, total / 10, **counts)])
    found.note("rxe", inline, replace(read, goal=bench_plan.PAGE_4096), OURS, [costs(99, 8.5)])
    for column, idle in ((OURS, 5.0), (IN_TREE, 10.0)):
        found.memory["rxe", column] = [Memory(count, idle, idle, idle, 0) for count in bench_plan.CONNECTIONS]
        found.nconnect["rxe", column] = Memory(16, idle, 2 * idle, 1.2 * idle, 0)
    found.mixed.append(Mixed("rxe", IN_TREE, IN_TREE, "read 4 KiB", [100.0, 101.0], [1.0, 1.0],
                             {"ib_post_send of the client": 1.0}))
    return found


def test_a_row_of_ours_alone_is_held_against_another(measured: Measured) -> None:
    reference = measured.reference(Row("rxe", "inline", "read 4 KiB"))
    assert reference is not None and reference.total == 100
    missed = [str(verdict) for verdict in measured.verdicts() if not verdict.met]
    assert missed == ["MISSED  rxe, NFS 4.2, read 4 KiB: instructions in rpcrdma, ours / C 0.900, goal <= 0.85",
                      "MISSED  rxe, inline, read 4 KiB: total instructions, ours / C 0.990, goal <= 0.98",
                      "MISSED  rxe, NFS 4.2: bytes of ours, some time after use / before it 1.200, goal <= 1.1"]


def test_tables(measured: Measured, monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    monkeypatch.setattr(progress, "line", lines.append)
    bench_report.tell(measured)
    text = "\n".join(lines)
    assert re.search(r"read 4 KiB +90 +100 +50 +0\.900 +9 +10 +0\.900\n", text)
    # All counts that there are, and all modules.
    assert "  ib_post_send 2 / 2.5, bytes 4,660 / 4,776, RegMR 0 / 1" in text
    assert "  rpcrdma 9 / 10" in text
    assert "two guests" in text
    assert "  ib_post_send of the client 1" in text
    assert lines[-1].endswith("goals are met")
    # What is missed comes before what is met.
    kinds = [line[:3] for line in lines if line[:3] in ("MIS", "met")]
    assert kinds == sorted(kinds)


def test_json_and_charts(measured: Measured) -> None:
    measured.note("rxe", Part(NFS3, "3", ()), bench_plan.transfers(4096)[0], OURS, [costs(80)])
    written = json.loads(json.dumps(measured.json()))
    assert written["costs"][0]["repetitions"][0]["total"] == 90
    charts = {chart.name: chart for chart in bench_report._charts(measured)}
    bars = charts["rxe-nfs-4.2-total"]
    assert list(bars.series.values()) == [[0.9], [1.0], [0.5]]
    assert (bars.groups, bars.goals) == (["read 4 KiB"], [0.9])
    assert charts["rxe-memory"].series[OURS] == [5.0, 5.0, 5.0]
    assert charts["rxe-in-flight"].series[OURS] == [80.0, None, None]
    assert "rxe-connections" not in charts
