"""The architectures of guests: that of the host, and one that is cross-built and emulated."""

from dataclasses import dataclass
from pathlib import PurePosixPath

import settings


@dataclass(frozen=True)
class Arch:
    """What differs between them."""

    # As the user of make and Kbuild say it, and as Debian does.
    name: str
    debian: str
    # Where a kernel's tree has its image.
    boot: str
    # QEMU's program, machine, and processor under emulation.
    qemu: str
    machine: str
    processor: str
    console: str
    # What a kernel is told under emulation, and make when it builds one.
    arguments: tuple[str, ...] = ()
    cross: tuple[str, ...] = ()
    # What tells its parts of the cache from those of the host's architecture.
    suffix: str = ""

    @property
    def image(self) -> str:
        """Kbuild's name of a kernel's image."""
        return PurePosixPath(self.boot).name


# Five-level paging is slower, and an interrupt early in the boot then looks like a wild access to KASAN. The string
# instructions are emulated byte by byte, and a kernel that thinks them fast copies with them. An emulated time stamp
# counter is as good as the host's clock, but the watchdog does not know.
AMD64 = Arch("x86_64", "amd64", "arch/x86/boot/bzImage", "qemu-system-x86_64", "q35", "max,la57=off,erms=off,fsrm=off",
             "ttyS0", ("tsc=reliable",))
# A processor without authentication of pointers, which is slow where it is emulated.
ARM64 = Arch("arm64", "arm64", "arch/arm64/boot/Image", "qemu-system-aarch64", "virt", "neoverse-n1", "ttyAMA0",
             cross=("ARCH=arm64", "CROSS_COMPILE=aarch64-linux-gnu-"), suffix="-arm64")


def chosen() -> Arch:
    """The one that ARCH names."""
    known = {arch.name: arch for arch in (AMD64, ARM64)}
    return known[settings.choice("ARCH", tuple(known))]
