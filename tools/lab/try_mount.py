"""`make try`: the shortest way to a mount, for the loop of a developer."""

import contextlib

import progress
import settings
from guests import arch, devices, kernels, module, pair
from guests.kernels import Kernel
from guests.monitor import Monitor
from judges import messages, referee

MOUNT = "mkdir -p /mnt && mount -t nfs -o vers={version},proto=rdma,port=20049{more} 192.0.2.1:{path} /mnt"
# NFS 3: without lockd, and without the MOUNT protocol over UDP.
V3 = {"more": ",nolock,mountproto=tcp", "path": "/export"}
COPY_OUT = "dd if=/dev/urandom of=/tmp/out bs=1M count=8 status=none && cp /tmp/out /mnt/out && sync /mnt/out"
CAPTURE = "try.pcap"
# A mount and a file of 8 MiB each way make more.
LEAST_MESSAGES = 50
COPY_IN = "dd if=/dev/urandom of=/export/in bs=1M count=8 status=none"


def run() -> int:
    """Build, boot two guests, mount, copy a file each way, compare, unmount, remove the modules, read the logs."""
    client, server = (settings.choice(end, (pair.OURS, pair.IN_TREE)) for end in ("CLIENT", "SERVER"))
    device = settings.choice("DEVICE", devices.NAMES)
    version = settings.choice("VERS", ("4.2", "4.1", "4.0", "3"))
    flavour = settings.choice("KERNEL", ("stock", "debug"))
    return _try(kernels.by_name(flavour, arch.chosen()), server, client, device, version, settings.protocol())


def _try(kernel: Kernel, server: str, client: str, device: str, version: str, protocol: int) -> int:
    # The debugging kernel is for our module.
    ends = [pair.End(kernel, module.build(kernel)) if whose == pair.OURS else pair.End(kernels.stock(kernel.arch), None)
            for whose in (server, client)]
    speaks_2 = protocol == 2 and server == client == pair.OURS
    with pair.alone(), pair.running(pair.Setup("try", *ends)) as guests:
        with progress.step(f"setting up {device}, nfsd and the modules (server: {server}, client: {client})"):
            guests.load(devices.named(device), server, client)
            guests.speak(protocol, protocol)
        with contextlib.ExitStack() as stack:
            if speaks_2:
                monitor = stack.enter_context(Monitor(guests.server.directory / "monitor"))
                stack.enter_context(monitor.capture(guests.run / CAPTURE))
            with progress.step(f"mounting with vers={version},proto=rdma"):
                guests.client.must(mount(version))
                progress.line(f"  {guests.client.must('grep /mnt /proc/mounts').strip()}")
            with progress.step("copying 8 MiB each way and comparing checksums at both ends"):
                copy(guests)
            with progress.step("unmounting"):
                guests.client.must("umount /mnt")
        if speaks_2:
            with progress.step("judging the messages of version 2"):
                referee.judge(guests.run / CAPTURE, LEAST_MESSAGES)
        with progress.step("removing the module"):
            guests.unload()
        guests.must_be_quiet(messages.of_device(devices.named(device).kind))
    progress.line("PASS")
    return 0


def mount(version: str) -> str:
    """The command that mounts."""
    more = V3 if version == "3" else {"more": "", "path": "/"}
    return MOUNT.format(version=version, **more)


def copy(guests: pair.Pair) -> None:
    """Copy a file each way; all four have to be the same."""
    guests.client.must(COPY_OUT)
    guests.server.must(COPY_IN)
    ends = [guests.client.must("sha256sum < /tmp/out; cat /mnt/in | sha256sum"),
            guests.server.must("sha256sum < /export/out; sha256sum < /export/in")]
    if ends[0] != ends[1]:
        raise progress.Failure(f"the checksums differ: client {ends[0].split()}, server {ends[1].split()}")
