"""One guest with both ends of a connection, whose instructions are counted: the same each time."""

import contextlib
from collections.abc import Callable, Iterator

import progress
from bench import costs as bench_costs
from bench.costs import RPCS, Costs
from bench.counting import Counter, Counting
from bench.plan import FEW_ENTRIES, FILE_MEGABYTES, MANY_ENTRIES, Part, Workload
from bench.tools import Programs
from guests import kernels, pair
from guests.machine import Build, Machine, Role
from guests.symbols import Symbols
from judges import messages
from judges.messages import KernelLog

ROLE = Role("guest", "52:54:00:00:00:01", "192.0.2.1", "fd00:2::1", True)
# Both have to be the same for instructions to be a clock.
ACCEL, MEMORY = "tcg,thread=single", "2G"
SET_UP_SECONDS, MEASURE_SECONDS = 300, 900
# Where `bench quiet` puts these: to wait for the host's directory would be to wait for long in the guest's time.
BENCH, WORKLOAD = "/run/bench", "/run/workload"
FILES = f"{BENCH} files {FILE_MEGABYTES} {MANY_ENTRIES} {FEW_ENTRIES}"
WHERE = "/mnt/bench"
RDMA, TCP = "rdma", "tcp"
VERSIONS = ("3", "4.2")
PORTS = {RDMA: 20049, TCP: 2049}
INLINE = ("/proc/sys/sunrpc/rdma_max_inline_read", "/proc/sys/sunrpc/rdma_max_inline_write",
          "/proc/sys/sunrpc/svc_rdma/max_req_size")
HIGHEST = ("/proc/sys/sunrpc/rdma_max_version", "/proc/sys/sunrpc/svc_rdma/max_version")
# An operation that reaches the server is an RPC at least; with many at once some end a moment later.
LEAST_RPCS = 0.95
# An instruction is a nanosecond. A block that an exception ends counts whole.
CLOCK_LIMIT = 0.01


class Guest:
    """A guest, up and serving, with a mount when it is wanted."""

    def __init__(self, name: str, whose: str, transport_module: bytes, device: str, programs: Programs) -> None:
        """Start it; only this module is in it. `name` is the run's."""
        self.whose = whose
        self.device = device
        self._run = pair.fresh_directory(name)
        counting = Counting(programs.plugin, programs.workload)
        self.machine = Machine(ROLE, kernels.stock(), ACCEL, self._run, Build(MEMORY), counting)
        self.machine.offer_module(whose, transport_module)
        self.counter = Counter(self.machine.directory)
        self._log = KernelLog(self.machine)
        self._hangs = False

    def set_up(self) -> None:
        """Have the modules inserted, the device made, and the server's files there."""
        self.machine.ready()
        self.must(f"/lab/bench link && /lab/bench quiet && /lab/bench modules {self.device} && "
                  f"/lab/insert-module {self.whose} && {BENCH} symbols", SET_UP_SECONDS)
        self.symbols = read_symbols(self.machine)
        # Before any of them is called: code that has been translated is not looked at again.
        for kind, function, _ in bench_costs.VERBS[self.device]:
            self.counter.watch(kind, function[1], self.symbols.entry(function))
        self.must(f"/lab/rdma-device {self.device} && /lab/nfs-server && {FILES}", SET_UP_SECONDS)
        # A mount brings modules, whose code is to have names.
        for version in VERSIONS:
            self.must(f"{BENCH} mount {WHERE} {mount_words(version, RDMA)} && umount {WHERE}")
        self.must(f"{BENCH} symbols")
        self.symbols = read_symbols(self.machine)
        self._modules = self._module_names()
        self.prove()

    def stop(self) -> None:
        self.machine.stop()

    def must(self, command: str, seconds: float = 120) -> str:
        """Run a command; one that hangs is the last."""
        if self._hangs:
            raise progress.TimedOut(f"{self.machine.role.name}: was given up before")
        try:
            return self.machine.must(command, seconds)
        except progress.TimedOut:
            self._hangs = True
            raise

    def prove(self) -> None:
        """Fail unless it runs the module that it is meant to run, and no module whose code has no name."""
        pair.prove(ROLE.name, self.whose, self.must(pair.SAY_TAINT))
        self.must(f"{BENCH} symbols")
        if new := self._module_names() - self._modules:
            raise progress.Failure(f"modules came after their time: {' '.join(sorted(new))}")

    def _module_names(self) -> set[str]:
        return set((self.machine.share / "module-names").read_text().split())

    def must_be_well(self) -> None:
        """Tell what the kernel said beyond what is expected; fail on reports of what is never all right."""
        unexpected = self._log.check()
        for line in unexpected:
            progress.line(f"  unexpected kernel message: {line}")
        if messages.reports(unexpected):
            raise progress.Failure("the kernel reports what is never all right", log=self.machine.console)

    @contextlib.contextmanager
    def inline(self, size: int | None) -> Iterator[None]:
        """Another inline size at both ends for the length of a block."""
        if size is None:
            yield
            return
        usual = self.must(f"cat {' '.join(INLINE)}").split()
        with progress.undoing(lambda: self.must("; ".join(f"echo {value} > {path}" for value, path in zip(usual, INLINE)))):
            self.must(" && ".join(f"echo {size} > {path}" for path in INLINE))
            yield

    @contextlib.contextmanager
    def speaks(self, protocol: int) -> Iterator[None]:
        """The version of RPC-over-RDMA that connections come to speak which are made in a block."""
        if protocol == 1:
            yield
            return
        say = " && ".join(f"echo {{0}} > {path}" for path in HIGHEST)
        with progress.undoing(lambda: self.must(say.format(1))):
            self.must(say.format(protocol))
            yield

    @staticmethod
    def on_mount(part: Part, transport: str) -> Callable[[str], str]:
        """What does a command on a mount of its own.

        Between two commands the guest waits for the host, in its own time for so long that connections are closed.
        """
        mount = f"{BENCH} mount {WHERE} {mount_words(part.version, transport, part.options)}"
        return lambda command: f"{mount} && {{ {command}; status=$?; umount {WHERE} && exit $status; }}"

    def measure(self, workload: Workload, transport: str, repetitions: int = 1,
                around: Callable[[str], str] = str) -> list[Costs]:
        """The costs of one operation of a workload, for each repetition.

        `around` makes the guest's command of the one that does the workload, and has nothing else printed.
        """
        self.counter.skip()
        warmup, operations = workload.warmup, workload.operations
        times = (repetitions, warmup, operations) if not workload.apart else (warmup + operations, 0, 1)
        arguments = workload.arguments.format(WHERE, connect_words(transport))
        output = self.must(around(" ".join(map(str, (WORKLOAD, *times, arguments)))), MEASURE_SECONDS)
        # What comes later in the same command is not of this workload.
        found, windows = bench_costs.runs(output), self.counter.windows()[:times[0]]
        if len(found) != times[0] or len(windows) != times[0]:
            raise progress.Failure(f"{len(found)} repetitions, {len(windows)} windows, not {times[0]}")
        device = self.device if transport == RDMA else None
        costs = [bench_costs.of(window, self.symbols, run, device, times[2]) for window, run in zip(windows, found)]
        if workload.apart:
            costs = [bench_costs.mean(costs[warmup:])]
        reaches_server(costs)
        agrees_with_clock(costs, may_wait=workload.apart)
        return costs


def mount_options(version: str, transport: str, more: str = "") -> str:
    """A mount's options."""
    options = f"vers={version},proto={transport},port={PORTS[transport]}{more}"
    # Without lockd, and without the MOUNT protocol over UDP.
    return f"{options},nolock,mountproto=tcp" if version == "3" else options


def mount_words(version: str, transport: str, more: str = "") -> str:
    """What mount wants to be told, but for the place."""
    path = "/export" if version == "3" else "/"
    return f"-t nfs -o {mount_options(version, transport, more)} {ROLE.address4}:{path}"


def connect_words(transport: str) -> str:
    """What the workload wants to be told to mount NFS 4.2 without the mount program."""
    own = ROLE.address4
    options = f"vers=4.2,proto={transport},port={PORTS[transport]},sec=sys,addr={own},clientaddr={own}"
    return f"{ROLE.address4}:/ {options} /mnt/connect"


def read_symbols(machine: Machine) -> Symbols:
    """Where a guest's functions are, which it has written down."""
    return Symbols((machine.share / "symbols").read_text())


def reaches_server(several: list[Costs]) -> None:
    """Fail if the operations of a workload were answered by a cache, or if a message was lost on the way."""
    for costs in several:
        if costs.counts[RPCS] < LEAST_RPCS:
            raise progress.Failure(f"an operation is {costs.counts[RPCS]:.2f} RPCs: it does not reach the server")
        if costs.counts["troubles"]:
            raise progress.Failure(f"the device counted errors or retries, {costs.counts['troubles']:.4f} an operation")


def agrees_with_clock(several: list[Costs], may_wait: bool) -> None:
    """Fail if the plugin has not counted as many instructions as the guest's clock, which counts them, too.

    The clock also goes on while the guest waits, which it does nowhere but where connections come and go.
    """
    for costs in several:
        difference = costs.total / costs.nanoseconds - 1
        if difference > CLOCK_LIMIT or (difference < -CLOCK_LIMIT and not may_wait):
            raise progress.Failure(f"the plugin counted {costs.total:.0f} instructions, the clock {costs.nanoseconds:.0f}")
