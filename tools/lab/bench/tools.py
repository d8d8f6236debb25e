"""What `make bench` measures with: tools/bench, built in the tool root."""

from dataclasses import dataclass
from pathlib import Path

import cache
import progress
import repository
from guests import roots

SOURCE = repository.ROOT / "tools/bench"
TARGET = repository.BUILD / "bench/target"
LOG = repository.BUILD / "logs/bench-tools.log"
# For a program that runs in any guest.
STATIC_TRIPLE = "x86_64-unknown-linux-gnu"


@dataclass(frozen=True)
class Programs:
    """The paths of what was built."""

    # Of QEMU's emulator.
    plugin: Path
    # Runs in the guests.
    workload: Path


def build() -> Programs:
    """Build what has changed."""
    with cache.lock("bench-tools", "builds the tools of the benchmark"), progress.step("building the tools that count", LOG):
        LOG.unlink(missing_ok=True)
        _cargo(["--package", "counting"], "")
        _cargo(["--package", "workload", "--target", STATIC_TRIPLE], "-C target-feature=+crt-static")
    return Programs(TARGET / "release/libcounting.so", TARGET / STATIC_TRIPLE / "release/workload")


def _cargo(arguments: list[str], flags: str) -> None:
    environment = {"CARGO_HOME": str(cache.directory() / "cargo"), "CARGO_TARGET_DIR": str(TARGET), "RUSTFLAGS": flags}
    roots.tool_root().run(["cargo", "build", "--locked", "--release", *arguments], LOG, "tools/bench does not build",
                          environment, SOURCE)
