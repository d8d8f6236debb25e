"""The crates that run on the host, too: the protocol, the state machines of the module, and the bench."""

from pathlib import Path

import pytest

import repository
import tool
from bench import tools as bench_tools
from judges import agreement, source
from plan import long

pytestmark = [pytest.mark.xdist_group("crates"), pytest.mark.usefixtures("place")]
XDR = repository.ROOT / "xdr"
FUZZ = XDR / "fuzz"
# A target; `xdr/fuzz/run.sh` goes on for longer.
FUZZ_SECONDS = 5
# The name of each crate, and where its objects are.
CRATES = {XDR: repository.BUILD / "host-xdr/target", repository.TESTS / "machines": repository.BUILD / "host-machines/target",
          bench_tools.SOURCE: bench_tools.TARGET}
LINT = ["clippy", "--locked", "--all-targets", "--", "-D", "warnings"]
TARGETS = sorted(path.stem for path in (FUZZ / "fuzz_targets").glob("*.rs"))


def test_rustfmt() -> None:
    bench = [path for pattern in ("*/src/*.rs", "*/tests/**/*.rs") for path in sorted(bench_tools.SOURCE.glob(pattern))]
    tool.run("rustfmt", ["rustfmt", "--check", "--color", "never", "--edition", "2021", *map(str, [*source.sources(), *bench])])


@pytest.mark.parametrize("command", [LINT, ["test", "--locked"]], ids=["clippy", "test"])
@pytest.mark.parametrize("crate", CRATES, ids=lambda crate: crate.name)
def test_cargo(crate: Path, command: list[str]) -> None:
    tool.run(f"{crate.name}-{command[0]}", ["cargo", *command], crate, CRATES[crate])


@pytest.mark.parametrize("count", [20_000, pytest.param(100_000, marks=long)])
def test_codec_and_referee_agree(count: int) -> None:
    """Messages, many damaged and many in sequences, go through both implementations of version 2."""
    agreement.check(count)


@pytest.mark.parametrize("target", TARGETS)
def test_fuzz(target: str) -> None:
    """From the checked-in corpus, for some seconds."""
    tool.run(f"fuzz-{target}", ["./run.sh", target, str(FUZZ_SECONDS)], FUZZ)
