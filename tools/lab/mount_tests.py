"""The tests of one cell: one RDMA device, one NFS version, one module at each end. Each mounts for itself and leaves
nothing mounted."""

import contextlib
import functools
import hashlib
import re
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import capture
import repository
import say
import trace_events
from machine import Machine
from messages import Expected
from monitor import Monitor
from pair import SAY_TAINT, Pair

# The program of the guests that makes the files knows what is in them.
sys.path.append(str(repository.TESTS / "guest"))
import files  # noqa: E402

SMALL_SIZES = "0 1 1023 4095 4096 4097 65537 1048577"
ALL_SIZES = f"{SMALL_SIZES} {64 << 20}"
ODD_SIZE = 200_001
# Enough for a Reply that fits no inline message.
NAMES = 300
MOUNTS = 50
# Enough for a call and a reply that fit no inline message.
ACL_ENTRIES = 400
SET_ACL = f"setfacl -m $(seq -f 'u:%g:rwx' -s , 1001 {1000 + ACL_ENTRIES})"
LONG_SECONDS = 600
LOAD_SECONDS = 6
SILENT_SECONDS = 30
IS_MOUNTED = "grep -q ' /mnt ' /proc/mounts"
FAULTS, FAULT_INTERVAL, LEAST_RECONNECTS = 20, 15, 6
LOST = Expected(2 * FAULTS, re.compile(r"rpcrdma: (connection (to|from) \S+ lost: .*|\d+ callbacks suppressed)"),
                "the test breaks connections")
# Its process was killed, so a region was taken back that the server may still write into: the adapter refuses that, and
# the connection ends.
TERMINATED = Expected(10, re.compile(r"siw: got TERMINATE\. layer [01], type 1, code 0"), "no such region any more")
NOT_RESPONDING = Expected(20, re.compile(r"nfs: server \S+ (not responding, still trying|OK)"), "the server is silent")
# ERESTARTSYS: a killed process was giving back its delegation.
KILLED_IN_RECALL = Expected(10, re.compile(r"NFS: nfs4_handle_delegation_recall_error: unhandled error -512\."),
                            "its process was killed")
CANCELS = (LOST, TERMINATED, KILLED_IN_RECALL)
# Waits, no longer than a moment, until a group of processes is no more; fails if it stays.
GONE = "for try in $(seq 100); do pgrep -g {0} > /dev/null || exit 0; sleep 0.2; done; pgrep -g {0} -a >&2; exit 1"


@dataclass(frozen=True)
class Cell:
    """The guests, and what is mounted how."""

    guests: Pair
    device: str
    version: str
    # Whose module runs where.
    server_module: str
    client_module: str

    def client(self, command: str, seconds: float = 120) -> str:
        return self.guests.client.must(command, seconds)

    def server(self, command: str, seconds: float = 120) -> str:
        return self.guests.server.must(command, seconds)

    def load_modules(self) -> None:
        """Have everything in place for a mount, also where an earlier test has removed it."""
        self.guests.load(self.device, self.server_module, self.client_module)

    def mount_command(self, host: str = "192.0.2.1", option: str = "proto=rdma") -> str:
        if self.version == "3":
            # Without lockd, and without the MOUNT protocol over UDP.
            protocol = "tcp6" if "rdma6" in option else "tcp"
            return f"mount -t nfs -o vers=3,{option},port=20049,nolock,mountproto={protocol} {host}:/export /mnt"
        return f"mount -t nfs -o vers={self.version},{option},port=20049 {host}:/ /mnt"

    @contextlib.contextmanager
    def mounted(self, mount: str = "", unmount: str = "umount /mnt") -> Iterator[None]:
        """A mount for the length of a block, an empty directory /mnt/t on it, and the proof of whose module it is."""
        prove = self.guests.prove
        prove("server", self.server(f"rm -rf /export/t && mkdir -p -m 777 /export/t && {SAY_TAINT}"))
        prove("client", self.client(f"mkdir -p /mnt && {mount or self.mount_command()} && {SAY_TAINT}"))
        yield
        prove("server", self.server(SAY_TAINT))
        prove("client", self.client(f"{{ {unmount}; }} && {SAY_TAINT}"))

    def clear(self) -> bool:
        """After a failed test: bring the client back to no mount; False when that does not work."""
        try:
            result = self.guests.client.run("umount -f /mnt; ! mountpoint -q /mnt", 60)
        except say.Failure:
            return False
        return result.status == 0

    @contextlib.contextmanager
    def load(self) -> Iterator[None]:
        """Processes that write and read for the length of a block, then are killed in the middle of it."""
        # A session of their own, so that one kill reaches all of them, also those just forked.
        self.client("cd /mnt/t && { setsid /lab/files.py load load 12 > /tmp/load 2>&1 < /dev/null & "
                    "echo $! > /tmp/load.pid; }")
        try:
            yield
        finally:
            # The signal is only asked for here: each process ends when it sees it.
            self.client(f"read -r group < /tmp/load.pid; kill -9 -$group; {GONE.format('$group')}")

    @contextlib.contextmanager
    def silence(self) -> Iterator[None]:
        """A link that carries nothing one way, and so says nothing the other way, for the length of a block."""
        # Not a stopped guest: its full queue would hold up the other's packets, and rxe does not
        # expect one to outlive its queue pair. The debugging kernel has no netem.
        machine = next(machine for machine in self.guests.machines if machine.kernel.flavour == "stock")
        machine.must("tc qdisc replace dev eth0 root netem loss 100%")
        try:
            yield
        finally:
            machine.must("tc qdisc delete dev eth0 root")

    @property
    def debugged(self) -> list[Machine]:
        """The ends that run the debugging kernel."""
        return [machine for machine in self.guests.machines if machine.kernel.flavour == "debug"]

    def still_works(self) -> None:
        """Fail unless files can be written and read."""
        self.client(f"/lab/files.py make /mnt/t/after {SMALL_SIZES}", LONG_SECONDS)
        self.same("after")

    def connects(self) -> int:
        """How many connections the mount's transport has made so far."""
        return int(self.client("grep -m 1 'xprt:' /proc/self/mountstats").split()[4])

    def same(self, directory: str, mode: str = "") -> None:
        """Fail unless both ends read in `directory` what its files have to hold, the server by checksum.

        The client has to ask the server again for what it has cached.
        """
        sums = f"cd /export/t/{directory} && sha256sum *"
        process = self.guests.server.start(sums)
        self.client(f"sync; echo 3 > /proc/sys/vm/drop_caches; /lab/files.py check /mnt/t/{directory} {mode}",
                    LONG_SECONDS)
        result = self.guests.server.wait(process, LONG_SECONDS, sums)
        if result.status != 0:
            raise say.Failure(f"server: {sums}: {result.err.strip()}")
        for line in result.out.splitlines():
            found, name = line.split()
            if found != checksum(name):
                raise say.Failure(f"{directory}/{name}: the server has other bytes than it should")


@functools.cache
def checksum(name: str) -> str:
    """The SHA-256 sum of a test file, which follows from its name."""
    return hashlib.sha256(files.content(name, files.size_of(name))).hexdigest()


@dataclass(frozen=True)
class Test:
    """One named test."""

    name: str
    function: Callable[[Cell], None]
    # Kernel messages that it provokes.
    provokes: tuple[Expected, ...] = ()


def small_files(cell: Cell) -> None:
    """Files around the limits of pages and of the inline threshold, each way."""
    with cell.mounted():
        cell.client(f"/lab/files.py make /mnt/t/out {SMALL_SIZES}")
        cell.same("out")
        cell.server(f"/lab/files.py make /export/t/in {SMALL_SIZES}")
        cell.same("in", "--direct")


def buffered(cell: Cell) -> None:
    with cell.mounted():
        cell.client(f"/lab/files.py make /mnt/t/buffered {ALL_SIZES}", LONG_SECONDS)
        cell.same("buffered")


def direct(cell: Cell) -> None:
    with cell.mounted():
        cell.client(f"/lab/files.py make /mnt/t/direct --direct {ALL_SIZES}", LONG_SECONDS)
        cell.same("direct", "--direct")


def direct_odd(cell: Cell) -> None:
    """Memory and offsets that no page boundary helps with."""
    with cell.mounted():
        cell.client(f"/lab/files.py make /mnt/t/odd --direct --odd {SMALL_SIZES}", LONG_SECONDS)
        cell.same("odd", "--direct --odd")


def from_server(cell: Cell) -> None:
    """Read into memory, and from offsets, that no page boundary helps with."""
    with cell.mounted():
        cell.server(f"/lab/files.py make /export/t/in {SMALL_SIZES}", LONG_SECONDS)
        cell.same("in", "--odd")
        cell.same("in", "--direct --odd")


def symlinks(cell: Cell) -> None:
    """Targets too long for an inline message, made at either end and read at the other."""
    with cell.mounted():
        cell.client("/lab/files.py link /mnt/t/client")
        cell.server("/lab/files.py follow /export/t/client && /lab/files.py link /export/t/server")
        cell.client("/lab/files.py follow /mnt/t/server")


def directory(cell: Cell) -> None:
    """The names of 5,000 entries; asking for the attributes of each takes minutes on an emulated machine."""
    make = "mkdir /export/t/many && cd /export/t/many && seq -f 'entry-with-a-name-of-some-length-%06g' 5000 | xargs touch"
    names = "find {} -mindepth 1 -printf '%f\\n' | sort | sha256sum"
    with cell.mounted():
        cell.server(make)
        if cell.client(names.format("/mnt/t/many"), LONG_SECONDS) != cell.server(names.format("/export/t/many")):
            raise say.Failure("the client lists other names than the server has")


def large_acls(cell: Cell) -> None:
    """ACLs too long for an inline message, set at the server and read at the client, and back."""
    with cell.mounted():
        cell.server(f"touch /export/t/a /export/t/b && {SET_ACL} /export/t/a")
        count = int(cell.client("nfs4_getfacl /mnt/t/a | grep -c '^A::1[0-9]*[:@]'"))
        cell.client("nfs4_getfacl /mnt/t/a > /tmp/acl && nfs4_setfacl -S /tmp/acl /mnt/t/b")
        if count != ACL_ENTRIES:
            raise say.Failure(f"the client sees {count} of {ACL_ENTRIES} entries")
        there = int(cell.server("getfacl -n /export/t/b | grep -c '^user:1'"))
        if there != ACL_ENTRIES:
            raise say.Failure(f"the server got {there} of {ACL_ENTRIES} entries")


def workers(cell: Cell) -> None:
    """100 processes write, read back and compare at the same time."""
    with cell.mounted():
        cell.client("/lab/files.py workers /mnt/t/workers 100 60000", LONG_SECONDS)
        cell.same("workers")


def killed(cell: Cell) -> None:
    """Processes killed in the middle of their I/O; the mount goes on working."""
    with cell.mounted():
        with cell.load():
            time.sleep(LOAD_SECONDS)
        cell.still_works()


def forced(cell: Cell) -> None:
    """`umount -f` with a server that says nothing: what waits for it fails, and the mount can go."""
    with cell.mounted(unmount=f"if {IS_MOUNTED}; then umount /mnt; fi"), cell.load():
        time.sleep(LOAD_SECONDS)
        with cell.silence():
            time.sleep(LOAD_SECONDS)
            # Each one ends the RPCs that wait at that moment, and a process may begin another before it gives up.
            cell.client("read -r group < /tmp/load.pid; for try in $(seq 30); do pgrep -g $group > /dev/null || exit 0; "
                        "umount -f /mnt; sleep 1; done; exit 1", 180)
    with cell.mounted():
        cell.still_works()


def lazy(cell: Cell) -> None:
    """`umount -l` under load: the load goes on, and its end is the end of the mount."""
    with cell.mounted(unmount=f"! {IS_MOUNTED}"), cell.load():
        time.sleep(LOAD_SECONDS)
        cell.client("umount -l /mnt")
        time.sleep(LOAD_SECONDS)
        cell.client("kill -0 $(cat /tmp/load.pid)")


def disconnected(cell: Cell) -> None:
    """The kernel's fault injection breaks the connection again and again under load; no byte is wrong."""
    with cell.mounted():
        before = cell.connects()
        # Each end breaks connections of its own accord.
        for machine in cell.debugged:
            machine.must(f"cd /sys/kernel/debug/fail_sunrpc && echo 0 > verbose && echo 100 > probability && "
                         f"echo {FAULT_INTERVAL} > interval && echo {FAULTS} > times")
        try:
            cell.client("/lab/files.py workers /mnt/t/workers 24 200000", LONG_SECONDS)
        finally:
            for machine in cell.debugged:
                machine.must("echo 0 > /sys/kernel/debug/fail_sunrpc/times")
        cell.same("workers")
        reconnects = cell.connects() - before
        if reconnects < LEAST_RECONNECTS:
            raise say.Failure(f"only {reconnects} new connections; the faults did not reach the transport")


def silent(cell: Cell) -> None:
    """The server says nothing for longer than a queue pair retries; the mount recovers by itself."""
    with cell.mounted():
        before = cell.connects()
        with cell.load():
            time.sleep(LOAD_SECONDS)
            with cell.silence():
                time.sleep(SILENT_SECONDS)
            cell.still_works()
        # That of siw is over TCP, which is more patient.
        if cell.device == "rxe" and cell.connects() == before:
            raise say.Failure("the connection outlived the silence")


def remount(cell: Cell) -> None:
    """Mounted and unmounted many times, each time used."""
    with cell.mounted():
        pass
    cell.client(f"for n in $(seq {MOUNTS}); do {cell.mount_command()} && echo $n > /mnt/t/n && umount /mnt || exit 1; "
                "done", LONG_SECONDS)
    if cell.server("cat /export/t/n").strip() != str(MOUNTS):
        raise say.Failure("the last mount's write is not on the server")


def over_ipv6(cell: Cell) -> None:
    with cell.mounted(cell.mount_command("[fd00:2::1]", "proto=rdma6")):
        cell.client(f"/lab/files.py make /mnt/t/six {SMALL_SIZES}")
        cell.same("six")


def forms(cell: Cell) -> None:
    """Every form of message is in a capture, and tshark finds none malformed."""
    path = cell.guests.run / f"{cell.device}-{cell.version}.pcap"
    with Monitor(cell.guests.server.directory / "monitor") as monitor, monitor.capture(path), cell.mounted():
        cell.client(f"/lab/files.py make /mnt/t/out 100 5000 {ODD_SIZE}")
        # Past the page cache, which would read whole pages.
        cell.same("out", "--direct")
        # A long call that has nothing to reduce, and a long reply.
        cell.server(f"touch /export/t/a /export/t/b && {SET_ACL} /export/t/a")
        cell.client("nfs4_getfacl /mnt/t/a > /tmp/acl && nfs4_setfacl -S /tmp/acl /mnt/t/b")
        cell.client("ls -l /mnt/t/out")
    capture.judge(path, ODD_SIZE)


def traced(cell: Cell) -> None:
    """The server's trace events are those of the documentation; they fire, and agree with each other."""
    server = cell.guests.server
    trace_events.must_be_those_documented(server)
    with trace_events.recorded(server) as trace, cell.mounted():
        cell.client(f"/lab/files.py make /mnt/t/out --direct {ODD_SIZE}")
        cell.same("out", "--direct")
        cell.server(f"mkdir /export/t/many && cd /export/t/many && seq -f 'name-%0100g' {NAMES} | xargs touch")
        cell.client("ls /mnt/t/many")
    trace_events.judge(trace, ODD_SIZE)


def statistics(cell: Cell) -> None:
    """The line that nfs-utils reads: the word rdma and 27 numbers."""
    with cell.mounted():
        cell.client("/lab/files.py make /mnt/t/some 100000")
        line = cell.client("grep 'xprt:' /proc/self/mountstats").split()
        if line[:2] != ["xprt:", "rdma"] or len(line) != 29 or not all(word.isdigit() for word in line[2:]):
            raise say.Failure(f"mountstats has: {' '.join(line)}")


def callbacks(cell: Cell) -> None:
    """The server's probe of the callback channel was answered over the mount's own connection."""
    with cell.mounted():
        cell.server("for try in $(seq 50); do grep -qx 'callback state: UP' /proc/fs/nfsd/clients/*/info && exit 0; "
                    "sleep 0.2; done; grep -h callback /proc/fs/nfsd/clients/*/info >&2; exit 1")


def removed(cell: Cell) -> None:
    """rmmod succeeds at both ends after the last umount, and no object of the RDMA devices stays behind."""
    cell.guests.unload()
    for machine in cell.guests.machines:
        left, before = cell.guests.resources(machine), cell.guests.resources_before[machine.role.name]
        if left != before:
            raise say.Failure(f"RDMA objects on the {machine.role.name}: {left} after, {before} before")


def loaded_by_mount(cell: Cell) -> None:
    """`mount -o rdma` has modprobe load the module where `make install` and depmod have put it."""
    cell.load_modules()
    cell.guests.unload_client()
    cell.client("release=$(uname -r) && mkdir -p /tmp/modules && cp -a /lib/modules/$release /tmp/modules/ && "
                f"install -D -m 644 -t /tmp/modules/$release/updates /lab/{cell.client_module}/rpcrdma.ko && "
                "mount --bind /tmp/modules /lib/modules && depmod")
    try:
        cell.guests.expect_module(cell.guests.client, cell.client_module)
        with cell.mounted(cell.mount_command(option="rdma")):
            cell.client("/lab/files.py make /mnt/t/some 100000")
            cell.same("some")
        cell.guests.unload()
    finally:
        cell.client("umount /lib/modules && rm -r /tmp/modules")


def no_leak(cell: Cell) -> None:
    """After rmmod nothing is left that nobody points to. Two looks, because a pointer can be in a register."""
    for machine in cell.debugged:
        leaks = machine.must("echo scan > /sys/kernel/debug/kmemleak; sleep 6; echo scan > /sys/kernel/debug/kmemleak; "
                             "cat /sys/kernel/debug/kmemleak", LONG_SECONDS)
        if leaks.strip():
            raise say.Failure(f"kmemleak on the {machine.role.name}: {leaks[:3000]}")


SMALL = Test("small files each way", small_files)
LINKS = Test("long symlinks", symlinks)
# What is hard on connections, memory and life times.
HARD = [Test("buffered, 0 bytes to 64 MB", buffered), Test("O_DIRECT, aligned", direct),
        Test("O_DIRECT, not aligned", direct_odd), Test("100 readers and writers", workers),
        Test("kill -9 under load", killed, CANCELS),
        Test("umount -f, silent server", forced, (*CANCELS, NOT_RESPONDING)),
        Test("umount -l under load", lazy, CANCELS),
        Test("connection broken under load", disconnected, (LOST,)),
        Test("server silent for a while", silent, (*CANCELS, NOT_RESPONDING)), Test(f"{MOUNTS} mounts", remount)]
CALLBACKS = Test("callback channel", callbacks)
REMOVED = Test("module removed, nothing left", removed)
NO_LEAK = Test("no memory leaked", no_leak)

SHORT = [SMALL, LINKS]
SMOKE = {"3": SHORT, "4.0": SHORT, "4.1": [*SHORT, CALLBACKS], "4.2": [*SHORT, CALLBACKS]}
# Of all that the versions have in common.
COMMON = [Test("written by the server", from_server), Test("directory of 5,000", directory), Test("over IPv6", over_ipv6),
          Test("mountstats", statistics), Test("trace events", traced), *HARD, REMOVED,
          Test("loaded by mount", loaded_by_mount), NO_LEAK]
# nfsd cannot encode an ACL of more than a page for NFS 3.
FULL = {"3": [*SMOKE["3"], *COMMON],
        "4.2": [*SMOKE["4.2"], Test("every form in a capture", forms), Test("large ACLs", large_acls), *COMMON]}
SOAK = [*HARD, REMOVED, NO_LEAK]
SOAK_VERSION = "4.2"
