"""`make check-mount`, `make matrix` and `make soak`: real mounts between two guests, with our module at one end or at
both."""

import contextlib
import itertools
import os
import re
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import progress
import settings
from guests import devices, kernels, module, pair
from guests.arch import AMD64, ARM64
from guests.cell import NO_SECURITY, Cell, Test
from guests.kernels import Kernel
from guests.machine import CLIENT, SERVER, Build
from guests.pair import IN_TREE, OURS, End, Pair, Setup
from results import Results
from tests import (adapter as adapter_tests, callback as callback_tests, client as client_tests,
                   client_life as client_life_tests, dropped_calls, forged_keys, life as life_tests, load as load_tests,
                   memory as memory_tests, mount as mount_tests, nodes as nodes_tests, payload as payload_tests, provider,
                   requester, responder, responder_2, slow_server, storm as storm_tests)
from totals import TOTALS

SOAK_MINUTES = 30
# With about so many a soak comes to its last round.
WHOLE_MINUTES = 280
# The part of a soak that its storms may take.
STORM_PART = 6
CALLBACKS = 100_000
MEMORY = "1500M"
SLOW_MEMORY = "600M"
STRESSED = Build(MEMORY, processors=2)
# Two guests, with what QEMU and the files of the host need beside their memory.
LANE_BYTES = 5 << 30
LIFE_VERSION = "4.2"


@dataclass(frozen=True)
class Plan:
    """What one cell is, and what is tested in it."""

    device: str
    # None where nothing is mounted.
    version: str | None
    server: str
    client: str
    tests: list[Test]
    security: str = NO_SECURITY
    # Whether a kernel may say only what is expected.
    quiet: bool = True
    # The ends that are arm64 machines.
    arm64: tuple[str, ...] = ()
    # Whether the server's files are on a disk.
    disk: bool = False
    # The highest version of RPC-over-RDMA that our modules speak.
    protocol: int = 1
    # Whether they count messages from near the end of the counts on.
    near_wrap: bool = False
    # Whether the machines have two nodes.
    nodes: bool = False

    @property
    def name(self) -> str:
        """As the results have it; without a word on the modules, both are ours, and without one on machines, both are
        x86-64."""
        whose = {(OURS, OURS): "", (IN_TREE, OURS): " in-tree server", (OURS, IN_TREE): " in-tree client"}
        security = f" {self.security}" if self.security != NO_SECURITY else ""
        what = f"NFSv{self.version}" if self.version else "raw requester"
        machines = " arm64" if self.arm64 else ""
        if len(self.arm64) == 1:
            machines += f" {self.arm64[0]}"
        disk = " disk" if self.disk else ""
        protocol = " version 2" if self.protocol == 2 else ""
        wraps = " near the wrap" if self.near_wrap else ""
        nodes = " two nodes" if self.nodes else ""
        return f"{self.device} {what}{security}{whose[self.server, self.client]}{machines}{disk}{protocol}{wraps}{nodes}"


@dataclass(frozen=True)
class Worker:
    """Cells that one pair of guests has in turn."""

    setup: Setup
    plans: list[Plan]
    # Whether it needs none of the room that there is for busy ones.
    idle: bool = False

    def needed_setup(self) -> Setup:
        """The pair, in which leaks can be found if a test looks for any."""
        looks = any(mount_tests.NO_LEAK in plan.tests for plan in self.plans)
        return self.setup.finding_leaks() if looks else self.setup


@dataclass(frozen=True)
class Round:
    """Workers of a soak that run side by side."""

    name: str
    workers: list[Worker]


@dataclass(frozen=True)
class Outcome:
    """What came out of one cell."""

    name: str
    passed: int
    failed: int
    seconds: float


def run() -> int:
    """Every cell, or what TESTS chooses of them, and the last line."""
    results = Results()
    run_workers(results, chosen(cells()))
    return results.finish()


def soak() -> int:
    """What is hard on connections and memory, in turn on each device, for SOAK_MINUTES: a round that has begun is
    ended, but none begins after that."""
    minutes = soak_minutes()
    deadline = time.monotonic() + 60 * minutes
    results = Results()
    unreached = take_turns(rounds(minutes), deadline, lambda each: run_workers(results, each.workers))
    if unreached:
        names = ", ".join(each.name for each in unreached)
        progress.line(f"not reached: {names}; SOAK_MINUTES={WHOLE_MINUTES} or so would reach all")
    TOTALS.tell()
    return results.finish()


def take_turns(rounds: list[Round], deadline: float, run: Callable[[Round], None]) -> list[Round]:
    """Run one after the other, and again from the first, until the time is over; those that had no turn."""
    reached = 0
    for each in itertools.cycle(rounds):
        if time.monotonic() >= deadline:
            break
        run(each)
        reached += 1
    return rounds[reached:]


def rounds(minutes: int) -> list[Round]:
    """Those of a soak of so many minutes; what breaks most comes first."""
    first, second = (_rounds_of(protocol, minutes) for protocol in (1, 2))
    return [*first, *second, *_rounds_alone()]


def _rounds_of(protocol: int, minutes: int) -> list[Round]:
    """Those that are there for each version of RPC-over-RDMA."""
    version = LIFE_VERSION

    def plan(device: str, version: str, tests: list[Test]) -> Plan:
        return Plan(device, version, OURS, OURS, tests, protocol=protocol)

    def each(setup: Callable[[str], Setup], version: str, tests: Callable[[str], list[Test]]) -> list[Worker]:
        return [Worker(setup(device), [plan(device, version, tests(device))]) for device in devices.KINDS]

    mounts = [plan(device, version, mount_tests.SOAK) for device in devices.KINDS]
    found = {"storms": each(server_rebooting, storm_tests.VERSION, lambda _: storm_tests.tests(60 * minutes // STORM_PART)),
             "the client's life": each(client_stressed, version, lambda _: client_life_tests.tests(client_life_tests.SOAK)),
             "short memory": each(client_accounted, memory_tests.VERSION, lambda _: memory_tests.TESTS),
             "the server's life": [Worker(nothing_debugged(), [plan("rxe", version, [callback_tests.test(CALLBACKS)])]),
                                   *each(server_stressed, version, lambda device: life_tests.tests(life_tests.SOAK, device))],
             "mounts": [Worker(client_debugged(), mounts), Worker(server_debugged(), mounts)]}
    return [Round(f"{name}, version {protocol}", workers) for name, workers in found.items()]


def _rounds_alone() -> list[Round]:
    """The others."""
    version = LIFE_VERSION
    return [Round("the client alone",
                  [Worker(client_debugged(), [Plan("rxe", client_tests.VERSION, OURS, OURS,
                                                 client_tests.TESTS + payload_tests.TESTS + adapter_tests.TESTS +
                                                 client_tests.ROCE),
                                            Plan("rxe", responder.VERSION, OURS, OURS,
                                                 [mount_tests.DEAD, client_tests.BESIDE_TCP,
                                                  client_tests.MANY_CONNECTIONS, *responder.TESTS]),
                                            Plan("rxe", responder.VERSION, OURS, OURS, responder_2.TESTS, protocol=2),
                                            Plan("rxe", responder.SESSION_VERSION, OURS, OURS, responder_2.SESSIONS, protocol=2),
                                            Plan("rxe", responder.SESSION_VERSION, OURS, OURS, responder.SESSIONS + dropped_calls.SESSIONS)]),
                   Worker(server_debugged(), [Plan("rxe", client_tests.VERSION, OURS, OURS, client_tests.BONDING),
                                            Plan("rxe", version, OURS, OURS, [callback_tests.COPYING_IDLE])])]),
            # It wants the machine for itself.
            Round("the load",
                  [Worker(nothing_debugged(), [Plan("rxe", load_tests.VERSION, OURS, OURS, [load_tests.FAIR])])])]


def check(results: Results) -> None:
    """Every cell, with all its tests."""
    run_workers(results, cells())


def cells() -> list[Worker]:
    """A short list for each pair of a device, a version and a peer; a long one with the debugging kernel at the client, and
    a shorter one with it at the server. `make matrix` has the rest.

    Two debugging kernels would take twice the time, and find no more. What leads to no look for leaks is not in a pair that
    has one, where it would take almost twice as long.
    """
    smoke = mount_tests.SMOKE

    def with_in_tree(device: str, server: str, client: str, *versions: str) -> list[Plan]:
        return [Plan(device, version, server, client, smoke[version]) for version in versions]

    client = Worker(client_debugged(), [
        Plan("rxe", "4.2", OURS, OURS, mount_tests.checked(mount_tests.FULL["4.2"], *mount_tests.ELSEWHERE)),
        Plan("rxe", "4.2", OURS, OURS, mount_tests.SECOND_LEAKS, protocol=2),
        Plan("rxe", LIFE_VERSION, OURS, OURS, memory_tests.QUICK + client_life_tests.tests(client_life_tests.CHECK))])
    version_2 = Worker(replace(client_debugged(), name="version-2"), [
        Plan("rxe", "4.2", OURS, OURS, mount_tests.SECOND_CHECK["4.2"], protocol=2),
        Plan("rxe", "3", OURS, OURS, mount_tests.SECOND_CHECK["3"], protocol=2)])
    responders = Worker(replace(client_debugged(), name="responders"), [
        Plan("rxe", responder.VERSION, OURS, OURS, responder_2.QUICK, protocol=2),
        Plan("rxe", responder.SESSION_VERSION, OURS, OURS, responder_2.QUICK_SESSIONS, protocol=2),
        *with_in_tree("rxe", IN_TREE, OURS, "3", "4.2"),
        Plan("rxe", client_tests.VERSION, OURS, OURS,
             client_tests.QUICK + payload_tests.TESTS),
        Plan("rxe", responder.VERSION, OURS, OURS, [mount_tests.DEAD, client_tests.BESIDE_TCP, *responder.QUICK,
             *dropped_calls.QUICK, *provider.QUICK]),
        Plan("rxe", responder.SESSION_VERSION, OURS, OURS, responder.QUICK_SESSIONS),
        Plan("rxe", "4.0", OURS, OURS, [responder.REFUSING_ACLS, provider.NOTHING])])
    server = Worker(server_debugged(), [
        Plan("siw", "3", OURS, OURS, mount_tests.checked(mount_tests.FULL["3"], *mount_tests.ASIDE, mount_tests.STATISTICS,
                                                         mount_tests.DISCONNECTED)),
        Plan("rxe", None, OURS, OURS, requester.tests(kernels.debug())),
        Plan("rxe", LIFE_VERSION, OURS, OURS, life_tests.tests(life_tests.CHECK, "rxe"))])
    peers = Worker(replace(server_debugged(), name="peers"), [
        Plan("siw", None, OURS, OURS, [requester.FORGING]),
        Plan("siw", "4.2", OURS, OURS, mount_tests.SECOND_SHORT["4.2"], protocol=2),
        *with_in_tree("siw", OURS, IN_TREE, "3", "4.2"),
        *with_in_tree("rxe", OURS, IN_TREE, "4.0", "4.1"),
        Plan("rxe", "4.1", OURS, OURS, smoke["4.1"]),
        Plan("rxe", "4.2", OURS, OURS, mount_tests.secured([mount_tests.SMALL, mount_tests.CALLBACKS], "4.2"), "krb5p"),
        # With the others nothing is placed.
        Plan("rxe", "4.2", OURS, OURS, [mount_tests.ENCRYPTION_TYPES], "krb5")])
    others = Worker(replace(client_debugged(), name="other-devices"), [
        *with_in_tree("siw", IN_TREE, OURS, "4.0", "4.1"),
        Plan("siw", "4.0", OURS, OURS, [mount_tests.SMALL]),
        Plan("siw", "4.2", OURS, OURS, [mount_tests.SMALL, mount_tests.CALLBACKS]),
        Plan("siw", responder.VERSION, OURS, OURS,
             [responder.SAYS_LITTLE, provider.IN_PIECES, provider.NEVER_READ, forged_keys.TEST]),
        Plan("dma", "4.2", OURS, OURS, [mount_tests.SMALL, mount_tests.FORMS_2], protocol=2),
        Plan("worst", "4.2", OURS, OURS, [mount_tests.SMALL, mount_tests.UNALIGNED], protocol=2),
        Plan("dma", "4.2", OURS, OURS, [*mount_tests.checked(mount_tests.MAPPING, mount_tests.NO_LEAK), *adapter_tests.PLAYED]),
        Plan("bounce", "4.2", OURS, OURS,
             [*smoke["4.2"], mount_tests.UNALIGNED, mount_tests.DIRECTORY, adapter_tests.MAPPED]),
        Plan(adapter_tests.INVALIDATES_NOTHING, "4.2", OURS, OURS, [adapter_tests.ALONE]),
        Plan("boastful", "4.2", OURS, OURS, [mount_tests.SMALL, adapter_tests.MAPPED])])
    forced = Worker(server_forced(), [Plan("rxe", LIFE_VERSION, OURS, OURS, adapter_tests.FORCING)])
    # Beside the others where there is room for more than one busy pair.
    waiting = Worker(replace(client_debugged(), name="waiting"),
                     [Plan("rxe", "4.2", OURS, OURS, mount_tests.WAITING)], idle=room() > 1)
    # The longest first, so that the last end together.
    return [responders, client, server, others, peers, version_2, forced, waiting, slow()]


def slow() -> Worker:
    """What waits for minutes in guests that have nothing to do, and need little memory for that."""
    end = _end(kernels.stock(), Build(SLOW_MEMORY))
    return Worker(Setup("slow-server", end, end),
                  [Plan("rxe", slow_server.VERSION, server, client, slow_server.TESTS)
                   for server, client in ((OURS, OURS), (IN_TREE, OURS), (OURS, IN_TREE))], idle=True)


def soak_minutes() -> int:
    """How long a soak is, or a storm alone."""
    return settings.number("SOAK_MINUTES", SOAK_MINUTES)


def client_debugged(kernel: Kernel | None = None) -> Setup:
    """The guests of a cell that wants the debugging kernel, or another of our own, at the client."""
    return Setup("mount-client", _end(kernels.stock()), _end(kernel or kernels.debug()))


def server_debugged(kernel: Kernel | None = None) -> Setup:
    """The same at the server."""
    return Setup("mount-server", _end(kernel or kernels.debug()), _end(kernels.stock()))


def server_forced() -> Setup:
    """Where the server's core is told to register memory for all RDMA."""
    build = Build(MEMORY, arguments=(adapter_tests.FORCED,))
    return Setup("forced", _end(kernels.debug(), build), _end(kernels.stock()))


def server_stressed(device: str) -> Setup:
    """With a second processor at the server, so that what may happen at the same time does."""
    return Setup(f"life-{device}", _end(kernels.debug(), STRESSED), _end(kernels.stock()))


def client_stressed(device: str) -> Setup:
    """The same at the client."""
    return Setup(f"client-life-{device}", _end(kernels.stock()), _end(kernels.debug(), STRESSED))


def client_accounted(device: str) -> Setup:
    """With accounts of memory at the client."""
    return Setup(f"memory-{device}", _end(kernels.stock()), _end(kernels.debug(), Build(MEMORY, accounts=True)))


def server_rebooting(device: str) -> Setup:
    """With a server that may lose its power, and a second processor at the client."""
    return Setup(f"storm-{device}", _end(kernels.stock(), Build(MEMORY, disk=True)),
                 _end(kernels.debug(), Build(MEMORY, processors=2, reconnects=True)))


def server_with_disk(kernel: Kernel) -> Setup:
    """With a server whose files are on a disk, which can be written and read past the cache."""
    return Setup("mount-disk", _end(kernel, Build(MEMORY, disk=True)), _end(kernels.stock()))


def near_wrap(kernel: Kernel) -> Setup:
    """Where the counts of version 2 wrap soon."""
    server, client = (End(each, module.build(each, module.NEAR_WRAP), Build(MEMORY)) for each in (kernels.stock(), kernel))
    return Setup("near-wrap", server, client, counted_before=module.COUNTED_BEFORE)


def two_nodes() -> Setup:
    """With the adapter on another node than the processor. The kernels of our own know of one node alone."""
    end = _end(kernels.stock(), Build(MEMORY, nodes=2, arguments=(nodes_tests.NOTED,)))
    return Setup("nodes", end, end)


def nothing_debugged() -> Setup:
    return Setup("mount-load", _end(kernels.stock()), _end(kernels.stock()))


def arm64(ends: tuple[str, ...]) -> Setup:
    """With arm64 machines at these ends."""
    server, client = (_end(kernels.stock(ARM64 if role.name in ends else AMD64)) for role in (SERVER, CLIENT))
    return Setup("-".join(["arm64", *ends]), server, client)


def _end(kernel: Kernel, build: Build = Build(MEMORY)) -> End:
    return End(kernel, module.build(kernel), build)


def chosen(workers: list[Worker]) -> list[Worker]:
    """With the tests alone whose names, behind those of their cells, contain TESTS; without it all of them."""
    wanted = os.environ.get("TESTS")
    if not wanted:
        return workers
    fit = [replace(worker, plans=[replace(plan, tests=tests) for plan in worker.plans
                                  if (tests := [test for test in plan.tests if wanted in f"{plan.name}: {test.name}"])])
           for worker in workers]
    if not any(worker.plans for worker in fit):
        names = dict.fromkeys(f"{plan.name}: {test.name}" for worker in workers for plan in worker.plans for test in plan.tests)
        raise progress.Failure(f"TESTS={wanted} chooses none of: {', '.join(names)}")
    return [worker for worker in fit if worker.plans]


def run_workers(results: Results, workers: list[Worker], tell: Callable[[Outcome], None] = lambda outcome: None) -> None:
    """Run workers of cells, side by side where there is room for that.

    Of a pair of guests, one is busy and the other waits for it, mostly.
    """
    found = [Results() for _ in workers]
    mistakes: list[BaseException] = []
    places = threading.Semaphore(room())

    def run(worker: Worker, its: Results) -> None:
        if len(workers) > 1:
            progress.speak_as(worker.setup.name)
        try:
            with contextlib.nullcontext() if worker.idle else places:
                _run_worker(its, worker, tell)
        except BaseException as mistake:  # noqa: BLE001
            mistakes.append(mistake)

    with pair.alone():
        # An interrupted run does not wait for them; their guests end with them.
        threads = [threading.Thread(target=run, args=each, daemon=True) for each in zip(workers, found)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for each in found:
        results.include(each)
    if mistakes:
        raise mistakes[0]


def room() -> int:
    """How many pairs the machine has processors and memory for; one in any case."""
    available = re.search(r"^MemAvailable: +(\d+) kB$", Path("/proc/meminfo").read_text(), re.MULTILINE)
    memory = 1024 * int(available[1]) if available else 0
    return max(1, min(len(os.sched_getaffinity(0)), memory // LANE_BYTES))


def _run_worker(results: Results, worker: Worker, tell: Callable[[Outcome], None]) -> None:
    """Run cells on one pair of guests; a hang costs the rest of its cell, and the next one gets new guests.

    Those with Kerberos come last, since there is no way back from it.
    """
    guests: Pair | None = None
    with ExitStack() as stack:
        for plan in worker.plans:
            began, passed, failed = time.monotonic(), results.passed, results.failed
            try:
                if guests is None:
                    guests = stack.enter_context(pair.running(worker.needed_setup()))
                with progress.step(f"{plan.name}: {len(plan.tests)} tests"):
                    rdma = devices.named(plan.device)
                    guests.load(rdma, plan.server, plan.client)
                    guests.speak(plan.protocol, plan.protocol)
                    if plan.security != NO_SECURITY:
                        guests.begin_kerberos()
                    cell = Cell(guests, rdma, plan.version, plan.server, plan.client, plan.security, plan.protocol)
                    whole = _cell(results, cell, plan)
            except (progress.Failure, OSError) as error:
                failure = error if isinstance(error, progress.Failure) else progress.Failure(str(error))
                failure.tell_log()
                _could_not_run(results, plan.name, plan.tests, failure.what)
                whole = False
            if not whole:
                stack.close()
                guests = None
            tell(Outcome(plan.name, results.passed - passed, results.failed - failed, time.monotonic() - began))


def _cell(results: Results, cell: Cell, plan: Plan) -> bool:
    """Run the tests of a cell; False when its guests are of no more use."""
    for number, test in enumerate(plan.tests):
        goodbyes = [mount_tests.siw_goodbyes(test)] if cell.device == "siw" else []
        hung, provokes = False, (*test.provokes, *goodbyes)

        def judged(test=test, provokes=provokes) -> None:
            nonlocal hung
            try:
                test.function(cell)
            except progress.TimedOut:
                hung = True
                raise
            except progress.Failure as failure:
                cell.guests.tell_troubles(provokes)
                failure.what += cell.guests.strayed()
                raise
            if plan.quiet:
                cell.guests.must_be_quiet(provokes)
            else:
                cell.guests.tell_troubles(provokes)

        if not results.test(f"{plan.name}: {test.name}", judged):
            cell.guests.keep_records(f"{plan.name} {test.name}")
            # New guests are made sooner than those are of use again that no test is left for.
            if hung or number + 1 == len(plan.tests) or not cell.clear():
                _could_not_run(results, plan.name, plan.tests[number + 1:], f"`{test.name}` left the guests unusable")
                return False
    return True


def _could_not_run(results: Results, name: str, tests: list[Test], why: str) -> None:
    """A test that could not run has failed."""
    for test in tests:
        results.fail(f"{name}: {test.name}", f"could not run: {why}")
