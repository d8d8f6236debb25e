"""Programs of the tool root, so that a host needs no Rust."""

from pathlib import Path

import cache
import progress
import repository
from guests import roots


def run(name: str, argv: list[str], directory: Path = repository.ROOT, target: Path = repository.BUILD / "host-xdr/target") -> None:
    """Run one in a directory; it has to find nothing."""
    log = repository.fresh_log(name)
    environment = {"CARGO_HOME": str(cache.directory() / "cargo"), "CARGO_TARGET_DIR": str(target)}
    with progress.step(f"{' '.join(argv[:3])} ({name})", log):
        roots.tool_root().run(argv, log, f"{name} found something", environment, directory)
