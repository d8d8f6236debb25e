"""One guest: a QEMU process, its console log, and commands in it.

QEMU is started directly, not through virtme-ng, which has one command a boot in mind; these guests stay up for many
commands and have a private link that can be captured. On x86-64 the machine is a q35: under emulation its smaller
relative, the microvm, has no clock that a kernel finds.
"""

import math
import re
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import progress
import repository
from bench.counting import Counting
from guests import image, kernels, roots, tsc
from guests.agent import ASK_SECONDS, Agent, Result
from guests.arch import AMD64
from guests.clock import Clock, waits_of_child
from guests.kernels import Kernel

BOOT_SECONDS = 240
LOG_SECONDS = 60
# How long a guest without power stays so: its QEMU may take a moment to be gone.
OFF_SECONDS = 3
# How soon a guest looks for the other end of its link that is gone.
RECONNECT_MILLISECONDS = 500
# Of the disk of a guest that has one of its own.
DISK_MEGABYTES = 1024
# Of the link. It gives rxe its largest MTU, 4096, and siw fewer packets to emulate.
MTU = 16000
# Of the packages; the tests have them say how connections are, and make and check files.
PACKAGED = (repository.ROOT / "tools/status/rpcrdma_status.py", repository.ROOT / "tools/on-device/files.py")
# The programs on raw verbs, and what they share.
RAW = ("raw", "referee", "requester", "responder")
# An emulated processor speculates nothing. Without what guards against that, and without the tests that a kernel has of its
# ciphers, Debian's boots in four fifths of the time. Those of our own have neither.
UNGUARDED = ("mitigations=off", "cryptomgr.notests")
# QEMU says that it stores bytes fast, and emulates them one by one: memset() is 5 % of what a debugging kernel does. The bench
# has it so, since its tables have.
SLOW_STORES = ",fsrs=off"
MARK = re.compile(r"end of test \d+")
# The slab allocator gives back what it can.
DROP_CACHES = ("sync; { for cache in /sys/kernel/slab/*; do echo 1 > $cache/shrink; done; } 2> /dev/null; "
               "echo 3 > /proc/sys/vm/drop_caches")
# MemFree does not count the lists that processors keep of free pages, which may have tens of MiB.
FREE_KILOBYTES = "awk '/^MemFree:/ {n += $2} /^ *count:/ {n += 4 * $2} END {print n}' /proc/meminfo /proc/zoneinfo"


@dataclass(frozen=True)
class Role:
    """The place of a guest on the private link."""

    name: str
    mac: str
    address4: str
    address6: str
    # The link is a Unix socket between the two QEMUs, so it cannot touch the host's network. The server's listens.
    listens: bool


SERVER = Role("server", "52:54:00:00:00:01", "192.0.2.1", "fd00:2::1", True)
CLIENT = Role("client", "52:54:00:00:00:02", "192.0.2.2", "fd00:2::2", False)


@dataclass(frozen=True)
class Build:
    """What a guest is made of, beside its kernel."""

    memory: str = "1G"
    processors: int = 1
    # Whether the kernel keeps accounts of memory, which limits to groups of processes need.
    accounts: bool = False
    # Whether it has a disk of its own, which keeps what is on it without power.
    disk: bool = False
    # Whether a debugging kernel keeps account of all memory (kmemleak, page_owner), so that leaks can be found. That takes
    # almost half of a guest's time.
    leaks: bool = False
    # Whether its RDMA devices have the kernel's own drivers, which have no corrections of ours and play no adapter.
    plain_drivers: bool = False
    # Its nodes, of which the first has the processors, and each as much memory.
    nodes: int = 1
    # Whether the other end of its link may be gone for a while.
    reconnects: bool = False
    # What its kernel is told beside what all are.
    arguments: tuple[str, ...] = ()


class Machine:
    """A running guest."""

    def __init__(self, role: Role, kernel: Kernel, accel: str, run: Path, build: Build,
                 counting: Counting | None = None, clock: Clock | None = None) -> None:
        """Start a guest in the directory `run`, which both ends of a link share, as they share a clock; `ready` waits for
        it."""
        self.role = role
        self.clock = clock or Clock()
        self.kernel = kernel
        self.counting = counting
        self.directory = run / role.name
        self.console = run / f"{role.name}.console"
        self._agent: Agent | None = None
        self._marks = 0
        # What the host's clock said when the guest's began.
        self._behind = 0.0
        # What the kernel said when the guest ran before.
        self._before: list[str] = []
        self._lives = 0
        shutil.rmtree(self.directory, ignore_errors=True)
        self.share = self.directory / "share"
        self.share.mkdir(parents=True)
        self._fill_share(build)
        if build.disk:
            self._make_disk()
        # The guest must not outlive this process, however it ends.
        self._command = ["setpriv", "--pdeathsig", "KILL",
                         *roots.tool_root().command(self._qemu(accel, build), directory=run)]
        self._process = self._power_on()
        # QEMU is the child of what gives it its root.
        self.clock.add(lambda: waits_of_child(self._process.pid))

    def lose_power(self) -> None:
        """Take the guest's power away. What is on its disk stays there."""
        self.stop()
        self._agent = None
        self._before += kernel_lines(self.console.read_bytes())
        self._lives += 1
        self.console.rename(self.console.with_name(f"{self.console.name}.{self._lives}"))

    def regain_power(self) -> None:
        """Give it back after a moment; `ready` waits for the guest."""
        time.sleep(OFF_SECONDS)
        self._process = self._power_on()

    def ready(self) -> None:
        """Wait until the guest takes commands."""
        deadline = self._began + BOOT_SECONDS
        while self.clock.now() < deadline:
            if self._process.poll() is not None:
                raise progress.Failure(f"{self.role.name}: QEMU ended during the boot", log=self._log())
            if self._agent is None and self._said_ready():
                # A question costs instructions, each time as many as it likes.
                ask = math.inf if self.counting else ASK_SECONDS
                self._agent = Agent(self.directory / "agent", self.role.name, self.share, self.clock, ask)
            if self._agent is not None and self._agent.alive():
                self._behind = 0.0 if self.counting else self._behind_host()
                return
            time.sleep(0.2)
        raise progress.Failure(f"{self.role.name}: the guest did not come up within {BOOT_SECONDS} s", log=self._log())

    def strayed(self) -> float:
        """Seconds that the guest's clock has gone less than the host's since the guest came up."""
        return self._behind_host() - self._behind

    def _behind_host(self) -> float:
        asked = time.monotonic()
        return asked - float(self.must("cut -d ' ' -f 1 /proc/uptime"))

    def offer_module(self, whose: str, module: bytes) -> None:
        """Put a module where the guest's insert-module finds it."""
        place = self.share / whose
        place.mkdir(exist_ok=True)
        (place / "rpcrdma.ko").write_bytes(module)

    def run(self, command: str, seconds: float = 60) -> Result:
        """Run a shell command in the guest."""
        return self.wait(self.start(command), seconds, command)

    def must(self, command: str, seconds: float = 60) -> str:
        """Run a shell command that has to succeed; what it printed."""
        return self.succeeded(self.run(command, seconds), command)

    def succeeded(self, result: Result, command: str) -> str:
        """What a command printed; a Failure if it failed."""
        if result.status != 0:
            said = (result.err or result.out).strip()
            raise progress.Failure(f"{self.role.name}: `{command}` ended with status {result.status}: {said}",
                              log=self.console)
        return result.out

    def free_bytes(self) -> int:
        """Bytes of memory that nobody uses, without what could be read again."""
        self.must(DROP_CACHES)
        return 1024 * int(self.must(FREE_KILOBYTES))

    def start(self, command: str) -> int:
        """Begin a shell command in the guest; for `wait`."""
        try:
            return self._connected().start(command)
        except progress.TimedOut as hang:
            hang.log = self.console
            raise

    def wait(self, process: int, seconds: float, what: str) -> Result:
        """Wait for a command begun with `start`."""
        try:
            return self._connected().wait(process, seconds, what)
        except progress.TimedOut as hang:
            hang.log = self.console
            raise

    def log(self) -> list[str]:
        """What the kernel has said so far, without times; read on the host, since asking a slow guest is slow."""
        self._marks += 1
        mark = f"end of test {self._marks}"
        self.must(f"echo {mark} > /dev/kmsg")
        deadline = self.clock.now() + LOG_SECONDS
        while mark not in (lines := kernel_lines(self.console.read_bytes())):
            if self.clock.now() > deadline:
                raise progress.TimedOut(f"{self.role.name}: the console does not show what the kernel logs", log=self.console)
            time.sleep(0.1)
        return [line for line in (*self._before, *lines) if not MARK.fullmatch(line)]

    def stop(self) -> None:
        """End the guest."""
        if self._agent is not None:
            self._agent.close()
        self._process.kill()
        self._process.wait()

    def _power_on(self) -> subprocess.Popen:
        self._began = self.clock.now()
        with (self.directory.parent / f"{self.role.name}.qemu").open("ab") as log:
            return subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)

    @property
    def _disk(self) -> Path:
        return self.directory / "disk.img"

    def _make_disk(self) -> None:
        """An empty file system."""
        argv = ["mke2fs", "-q", "-t", "ext4", str(self._disk), f"{DISK_MEGABYTES}M"]
        roots.tool_root().run(argv, self.directory / "disk.log", "the guest's disk could not be made")

    def _connected(self) -> Agent:
        if self._agent is None:
            raise progress.Failure(f"{self.role.name}: the guest has not booted", log=self.console)
        return self._agent

    def _said_ready(self) -> bool:
        return self.console.exists() and b"guest ready" in self.console.read_bytes()

    def _log(self) -> Path:
        return self.console if self.console.exists() and self.console.stat().st_size else \
            self.console.with_suffix(".qemu")

    def _fill_share(self, build: Build) -> None:
        for script in sorted((repository.TESTS / "guest").iterdir()):
            shutil.copy(script, self.share)
        for device in () if build.plain_drivers else kernels.DRIVERS:
            shutil.copy(kernels.driver(self.kernel, device), self.share)
        for program in RAW:
            shutil.copytree(repository.ROOT / "tools" / program, self.share / program,
                            ignore=shutil.ignore_patterns("__pycache__"))
        for path in PACKAGED:
            shutil.copy(path, self.share)
        mtu = MTU
        if self.counting is not None:
            shutil.copy(self.counting.workload, self.share / "workload")
            mtu = self.counting.mtu or MTU
        settings = {"NAME": self.role.name, "OWN4": self.role.address4, "OWN6": self.role.address6,
                    "SERVER4": SERVER.address4, "CLIENT4": CLIENT.address4, "MAC": self.role.mac, "MTU": str(mtu)}
        (self.share / "guest.env").write_text("".join(f"{name}={value}\n" for name, value in settings.items()))

    def _qemu(self, accel: str, build: Build) -> list[str]:
        name, arch = self.role.name, self.kernel.arch
        # The suites of the kernel itself are not ours to run, and take half of the debug kernel's boot.
        arguments = [f"console={arch.console}", "ignore_loglevel", "log_buf_len=16M", "panic=1", "rdinit=/init",
                     "kunit.filter_glob=rpcrdma_*", *build.arguments]
        if not build.accounts:
            # Those that nobody reads cost time.
            arguments.append("cgroup_disable=memory")
        if self.kernel.flavour in kernels.OWN and not build.leaks:
            arguments.append("kmemleak=off")
        if self.kernel.flavour == "debug" and build.leaks:
            # Who took which page, so that none is lost without a word.
            arguments.append("page_owner=on")
        devices: list[str] = []
        if accel == "kvm":
            processor = "host"
        else:
            processor = arch.processor
            arguments += arch.arguments
            if arch == AMD64 and not (self.counting and self.counting.exact):
                arguments.append(tsc.argument())
            if arch == AMD64 and not self.counting:
                processor += SLOW_STORES
                arguments += UNGUARDED if self.kernel.flavour == "stock" else ()
        # The host keeps what was written; that it has not reached the host's own disk is no matter.
        disk = ["-drive", f"if=none,id=own,format=raw,cache=unsafe,file.locking=off,file={self._disk}",
                "-device", "virtio-blk-pci,drive=own"] if build.disk else []
        if self.counting is not None:
            arguments += self.counting.kernel_arguments
            devices += self.counting.qemu(name)
        if self.counting is None or not self.counting.exact:
            devices += self._outside(build)
        return [
            arch.qemu, "-name", name, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
            "-M", arch.machine, "-accel", accel, "-cpu", processor, "-smp", str(build.processors),
            "-m", build.memory, *_nodes(build),
            "-kernel", str(self.kernel.image), "-initrd", str(image.initramfs(self.kernel)),
            "-append", " ".join(arguments),
            "-chardev", f"file,id=console,path={self.console.name}", "-serial", "chardev:console",
            "-drive", f"if=none,id=disk,format=raw,readonly=on,file.locking=off,file={image.disk(arch)}",
            "-device", "virtio-blk-pci,drive=disk", *disk,
            *self._directory("lab", self.share, "off"),
            *self._directory("modules", self.kernel.modules / "lib/modules", "on"),
            "-device", "virtio-serial-pci", "-chardev", f"socket,id=agent,server=on,wait=off,path={name}/agent",
            "-device", "virtserialport,chardev=agent,name=org.qemu.guest_agent.0",
            "-chardev", f"socket,id=monitor,server=on,wait=off,path={name}/monitor", "-qmp", "chardev:monitor",
            *devices,
        ]

    def _outside(self, build: Build) -> list[str]:
        """What comes from elsewhere at any time: random numbers, and the other end of the link."""
        link = f"stream,id=net,server={'on' if self.role.listens else 'off'},addr.type=unix,addr.path=link"
        if build.reconnects:
            link += f",reconnect-ms={RECONNECT_MILLISECONDS}"
        return [
            "-device", "virtio-rng-pci",
            "-netdev", link,
            # Buffers that are not from a page pool: rxe frees packets with interrupts off when a queue pair fails, which
            # those of a pool do not allow.
            "-device", f"virtio-net-pci,netdev=net,mac={self.role.mac},host_mtu={MTU},mrg_rxbuf=off",
        ]

    @staticmethod
    def _directory(tag: str, path: Path, readonly: str) -> list[str]:
        return ["-fsdev", f"local,id={tag},security_model=none,readonly={readonly},path={path}",
                "-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]


def _nodes(build: Build) -> list[str]:
    """Where the processors and the memory are."""
    if build.nodes == 1:
        return []
    size = int(build.memory.removesuffix("M")) // build.nodes
    return [word for node in range(build.nodes) for word in (
        "-object", f"memory-backend-ram,id=memory{node},size={size}M",
        "-numa", f"node,nodeid={node},memdev=memory{node}" + (f",cpus=0-{build.processors - 1}" if node == 0 else ""))]


def kernel_lines(console: bytes) -> list[str]:
    """The lines of a serial console from the kernel, without their times."""
    lines = console.decode(errors="replace").replace("\r", "").split("\n")
    return [line.partition("] ")[2] for line in lines[:-1] if re.match(r"\[ *\d+\.\d+\] ", line)]
