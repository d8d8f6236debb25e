"""Two guests on a private link, an NFS server and a client, each with our module or the in-tree one."""

import contextlib
import itertools
import re
import shutil
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import cache
import progress
import repository
import room
from bench.counting import Counting
from guests import accel
from guests.clock import Clock
from guests.devices import Device
from guests.kernels import Kernel
from guests.machine import CLIENT, SERVER, Build, Machine, Role
from guests.monitor import Monitor
from judges.messages import Expected, KernelLog

LINK_SECONDS = 20
# What whoever has guests holds.
GUESTS = "guests"
# What a guest that is held has sent is with the other by then, if that gets its time.
SENT_SECONDS = 3
# A guest's clock that differs by more from the host's has not gone wrong by a slow answer alone.
STRAYED_SECONDS = 5
# Messages of kernels that a failure repeats.
MOST_TOLD = 10
# Who refuses a connection is there.
REACHED = (f"for try in $(seq {LINK_SECONDS}); do python3 -c 'import socket; "
           f"socket.create_connection((\"{CLIENT.address4}\", 9), 1)' 2>&1 | grep -q refused && break; "
           f"test $try -lt {LINK_SECONDS} || {{ echo the link has not come back >&2; exit 1; }}; done")
# What tells our module from the in-tree one. In the shell's own words, because a process more is slow in a guest.
SAY_TAINT = '{ test -e /sys/module/rpcrdma/taint && { read -r taint < /sys/module/rpcrdma/taint; echo "taint:$taint"; }; }'


# What goes wrong in the RPC layer and in NFS without a word in the kernel's log, for failures that nobody foresaw.
TROUBLES = """sunrpc:rpc_call_rpcerror sunrpc:rpc__prog_unavail sunrpc:rpc__prog_mismatch sunrpc:rpc__proc_unavail
    sunrpc:rpc__garbage_args sunrpc:rpc__unparsable sunrpc:rpc__mismatch sunrpc:rpc_bad_callhdr sunrpc:rpc_bad_verifier
    sunrpc:rpc_xdr_overflow sunrpc:rpc_xdr_alignment sunrpc:xprt_retransmit sunrpc:xprt_disconnect_force
    sunrpc:xprt_disconnect_auto sunrpc:svc_drop sunrpc:svc_xprt_close
    nfs4:nfs4_xdr_status nfs4:nfs4_xdr_bad_operation nfs4:nfs4_state_mgr nfs4:nfs4_state_mgr_failed nfs4:nfs4_setclientid
    nfs4:nfs4_renew_async""".split()
# The modules that have them, where they are none of the kernel itself: recorded as soon as those are loaded.
MODULES = {"sunrpc": "sunrpc", "nfs4": "nfsv4"}
RECORD = "cd /sys/kernel/tracing" + "".join(
    f" && {{ echo {event} >> set_event 2> /dev/null || echo {event}:mod:{MODULES[event.partition(':')[0]]} >> set_event; }}"
    for event in TROUBLES)


# Whose module runs at an end.
OURS, IN_TREE = "ours", "c"


@dataclass(frozen=True)
class End:
    """What one guest is made of."""

    kernel: Kernel
    # Our module, built for the kernel; None where only the in-tree one is to run.
    ours: Path | None
    build: Build = Build()
    # Where its instructions are counted, which only emulation can.
    counting: Counting | None = None


@dataclass(frozen=True)
class Setup:
    """What a pair is made of."""

    name: str
    server: End
    client: End
    # Messages of version 2 that its modules count before the first.
    counted_before: int = field(default=0, kw_only=True)

    def finding_leaks(self) -> "Setup":
        """The same pair, in which leaks can be looked for."""
        server, client = (replace(end, build=replace(end.build, leaks=True)) for end in (self.server, self.client))
        return replace(self, server=server, client=client)


class Pair:
    """Both guests, up."""

    def __init__(self, setup: Setup, run: Path) -> None:
        self.run = run
        self.counted_before = setup.counted_before
        self.machines: list[Machine] = []
        self.clock = Clock()
        # By the name of an end.
        self.modules: dict[str, str | None] = {}
        self.resources_before: dict[str, str] = {}
        self._device: Device | None = None
        self._serves = False
        self._kerberos = False
        # The highest version that our module speaks at each end.
        self._versions = dict.fromkeys((SERVER.name, CLIENT.name), 1)
        try:
            self.server = self._start(SERVER, setup.server)
            self._await_link()
            self.client = self._start(CLIENT, setup.client)
            self.server.ready()
            self.client.ready()
            self.both(RECORD)
        except BaseException:
            self.stop()
            raise
        self._logs = {machine.role.name: KernelLog(machine) for machine in self.machines}

    def stop(self) -> None:
        """End both guests."""
        for machine in self.machines:
            machine.stop()

    def both(self, command: str, seconds: float = 120) -> None:
        """Run one command in both guests at the same time; it has to succeed."""
        self.together(command, command, seconds)

    def together(self, server: str, client: str, seconds: float = 120) -> tuple[str, str]:
        """Run a command in each guest at the same time; both have to succeed. What they printed."""
        commands = ((self.server, server), (self.client, client))
        begun = [(machine, machine.start(command), command) for machine, command in commands]
        results = [(machine, command, machine.wait(process, seconds, command)) for machine, process, command in begun]
        server_said, client_said = (machine.succeeded(result, command) for machine, command, result in results)
        return server_said, client_said

    def load(self, device: Device, server: str, client: str) -> None:
        """Have RDMA devices made, modules inserted and a directory exported, as far as it is not so; prove the modules."""
        if self._serves and (device != self._device or server != self.modules[SERVER.name]):
            self.stop_serving()
        for machine, whose in ((self.server, server), (self.client, client)):
            if self.modules[machine.role.name] not in (None, whose):
                self._remove(machine)
        if device != self._device:
            for machine in self.machines:
                self._remove(machine)
            self.both(device.command)
            self._device = device
        self._insert(self.server, server)
        self._insert(self.client, client)
        if not self._serves:
            self.server.must("/lab/nfs-server", 120)
            self._serves = True
        self.prove_modules()

    def speak(self, server: int, client: int) -> None:
        """Have our modules speak RPC-over-RDMA up to these versions on new connections, also where they are inserted later."""
        wanted = {SERVER.name: server, CLIENT.name: client}
        changed = [machine for machine in self.machines if wanted[machine.role.name] != self._versions[machine.role.name]]
        self._versions = wanted
        for machine in changed:
            self._tell_version(machine)

    def _tell_version(self, machine: Machine) -> None:
        knob = {SERVER.name: "svc_rdma/max_version", CLIENT.name: "rdma_max_version"}[machine.role.name]
        if self.modules.get(machine.role.name) == OURS:
            machine.must(f"echo {self._versions[machine.role.name]} > /proc/sys/sunrpc/{knob}")

    def begin_kerberos(self) -> None:
        """Set up a realm, with the server as its KDC.

        There is no way back: from then on an NFS 4 client uses it for its lease, whatever the mount.
        """
        if not self._kerberos:
            self.server.must("/lab/kerberos")
            shutil.move(self.server.share / "client.keytab", self.client.share)
            self.client.must("/lab/kerberos")
            self._kerberos = True

    def unload(self) -> None:
        """Remove the modules of both ends."""
        self.prove_modules()
        self._remove(self.client)
        self.stop_serving()
        self._remove(self.server)

    def unload_client(self) -> None:
        """Remove the client's module, which somebody else may have inserted."""
        self.prove_modules()
        self._remove(self.client)

    def doubt(self) -> None:
        """Nothing is known to be in place any more: `load` sets all of it up anew."""
        self._device = None
        self._serves = True

    def stop_serving(self) -> None:
        """Stop nfsd; `load` starts it again."""
        self.server.must("rpc.nfsd 0")
        self._serves = False

    def reboot_server(self) -> None:
        """Take the server's power away and give it back; then it serves again as before. It has to have a disk of its
        own, and the client to reconnect its link."""
        # Not while a packet to it is half sent: when the other end of its link is gone, the client's QEMU would neither
        # forget the half nor ever send what waits behind it.
        with Monitor(self.client.directory / "monitor") as monitor, monitor.paused():
            self.clock.sleep(SENT_SECONDS)
            self.server.lose_power()
        self.server.regain_power()
        whose, self.modules[SERVER.name] = self.modules[SERVER.name], None
        self.server.ready()
        made = self._device.command if self._device else "true"
        self.server.must(f"{REACHED}; {RECORD} && {made}", 120)
        if whose is not None:
            self._insert(self.server, whose)
        self.server.must("/lab/nfs-server", 120)
        self._serves = True

    def expect_module(self, machine: Machine, whose: str) -> None:
        """Somebody else inserts it next."""
        self.modules[machine.role.name] = whose

    def resources(self, machine: Machine) -> str:
        """How many queue pairs, regions and other objects its RDMA device has."""
        # Without the number of the device, which is another each time it is made.
        return machine.must("rdma resource show").partition(":")[2].strip()

    def _insert(self, machine: Machine, whose: str) -> None:
        name = machine.role.name
        if self.modules[name] is None:
            self.resources_before[name] = self.resources(machine)
            machine.must(f"/lab/insert-module {whose}")
            self.modules[name] = whose
            if self._versions[machine.role.name] != 1:
                self._tell_version(machine)

    def _remove(self, machine: Machine) -> None:
        if self.modules[machine.role.name] is not None:
            machine.must("/lab/remove-module")
            self.modules[machine.role.name] = None

    def prove_modules(self) -> None:
        """Fail unless each end runs the module that it is meant to run."""
        for machine in self.machines:
            self.prove(machine.role.name, machine.must(SAY_TAINT))

    def prove(self, name: str, said: str) -> None:
        """The same for one guest, from what it said to SAY_TAINT."""
        prove(name, self.modules[name], said)

    def troubles(self, provoked: Sequence[Expected] = ()) -> list[str]:
        """What the kernels said since the last call that they should not have said, also printed."""
        with ThreadPoolExecutor() as pool:
            found = pool.map(lambda log: log.check(provoked), self._logs.values())
        troubles = [f"unexpected kernel message: {name}: {line}" for name, lines in zip(self._logs, found) for line in lines]
        for trouble in troubles:
            progress.line(f"  {trouble}")
        return troubles

    def must_be_quiet(self, provoked: Sequence[Expected] = ()) -> None:
        """Fail if there were such lines."""
        if troubles := self.troubles(provoked):
            more = [f"and {len(troubles) - MOST_TOLD} more"] if len(troubles) > MOST_TOLD else []
            raise progress.Failure("\n".join([*troubles[:MOST_TOLD], *more]), log=self.client.console)

    def strayed(self) -> str:
        """What is to be said of clocks that have not gone as the host's has: a test that waits has waited for something
        else, then."""
        said = ""
        for machine in self.machines:
            # A guest that answers no more has said so already.
            with contextlib.suppress(progress.Failure):
                if abs(seconds := machine.strayed()) > STRAYED_SECONDS:
                    said += f" (the {machine.role.name}'s clock has gone {seconds:.1f} s less than the host's)"
        return said

    def keep_records(self, name: str) -> None:
        """Write down what was recorded so far of what goes wrong without a word, and how things stand; of use when a test
        has failed."""
        for machine in self.machines:
            kept = self.run / f"{machine.role.name}-{re.sub('[^a-z0-9.]+', '-', name.lower())}.trace"
            # A guest that answers no more has said so already.
            with contextlib.suppress(progress.Failure):
                kept.write_text(machine.must("cat /sys/kernel/tracing/trace"))
                kept.with_suffix(".state").write_text(machine.must("/lab/state"))
                progress.line(f"  the RPC layer's events: {kept}; beside it, .state: RDMA objects, and who waits")

    def _start(self, role: Role, end: End) -> Machine:
        way = "tcg" if end.counting else accel.choose(end.kernel)
        machine = Machine(role, end.kernel, way, self.run, end.build, end.counting, self.clock)
        self.machines.append(machine)
        self.modules[role.name] = None
        machine.offer_module(IN_TREE, end.kernel.in_tree_module())
        if end.ours is not None:
            machine.offer_module(OURS, end.ours.read_bytes())
        return machine

    def _await_link(self) -> None:
        """The client's end of the link connects once, so the server's has to listen first."""
        deadline = self.clock.now() + LINK_SECONDS
        while not (self.run / "link").exists():
            if self.clock.now() > deadline:
                raise progress.Failure("server: QEMU does not start", log=self.run / "server.qemu")
            time.sleep(0.05)


def prove(name: str, whose: str | None, said: str) -> None:
    """Fail unless a guest's answer to SAY_TAINT is that of this module."""
    taint = re.search(r"taint:(\w*)", said)
    if taint is None or ("O" in taint[1]) != (whose == OURS):
        raise progress.Failure(f"{name}: does not run {'our' if whose == OURS else 'the in-tree'} rpcrdma: {said.strip()}")


@contextlib.contextmanager
def running(setup: Setup) -> Iterator[Pair]:
    """Two guests for the length of a block."""
    with cache.shared(GUESTS):
        run = fresh_directory(setup.name)
        with progress.step(f"starting two guests (server {setup.server.kernel.name}, "
                           f"client {setup.client.kernel.name}; consoles in {run})"):
            pair = Pair(setup, run)
        try:
            yield pair
        finally:
            pair.stop()


def fresh_directory(name: str) -> Path:
    """An empty directory for guests. Those before it in this run are kept: they may have been given up after a hang."""
    runs, began = repository.BUILD / "run", time.time() - room.seconds()
    for path in runs.glob(f"{name}*"):
        if re.fullmatch(r"(\.\d+)?", path.name.removeprefix(name)) and path.stat().st_mtime < began:
            shutil.rmtree(path)
    numbered = (runs / (f"{name}.{number}" if number > 1 else name) for number in itertools.count(1))
    run = next(path for path in numbered if not path.exists())
    run.mkdir(parents=True)
    return run


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Only one run has guests at a time."""
    with cache.lock("machines", "has guests running"):
        # Those of a run that was killed may live on for a moment.
        with cache.lock(GUESTS, "has guests left"):
            pass
        yield
