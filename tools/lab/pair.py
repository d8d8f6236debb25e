"""Two guests on a private link: an NFS server with the in-tree module, and a client with the module under test."""

import contextlib
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import accel
import cache
import repository
import say
from kernels import Kernel
from machine import CLIENT, SERVER, Machine
from messages import KernelLog

LINK_SECONDS = 20


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
        """Make the RDMA devices, insert the client's module, export the server's directory, and prove the modules."""
        self.both(f"/lab/rdma-device {device}")
        server = self.server.start("modprobe rpcrdma && /lab/nfs-server")
        if self.setup.module is not None:
            self.client.must("/lab/insert-module")
        else:
            self.client.must("modprobe rpcrdma")
        result = self.server.wait(server, 120, "nfs-server")
        if result.status != 0:
            raise say.Failure(f"server: nfs-server ended with status {result.status}: {result.err.strip()}",
                              log=self.server.console)
        self.prove_modules()

    def prove_modules(self) -> None:
        """Fail unless the client runs the module it is meant to run, and the server the in-tree one."""
        for machine, ours in ((self.server, False), (self.client, self.setup.module is not None)):
            taint = machine.must("cat /sys/module/rpcrdma/taint").strip()
            if ("O" in taint) != ours:
                raise say.Failure(f"{machine.role.name}: runs {'our' if 'O' in taint else 'the in-tree'} rpcrdma "
                                  f"(taint '{taint}') instead of {'ours' if ours else 'the in-tree one'}")

    def unload(self) -> None:
        """Remove the client's module, which nothing may hold any more."""
        self.prove_modules()
        # A transport's last reference goes a moment after its mount.
        self.client.must("for try in $(seq 50); do rmmod rpcrdma 2>/tmp/rmmod && exit; sleep 0.2; done; "
                         "cat /tmp/rmmod >&2; exit 1")

    def log_troubles(self) -> list[str]:
        """What the kernels said since the last call that they should not have said."""
        return [f"{name}: {line}" for name, log in self._logs.items() for line in log.check()]

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
