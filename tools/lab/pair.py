"""Two guests on a private link: an NFS server with the in-tree module, and a client with the module under test."""

import contextlib
import re
import shutil
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import accel
import cache
import repository
import say
from kernels import Kernel
from machine import CLIENT, SERVER, Machine
from messages import Expected, KernelLog

LINK_SECONDS = 20
# What tells our module from the in-tree one. In the shell's own words, because a process more is slow in a guest.
SAY_TAINT = 'read -r taint < /sys/module/rpcrdma/taint; echo "taint:$taint"'


@dataclass(frozen=True)
class Setup:
    """What a pair is made of."""

    name: str
    server_kernel: Kernel
    client_kernel: Kernel
    # Our module; None for the in-tree one on the client, too.
    module: Path | None
    server_memory: str = "1G"
    client_memory: str = "1G"


class Pair:
    """Both guests, up."""

    def __init__(self, setup: Setup, run: Path) -> None:
        self.setup = setup
        self.run = run
        self.machines: list[Machine] = []
        self._device = ""
        self.resources_before = ""
        try:
            self.server = self._start(SERVER, setup.server_kernel, setup.server_memory, True)
            self._await_link()
            self.client = self._start(CLIENT, setup.client_kernel, setup.client_memory, setup.module is None)
            if setup.module is not None:
                shutil.copy(setup.module, self.client.share / "rpcrdma.ko")
            self.server.ready()
            self.client.ready()
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
        processes = [(machine, machine.start(command)) for machine in self.machines]
        for machine, process in processes:
            result = machine.wait(process, seconds, command)
            if result.status != 0:
                raise say.Failure(f"{machine.role.name}: `{command}` ended with status {result.status}: "
                                  f"{(result.err or result.out).strip()}", log=machine.console)

    def load(self, device: str) -> None:
        """Have the RDMA devices made, the server's directory exported and the client's module in; prove the modules."""
        if device != self._device:
            if self._device:
                self.server.must("rpc.nfsd 0")
            self.both(f"/lab/rdma-device {device}")
            server = self.server.start("/lab/nfs-server")
            self._insert()
            result = self.server.wait(server, 120, "nfs-server")
            if result.status != 0:
                raise say.Failure(f"server: nfs-server ended with status {result.status}: {result.err.strip()}",
                                  log=self.server.console)
            self._device = device
        else:
            self._insert()
        self.prove_modules()

    def resources(self) -> str:
        """How many queue pairs, regions and other objects the client's RDMA device has."""
        return self.client.must("rdma resource show").strip()

    def _insert(self) -> None:
        self.resources_before = self.resources()
        self.client.must("/lab/insert-module" if self.setup.module is not None else "modprobe rpcrdma")

    def prove_modules(self) -> None:
        """Fail unless the client runs the module it is meant to run, and the server the in-tree one."""
        for machine in self.machines:
            self.prove(machine.role.name, machine.must(SAY_TAINT))

    def prove(self, name: str, said: str) -> None:
        """The same for one guest, from what it said to SAY_TAINT."""
        ours = name == CLIENT.name and self.setup.module is not None
        taint = re.search(r"taint:(\w*)", said)
        if taint is None or ("O" in taint[1]) != ours:
            raise say.Failure(f"{name}: does not run {'our' if ours else 'the in-tree'} rpcrdma: {said.strip()}")

    def unload(self) -> None:
        """Remove the client's module, which nothing may hold any more."""
        self.prove_modules()
        # A transport's last reference goes a moment after its mount.
        self.client.must("for try in $(seq 50); do rmmod rpcrdma 2>/tmp/rmmod && exit; sleep 0.2; done; "
                         "cat /tmp/rmmod >&2; exit 1")

    def tell_troubles(self, provoked: Sequence[Expected] = ()) -> int:
        """Print what the kernels said since the last call that they should not have said; how many lines it was."""
        with ThreadPoolExecutor() as pool:
            found = pool.map(lambda log: log.check(provoked), self._logs.values())
        troubles = [f"{name}: {line}" for name, lines in zip(self._logs, found) for line in lines]
        for trouble in troubles:
            say.line(f"  unexpected kernel message: {trouble}")
        return len(troubles)

    def must_be_quiet(self, provoked: Sequence[Expected] = ()) -> None:
        """Fail if there were such lines."""
        count = self.tell_troubles(provoked)
        if count:
            raise say.Failure(f"{count} unexpected kernel messages", log=self.client.console)

    def _start(self, role, kernel: Kernel, memory: str, in_tree: bool) -> Machine:
        machine = Machine(role, kernel, accel.choose(kernel), self.run, memory, in_tree)
        self.machines.append(machine)
        return machine

    def _await_link(self) -> None:
        """The client's end of the link connects once, so the server's has to listen first."""
        deadline = time.monotonic() + LINK_SECONDS
        while not (self.run / "link").exists():
            if time.monotonic() > deadline:
                raise say.Failure("server: QEMU does not start", log=self.run / "server.qemu")
            time.sleep(0.05)


@contextlib.contextmanager
def running(setup: Setup) -> Iterator[Pair]:
    """Two guests for the length of a block. Only one run has guests at a time: two processors carry two guests."""
    run = repository.BUILD / "run" / setup.name
    with cache.lock("machines", "has guests running"):
        shutil.rmtree(run, ignore_errors=True)
        run.mkdir(parents=True)
        with say.step(f"starting two guests (server {setup.server_kernel.flavour}, "
                      f"client {setup.client_kernel.flavour}; consoles in {run})"):
            pair = Pair(setup, run)
        try:
            yield pair
        finally:
            pair.stop()
