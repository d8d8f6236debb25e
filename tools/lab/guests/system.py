"""A machine as people have it: Debian with systemd on a disk that it writes to, which starts again."""

import contextlib
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import cache
import progress
from guests import accel, kernels, roots, secure_boot, tsc
from guests.agent import Agent, Result
from guests.arch import AMD64
from guests.clock import Clock, waits_of_child
from guests.monitor import Monitor

# What it has beside what the kernel's package brings along.
PACKAGES = ("systemd-sysv udev dbus initramfs-tools kmod qemu-guest-agent iproute2 netbase nfs-common nfs-kernel-server rdma-core "
            "apt-utils python3 openssh-client").split()
DISK, DISK_MEGABYTES = "disk.img", 8000
ARGUMENTS = ["root=/dev/vda", "rw", f"console={AMD64.console}"]
BOOT_SECONDS, OFF_SECONDS = 600, 300
# The directory of the host is there, and all else that is started; whatever failed.
STARTED = "test -e /lab/here && { systemctl is-system-running --wait > /dev/null || systemctl is-system-running | grep -q degraded; }"
SHARE = "/lab"
# The agent begins with its port; nobody logs in.
UNIT = f"""[Unit]
Description=directory of the host
Before=qemu-guest-agent.service
[Mount]
What=lab
Where={SHARE}
Type=9p
Options=trans=virtio,version=9p2000.L
[Install]
WantedBy=multi-user.target
"""


# An RDMA device on a link of the machine's own; nfsd and a mount, as an administrator has them.
SERVES_ITSELF = """cat > /etc/systemd/system/rxe.service <<'E'
[Unit]
Description=software RDMA device
Before=nfs-server.service remote-fs-pre.target
Wants=remote-fs-pre.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/sbin/ip link add dummy0 mtu 4200 type dummy
ExecStart=/usr/sbin/ip addr add 192.0.2.1/24 dev dummy0
ExecStart=/usr/sbin/ip link set dummy0 up
ExecStart=/usr/bin/rdma link add rxe0 type rxe netdev dummy0
[Install]
WantedBy=multi-user.target
E
systemctl enable rxe nfs-server && mkdir -p /etc/nfs.conf.d && cat > /etc/nfs.conf.d/rdma.conf <<'E' &&
[nfsd]
rdma=y
rdma-port=20049
grace-time=10
lease-time=10
E
echo '/srv *(rw,no_root_squash,insecure,fsid=0,no_subtree_check)' > /etc/exports && chmod 777 /srv &&
echo '192.0.2.1:/ /mnt nfs vers=4.2,proto=rdma,_netdev,x-systemd.automount,x-systemd.requires=nfs-server.service 0 0' >> /etc/fstab"""


@dataclass(frozen=True)
class Installed:
    """What a machine has on its disk before it is switched on for the first time."""

    name: str = "system"
    # Packages beside those that all have.
    more: tuple[str, ...] = ()


def root(installed: Installed = Installed()) -> roots.Root:
    """Its root file system, with the stock kernel."""
    options = [f"--setup-hook={roots.BACKPORTS}", "--skip=cleanup/apt/lists",
               f"--customize-hook=mkdir $1{SHARE}; cat > $1/etc/systemd/system/lab.mount <<'E'\n{UNIT}E",
               "--customize-hook=chroot $1 systemctl enable lab.mount qemu-guest-agent",
               "--customize-hook=echo machine > $1/etc/hostname"]
    kernel = [f"linux-base/{roots.SUITE}-backports", f"linux-image-{kernels.stock().release}"]
    return roots.made(installed.name, [*PACKAGES, *kernel, *installed.more], options)


@contextlib.contextmanager
def just_installed(directory: Path, installed: Installed = Installed()) -> Iterator["System"]:
    """A machine that nobody has done anything with, for the length of a block."""
    base = root(installed)
    recipe = f"{base.path.name} {DISK_MEGABYTES}"
    disk = cache.entry(f"{installed.name}-disk", recipe, lambda path: _make_disk(base, path / DISK)) / DISK
    directory.mkdir(parents=True)
    subprocess.run(["cp", "--sparse=always", disk, directory / DISK], check=True)
    with _running(directory, base) as machine:
        yield machine


@contextlib.contextmanager
def from_root(directory: Path, base: roots.Root) -> Iterator["System"]:
    """A machine with what is in this root, to which all of PACKAGES belong."""
    directory.mkdir(parents=True)
    _make_disk(base, directory / DISK)
    with _running(directory, base) as machine:
        yield machine


@contextlib.contextmanager
def _running(directory: Path, base: roots.Root) -> Iterator["System"]:
    machine = System(directory, base)
    try:
        yield machine
    finally:
        machine.stop()


def _make_disk(base: roots.Root, image: Path) -> None:
    log = cache.logs() / "system-disk.log"
    with progress.step("making the disk of a machine", log):
        argv = ["mke2fs", "-q", "-t", "ext4", "-d", str(base.path), str(image), f"{DISK_MEGABYTES}M"]
        roots.tool_root().run(argv, log, "the machine's disk could not be made")


class System:
    """A running machine, alone."""

    def __init__(self, directory: Path, base: roots.Root) -> None:
        """One that has a disk in this directory, and the kernels of that root."""
        self.directory = directory
        self.share = directory / "share"
        self.share.mkdir()
        (self.share / "here").touch()
        self.kernel = kernels.stock().release
        self._boot = base.path / "boot"
        self._trusted: Path | None = None
        self._clock = Clock()
        self._agent: Agent | None = None
        self.start()

    def offer(self, *files: Path) -> None:
        """Put files where the machine finds them, in /lab."""
        for file in files:
            shutil.copy(file, self.share)

    @property
    def console(self) -> Path:
        return self.directory / "console"

    def start(self) -> None:
        """Switch it on, and wait until it takes commands."""
        self.console.unlink(missing_ok=True)
        with (self.directory / "qemu").open("ab") as log:
            command = ["setpriv", "--pdeathsig", "KILL", *roots.tool_root().command(self._qemu(), directory=self.directory)]
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        self._process = process
        self._clock.add(lambda: waits_of_child(process.pid))
        deadline = self._clock.now() + BOOT_SECONDS
        while self._clock.now() < deadline and self._process.poll() is None:
            if self._agent is None and (self.directory / "agent").exists():
                self._agent = Agent(self.directory / "agent", "machine", self.share, self._clock)
            if self._agent is not None and self._agent.alive() and self.run(STARTED, BOOT_SECONDS).status == 0:
                return
            time.sleep(0.5)
        self.stop()
        raise progress.Failure("the machine does not start", log=self.console)

    def restart(self, kernel: str | None = None, trusted: Path | None = None) -> None:
        """Have it end in good order, and start it again; if so told with another of its kernels, or with Secure Boot, trusting
        a certificate."""
        self.kernel = kernel or self.kernel
        self._trusted = trusted
        # It may be gone before it could say that it goes.
        self._running_agent().start("systemctl poweroff")
        deadline = self._clock.now() + OFF_SECONDS
        while self._process.poll() is None:
            if self._clock.now() > deadline:
                raise progress.Failure("the machine does not end", log=self.console)
            time.sleep(0.2)
        self.stop()
        self.start()

    def stop(self) -> None:
        """End it at once."""
        if self._agent is not None:
            self._agent.close()
            self._agent = None
        self._process.kill()
        self._process.wait()
        for name in ("agent", "monitor"):
            (self.directory / name).unlink(missing_ok=True)

    def dump(self, name: str) -> Path:
        """Write down all of its memory, which it goes on to use."""
        with Monitor(self.directory / "monitor") as monitor:
            monitor.dump(name)
        return self.directory / name

    def run(self, command: str, seconds: float = 300) -> Result:
        agent = self._running_agent()
        return agent.wait(agent.start(command), seconds, command)

    def must(self, command: str, seconds: float = 300) -> str:
        """Run a command that has to succeed; what it printed."""
        result = self.run(command, seconds)
        if result.status != 0:
            said = (result.err or result.out).strip()[-2000:]
            raise progress.Failure(f"machine: `{command}` ended with status {result.status}: {said}", log=self.console)
        return result.out

    def _running_agent(self) -> Agent:
        if self._agent is None:
            raise progress.Failure("the machine does not run", log=self.console)
        return self._agent

    def _qemu(self) -> list[str]:
        way = accel.choose(kernels.stock())
        processor = "host" if way == "kvm" else AMD64.processor
        return [AMD64.qemu, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
                "-accel", way, "-cpu", processor, "-smp", "2", "-m", "2G",
                "-chardev", "file,id=console,path=console", "-serial", "chardev:console",
                "-drive", f"if=none,id=disk,format=raw,cache=unsafe,file.locking=off,file={DISK}",
                "-device", "virtio-blk-pci,drive=disk", *self._firmware(way), "-device", "virtio-rng-pci",
                "-fsdev", "local,id=lab,security_model=none,path=share", "-device", "virtio-9p-pci,fsdev=lab,mount_tag=lab",
                "-device", "virtio-serial-pci", "-chardev", "socket,id=agent,server=on,wait=off,path=agent",
                "-device", "virtserialport,chardev=agent,name=org.qemu.guest_agent.0",
                # Its kernel says there what a dump is read by.
                "-device", "vmcoreinfo", "-chardev", "socket,id=monitor,server=on,wait=off,path=monitor", "-qmp", "chardev:monitor"]

    def _firmware(self, way: str) -> list[str]:
        """What starts the kernel."""
        arguments = " ".join([*ARGUMENTS, *([] if way == "kvm" else [*AMD64.arguments, tsc.argument()])])
        kernel, initrd = (self._boot / f"{name}-{self.kernel}" for name in ("vmlinuz", "initrd.img"))
        if self._trusted is not None:
            return secure_boot.machine(self.directory, self._trusted, kernel, initrd, arguments)
        return ["-M", AMD64.machine, "-kernel", str(kernel), "-initrd", str(initrd), "-append", arguments]
