"""What is measured in one guest, from its boot to its end."""

import functools
from collections.abc import Callable
from dataclasses import dataclass

import progress
from bench import guest as bench_guest, memory as bench_memory, plan as bench_plan
from bench.costs import Costs
from bench.guest import RDMA, Guest
from bench.measured import OURS_2, TCP, Measured, parts_of
from bench.memory import Memory
from bench.plan import CONNECTED, CONNECTIONS, CONNECTS, Part, Workload
from bench.tools import Programs
from guests.pair import IN_TREE, OURS
from results import Results

# NFS 4.2 for connections that come and go, NFS 3 for many of them: each address is a server of its own there.
CONNECTION_PART = Part(CONNECTED, "4.2 and 3", ())


@dataclass(frozen=True)
class Boot:
    """One guest."""

    device: str
    whose: str
    parts: tuple[Part, ...]
    # Of each workload. What is measured in one boot alone is repeated there.
    repetitions: int
    # Whether NFS over TCP is measured here, too; it has nothing to do with the module that is there.
    with_tcp: bool = False
    with_connections: bool = False
    # To compare with the first.
    is_second: bool = False

    @property
    def name(self) -> str:
        return f"bench-{self.device}-{self.whose}" + ("-again" if self.is_second else "")

    @property
    def columns(self) -> list[tuple[str, str]]:
        """Column and transport."""
        return [(self.whose, RDMA), *([(TCP, bench_guest.TCP)] if self.with_tcp else [])]


def boots(chosen: str) -> list[Boot]:
    """What is booted for a set, in this order, as many at a time as there are processors."""
    parts, is_quick = bench_plan.SETS[chosen], chosen == "quick"
    return [Boot(device, whose, parts_of(parts, whose), repetitions=2 if is_quick else 1,
                 with_tcp=(device, whose, is_second) == ("rxe", IN_TREE, False), with_connections=not is_quick,
                 is_second=is_second)
            for device in (("rxe", "siw") if chosen == "full" else ("rxe",))
            for is_second in ((False,) if is_quick else (False, True)) for whose in (IN_TREE, OURS)]


def measure(boot: Boot, transport_module: bytes, programs: Programs) -> tuple[Results, Measured]:
    """Everything that is wanted of one guest; a thread of its own can do it."""
    progress.speak_as(boot.name.removeprefix("bench-"))
    work = _Work(boot, Results(), Measured())
    work.results.test("guest", lambda: work.do(transport_module, programs))
    return work.results, work.measured


@dataclass(frozen=True)
class _Work:
    boot: Boot
    results: Results
    measured: Measured

    def do(self, transport_module: bytes, programs: Programs) -> None:
        """From the boot to the end."""
        boot = self.boot
        guest = Guest(boot.name, boot.whose, transport_module, boot.device, programs)
        try:
            with progress.step(f"booting (console in {guest.machine.console})"):
                guest.set_up()
            for column, transport in boot.columns:
                for part in parts_of(boot.parts, column):
                    self._part(guest, part, column, transport)
            # These drop what is cached, programs as well.
            for column, transport in boot.columns if boot.with_connections else []:
                self._connections(guest, column, transport)
            guest.prove()
            guest.must_be_well()
        finally:
            guest.stop()

    def _part(self, guest: Guest, part: Part, column: str, transport: str) -> None:
        with guest.inline(part.inline), guest.speaks(part.protocol):
            for workload in part.workloads:
                self._measure(part, workload, column, functools.partial(
                    guest.measure, workload, transport, self.boot.repetitions, guest.on_mount(part, transport)))

    def _connections(self, guest: Guest, column: str, transport: str) -> None:
        """Connections that come and go, and many of them."""
        boot = self.boot
        for workload in CONNECTS:
            self._measure(CONNECTION_PART, workload, column, functools.partial(guest.measure, workload, transport))
        if transport == RDMA:
            bench_memory.prepare(guest)
        memories: list[Memory] = []

        def mounts(connections: int) -> list[Costs]:
            memory, costs = bench_memory.of_mounts(guest, transport, connections)
            memories.append(memory)
            return costs

        def nconnect(protocol: int, name: str) -> None:
            with guest.speaks(protocol):
                self.measured.nconnect[boot.device, name] = bench_memory.of_nconnect(guest, transport)

        for connections in CONNECTIONS:
            self._measure(CONNECTION_PART, bench_memory.growth_workload(connections), column,
                          functools.partial(mounts, connections))
        if not boot.is_second:
            self.measured.memory[boot.device, column] = memories
            for protocol, name in ((1, column), *([(2, OURS_2)] if column == OURS else [])):
                self.results.test(f"{name}: memory of the connections of one mount", functools.partial(nconnect, protocol, name))

    def _measure(self, part: Part, workload: Workload, column: str, measure: Callable[[], list[Costs]]) -> None:
        self.results.test(f"{column}: {part.name}, {workload.name}", lambda: self.measured.note(
            self.boot.device, part, workload, column, measure()))
