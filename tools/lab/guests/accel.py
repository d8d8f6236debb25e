"""Whether KVM works here, found out by booting a kernel with it: a /dev/kvm that cannot run one exists in the wild."""

import functools
import os
import platform
import subprocess
import time
from pathlib import Path

import cache
import progress
from guests import image, roots
from guests.arch import AMD64
from guests.clock import Clock, waits_of_child
from guests.kernels import Kernel

PROBE_SECONDS = 10


@functools.cache
def choose(kernel: Kernel) -> str:
    """The accelerator for the guests: ACCEL= if given, else what the probe says; for another
    architecture there is emulation alone."""
    if kernel.arch != AMD64:
        return "tcg"
    wanted = os.environ.get("ACCEL")
    if wanted:
        if wanted not in ("kvm", "tcg"):
            raise progress.Failure(f"ACCEL={wanted} is neither kvm nor tcg")
        return wanted
    if not Path("/dev/kvm").exists():
        return "tcg"

    def make(path: Path) -> None:
        with progress.step("probing whether KVM boots a kernel here"):
            (path / "accel").write_text("kvm" if _boots(kernel, path) else "tcg")

    # Another kernel or processor of the host may answer otherwise.
    models = {entry for entry in Path("/proc/cpuinfo").read_text().splitlines() if entry.startswith("model name")}
    recipe = f"{platform.release()} {models} {kernel.path.name}"
    accel = (cache.entry("accel", recipe, make) / "accel").read_text()
    if accel == "tcg":
        progress.line(f"using emulation for the {kernel.flavour} kernel: with /dev/kvm it does not boot here "
                 "(ACCEL=kvm overrides that)")
    return accel


def _boots(kernel: Kernel, directory: Path) -> bool:
    """Whether the kernel reaches its first program within a few seconds under KVM."""
    argv = ["qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
            "-M", "q35", "-accel", "kvm", "-cpu", "host", "-m", "512M",
            "-kernel", str(kernel.image), "-initrd", str(image.initramfs(kernel)),
            "-append", "console=ttyS0 panic=1 rdinit=/init", "-serial", "file:console"]
    command = ["setpriv", "--pdeathsig", "KILL", *roots.tool_root().command(argv, directory=directory)]
    with (directory / "qemu").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
    try:
        clock = Clock()
        clock.add(lambda: waits_of_child(process.pid))
        while process.poll() is None and clock.now() < PROBE_SECONDS:
            console = directory / "console"
            # Without a disk the RAM disk's script says so and ends; its saying so is all that is asked.
            if console.exists() and b"Run /init as init process" in console.read_bytes():
                return True
            time.sleep(0.2)
        return False
    finally:
        process.kill()
        process.wait()
