"""One cell of the tests: two guests, one RDMA device, one NFS version, one module at each end."""

import contextlib
import functools
import hashlib
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import progress
import repository
from guests.devices import Device
from guests.machine import CLIENT, SERVER, Machine
from guests.monitor import Monitor
from guests.pair import SAY_TAINT, Pair
from judges import referee
from totals import TOTALS, Kind

# The program that makes the files knows what is in them.
sys.path.append(str(repository.ROOT / "tools/on-device"))
import files  # noqa: E402

# Nothing, inline, more than a page, more than one READ or WRITE moves.
FEW_SIZES = "0 1023 4097 300001"
LONG_SECONDS = 600
# Time from one look at a count to the next.
LOOK_SECONDS = 1
# The last connection of a client that has just gone may still be on its way out.
SETTLE_SECONDS = 60
# Processes of a load.
LOAD = 8
PORT, OTHER_PORT = 20049, 20050
# The flavor that is no security.
NO_SECURITY = "sys"
# The server's own view of a directory of test files, and of one of the mount's.
SUMS_OF = "cd {} && sha256sum *"
SUMS = SUMS_OF.format("/export/t/{}")
# A directory of so many names, and what it lists; it asks for nothing else, where find would for the type of each, which NFS
# 3 does not say by itself.
MANY = "mkdir many && cd many && seq -f 'entry-with-a-name-of-some-length-%06g' {} | xargs touch"
NAMES = "ls -A {} | sha256sum"
# The transports of a mount, a line each: name, port, and so on; the fifth word counts connections, the eighth Calls.
TRANSPORTS = "grep 'xprt:.*rdma' /proc/self/mountstats"
CONNECTS, SENDS = 4, 7
# What a mount has done, and how many of its transports are connected.
DONE = (f"{{ {TRANSPORTS}; cat /sys/kernel/sunrpc/xprt-switches/*/xprt-*-rdma/xprt_state 2> /dev/null | "
        "grep -w CONNECTED; true; }")
# A client may have to come back first, and get its state again, and nfsd to end its grace period.
FURTHER_SECONDS = 120
# How much a load has compared.
VERIFIED = "awk '{n += $1} END {printf \"%.0f\", n}' /tmp/load.verified"
# Waits, no longer than a moment, until a group of processes is no more; fails if it stays.
GONE = "for try in $(seq 250); do pgrep -g {0} > /dev/null || exit 0; sleep 0.2; done; pgrep -g {0} -a >&2; exit 1"


@dataclass(frozen=True)
class Cell:
    """The guests, and what is mounted how."""

    guests: Pair
    rdma: Device
    # None where nothing is to be mounted.
    version: str | None
    # Whose module runs where.
    server_module: str
    client_module: str
    # The flavor of sec=.
    security: str
    # The highest version of RPC-over-RDMA that our modules speak.
    protocol: int = 1

    @property
    def device(self) -> str:
        """The kind of its RDMA device."""
        return self.rdma.kind

    @property
    def driver(self) -> str:
        """The name of that kind's module."""
        return {"rxe": "rdma_rxe"}.get(self.device, self.device)

    @property
    def invalidates(self) -> bool:
        """Whether the server makes keys of the client's invalid: none of ours asks for that, or does it, on iWARP."""
        return self.device != "siw"

    def client(self, command: str, seconds: float = LONG_SECONDS) -> str:
        return self.guests.client.must(command, seconds)

    def server(self, command: str, seconds: float = LONG_SECONDS) -> str:
        return self.guests.server.must(command, seconds)

    def load_modules(self) -> None:
        """Have everything in place for a mount, also where an earlier test has removed it."""
        self.guests.load(self.rdma, self.server_module, self.client_module)
        self.guests.speak(self.protocol, self.protocol)

    def mount_command(self, host: str = "server", option: str = "proto=rdma", security: str = "",
                      port: int = PORT) -> str:
        flavor = security or self.security
        # Without a word it is sec=sys, and the server is asked.
        option += f",port={port}" + (f",sec={flavor}" if flavor != NO_SECURITY else "")
        if self.version == "3":
            # Without lockd, and without the MOUNT protocol over UDP.
            protocol = "tcp6" if "rdma6" in option else "tcp"
            return f"mount -t nfs -o vers=3,{option},nolock,mountproto={protocol} {host}:/export /mnt"
        return f"mount -t nfs -o vers={self.version},{option} {host}:/ /mnt"

    def mount_call(self) -> str:
        """What the system call wants to be told, for mounts.py."""
        options = f"vers={self.version},proto=rdma,port={PORT},sec={self.security},addr={SERVER.address4}"
        if self.version == "3":
            return f"server:/export {options},nolock,mountproto=tcp,mountvers=3"
        return f"server:/ {options},clientaddr={CLIENT.address4}"

    @contextlib.contextmanager
    def mounted(self, mount: str = "", unmount: str = "umount /mnt", prepare: str = "true",
                seconds: int = LONG_SECONDS) -> Iterator[None]:
        """A mount for the length of a block, an empty directory /mnt/t on it, and the proof of whose module it is.

        The server does what `prepare` says beforehand, in that directory. Mounting and unmounting may take so long.
        """
        self._prove_both(f"rm -rf /export/t && mkdir -m 777 /export/t && cd /export/t && {{ {prepare}; }}",
                         f"mkdir -p /mnt && {mount or self.mount_command()}", seconds)
        yield
        count_transports(self._prove_both("true", f"{DONE} && {{ {unmount}; }}", seconds))

    def _prove_both(self, server: str, client: str, seconds: int) -> str:
        """Run a command in each guest, which then says whose module it has. What the client printed."""
        both = self.guests.together(f"{server} && {SAY_TAINT}", f"{client} && {SAY_TAINT}", seconds)
        for name, said in zip(("server", "client"), both):
            self.guests.prove(name, said)
        return both[1]

    def clear(self) -> bool:
        """After a failed test: set everything up anew, without a mount; False when that does not work."""
        self.guests.doubt()
        try:
            self.client("umount -f -a -t nfs,nfs4; ! mountpoint -q /mnt", LONG_SECONDS)
            self.load_modules()
        except progress.Failure:
            return False
        return True

    @contextlib.contextmanager
    def load(self, ends: bool = False) -> Iterator[None]:
        """Processes that write and read for the length of a block, then are killed in the middle of it.

        Fails if one of them has ended by then, unless it is meant to.
        """
        # A session of their own, so that one kill reaches all of them, also those just forked.
        self.client(f"cd /mnt/t && rm -f /tmp/load.ready && {{ setsid /lab/files.py load load {LOAD} > /tmp/load 2>&1 "
                    "< /dev/null & echo $! > /tmp/load.pid; }")
        # The signal is only asked for here: each process ends when it sees it.
        end = f"read -r group < /tmp/load.pid; kill -9 -$group; ({GONE.format('$group')}) && {VERIFIED}"
        with progress.undoing(lambda: TOTALS.add(Kind.BYTES, int(self.client(end)))):
            # The parent makes directories, for which it waits for the server, before it forks; then one has to have
            # compared something.
            self.client("for try in $(seq 1500); do test -e /tmp/load.ready && grep -q '[1-9]' /tmp/load.verified && exit 0; "
                        "sleep 0.2; done; cat /tmp/load >&2; exit 1", LONG_SECONDS)
            yield
            if not ends:
                # One that ends has said why, or its parent does.
                self.client("read -r group < /tmp/load.pid; kill -0 $group && ! test -s /tmp/load || "
                            "{ cat /tmp/load >&2; exit 1; }")

    def gets_further(self) -> None:
        """Wait until the load has compared something more."""
        self.client(f"before=$({VERIFIED}); for try in $(seq {5 * FURTHER_SECONDS}); do test $({VERIFIED}) -gt $before && "
                    "exit 0; sleep 0.2; done; echo 'the load gets no further' >&2; exit 1", LONG_SECONDS)

    @contextlib.contextmanager
    def silence(self) -> Iterator[None]:
        """A link that carries nothing one way, and so says nothing the other way, for the length of a block."""
        # Not a stopped guest: its full queue would hold up the other's packets, and rxe does not
        # expect one to outlive its queue pair. The debugging kernel has no netem.
        machine = next(machine for machine in self.guests.machines if machine.kernel.flavour == "stock")
        machine.must("tc qdisc replace dev eth0 root netem loss 100%")
        with progress.undoing(lambda: machine.must("tc qdisc delete dev eth0 root")):
            yield

    @contextlib.contextmanager
    def broken(self, machine: Machine, interval: int, times: int = -1) -> Iterator[None]:
        """Connections of one end that the kernel's fault injection breaks, each time `interval` RPCs have passed, for the
        length of a block or so many times."""
        directory = "cd /sys/kernel/debug/fail_sunrpc"
        with progress.undoing(lambda: machine.must(f"{directory} && echo 0 > times")):
            machine.must(f"{directory} && echo 0 > verbose && echo 100 > probability && echo {interval} > interval && "
                         f"echo {times} > times")
            yield

    @contextlib.contextmanager
    def captured(self) -> Iterator[Path]:
        """A capture of the link for the length of a block; where it is of version 2, the referee finds nothing wrong in it."""
        path = self.guests.run / f"{self.device}-{self.version}-{self.security}-{self.protocol}.pcap"
        with Monitor(self.guests.server.directory / "monitor") as monitor, monitor.capture(path):
            yield path
        if self.protocol == 2:
            referee.text_of(path, self.guests.counted_before)

    @property
    def debugged(self) -> list[Machine]:
        """The ends that run a kernel of our own, with debugging options."""
        return [machine for machine in self.guests.machines if machine.kernel.flavour != "stock"]

    def still_works(self) -> None:
        """Fail unless files can be written and read."""
        self.written("after", FEW_SIZES)

    @contextlib.contextmanager
    def tunable(self, name: str, value: int) -> Iterator[None]:
        """A value of one of the client's tunables, for the length of a block."""
        path = f"/proc/sys/sunrpc/{name}"
        usual = self.client(f"cat {path}").strip()
        with progress.undoing(lambda: self.client(f"echo {usual} > {path}")):
            self.client(f"echo {value} > {path}")
            yield

    def counter(self, number: int) -> int:
        """One of the mount's counters in mountstats, by its number in the user guide."""
        return int(self.client("grep -m 1 'xprt:.*rdma' /proc/self/mountstats").split()[1 + number])

    def connects(self) -> int:
        """How many connections the mount's transport has made so far."""
        return int(self.client("grep -m 1 'xprt:' /proc/self/mountstats").split()[4])

    def await_connects(self, count: int, seconds: float) -> None:
        """Fail unless the mount's transport will have made so many connections in that time."""
        deadline = self.guests.clock.now() + seconds
        while (made := self.connects()) < count:
            if self.guests.clock.now() > deadline:
                raise progress.Failure(f"only {made} of {count} connections were made")
            time.sleep(LOOK_SECONDS)

    def settled(self) -> None:
        """Wait until the server has no connection any more; fails if it keeps one."""
        deadline = self.guests.clock.now() + SETTLE_SECONDS
        look = f"test -e /sys/class/infiniband/{self.device}0 && rdma resource show qp"
        while "type RC" in (found := self.server(look)):
            if self.guests.clock.now() > deadline:
                raise progress.Failure(f"the server still has connections: {found.strip()}")
            time.sleep(LOOK_SECONDS)

    def same(self, directory: str, mode: str = "") -> None:
        """Fail unless both ends read in `directory` what its files have to hold, the server by checksum.

        The client has to ask the server again for what it has cached.
        """
        compared = self.judge(directory, self.guests.together(
            SUMS.format(directory), f"/lab/files.py forget then check /mnt/t/{directory} {mode}", LONG_SECONDS)[0])
        TOTALS.add(Kind.BYTES, compared)

    def written(self, directory: str, sizes: str, mode: str = "") -> None:
        """Write files of these sizes, and fail unless both ends read from them what was written."""
        path = f"/mnt/t/{directory} {mode}"
        self.client(f"/lab/files.py make {path} {sizes} then forget then check {path}", LONG_SECONDS)
        TOTALS.add(Kind.BYTES, self.judge(directory, self.server(SUMS.format(directory), LONG_SECONDS)))

    def lists_the_same(self, seconds: float = LONG_SECONDS) -> None:
        """Fail unless both ends list the same names in the directory of MANY."""
        there, here = self.guests.together(NAMES.format("/export/t/many"), NAMES.format("/mnt/t/many"), seconds)
        if here != there:
            raise progress.Failure("the client lists other names than the server has")

    @staticmethod
    def judge(directory: str, sums: str) -> int:
        """Fail unless the server's checksums are those of the files' names; how many bytes were compared."""
        compared = 0
        for line in sums.splitlines():
            found, name = line.split()
            if found != checksum(name):
                raise progress.Failure(f"{directory}/{name}: the server has other bytes than it should")
            compared += files.size_of(name)
        TOTALS.add(Kind.BYTES, compared)
        return compared


def count_transports(said: str) -> None:
    """Add to the tally what DONE says of a mount."""
    lines = said.splitlines()
    transports = [line.split() for line in lines if line.lstrip().startswith("xprt:")]
    made, sent = (sum(int(words[column]) for words in transports) for column in (CONNECTS, SENDS))
    up = sum("CONNECTED" in line for line in lines)
    TOTALS.add(Kind.RPCS, sent)
    TOTALS.add(Kind.DISCONNECTS, max(0, made - up))
    TOTALS.add(Kind.RECONNECTS, max(0, made - len(transports)))


@functools.cache
def checksum(name: str) -> str:
    """The SHA-256 sum of a test file, which follows from its name."""
    return hashlib.sha256(files.content(name, files.size_of(name))).hexdigest()
