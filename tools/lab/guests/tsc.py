"""How fast the time stamp counter of this host goes, which emulated guests read, too (cpu_get_host_ticks() of QEMU)."""

import ctypes
import functools
import mmap
import time

# rdtsc; shl rdx, 32; or rax, rdx; ret
READ = bytes.fromhex("0f31 48c1e220 4809d0 c3")
SECONDS = 0.2
# Of so many looks the shortest one counts: nothing came between.
LOOKS = 100


def argument() -> str:
    """What an emulated kernel is told of it. One that measures it by the PIT of a busy host is wrong by any factor, and so is
    its clock."""
    return f"tsc_early_khz={kilohertz()}"


@functools.cache
def kilohertz() -> int:
    """Its rate, measured by the host's clock, as no correction of the time makes it faster or slower."""
    code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(READ)
    read = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(ctypes.c_char.from_buffer(code)))

    def now() -> int:
        return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)

    def look() -> tuple[int, int, int]:
        before, ticks, after = now(), read(), now()
        return after - before, before, ticks

    def best() -> tuple[int, int]:
        _, nanoseconds, ticks = min(look() for _ in range(LOOKS))
        return nanoseconds, ticks

    began = best()
    time.sleep(SECONDS)
    ended = best()
    return (ended[1] - began[1]) * 1_000_000 // (ended[0] - began[0])
