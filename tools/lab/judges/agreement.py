"""Whether the codec of version 2 and the referee make the same of the same messages: each has been written without the other."""

import json
from collections import Counter
from collections.abc import Iterator

import cache
import progress
import repository
from guests import roots

CODEC = repository.ROOT / "xdr"
OUT = repository.BUILD / "agreement"
# What the making of messages begins with: the same ones each time.
SEED = 1
# Of so many messages one is accepted with Read chunks that have to be in the right places to each other.
PLACED_PART = 200
# Differences that are told.
MOST_TOLD = 5
SCRIPT = """set -e
cargo build --quiet --release --locked --example verdicts --manifest-path xdr/Cargo.toml
python3 -B tools/referee generate {count} {seed} > "$1/cases"
"$CARGO_TARGET_DIR/release/examples/verdicts" < "$1/cases" > "$1/codec"
python3 -B tools/referee decode < "$1/cases" > "$1/referee"
"""


def check(count: int) -> None:
    """Fail if they differ in what is accepted, in what it holds, in the octets that it is encoded to, or in what is answered."""
    OUT.mkdir(parents=True, exist_ok=True)
    log = repository.fresh_log("agreement")
    environment = {"CARGO_HOME": str(cache.directory() / "cargo"), "CARGO_TARGET_DIR": str(OUT / "target")}
    with progress.step(f"host: {count} messages of version 2", log):
        roots.tool_root().run(["sh", "-c", SCRIPT.format(count=count, seed=SEED), "sh", str(OUT)], log,
                              "the codec or the referee has failed", environment)
        texts = ((OUT / name).read_text().splitlines() for name in ("cases", "codec", "referee"))
        cases, codec, referee = ([json.loads(line) for line in text] for text in texts)
    judge(cases, codec, referee)


def judge(cases: list, codec: list, referee: list) -> None:
    """Compare the verdicts of both on the messages of each connection."""
    if not len(cases) == len(codec) == len(referee):
        raise progress.Failure(f"{len(cases)} connections, {len(codec)} verdicts of the codec, {len(referee)} of the referee")
    counts = Counter(verdict["verdict"] for verdicts in referee for verdict in verdicts)
    progress.line("  by the referee: " + ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items())))
    if 10 * min(counts[verdict] for verdict in ("accept", "refuse", "discard")) < sum(counts.values()):
        raise progress.Failure("the messages are all of one kind, and prove little")
    placed = sum(len({position for position, *_ in verdict.get("reads", ())}) > 1 for verdicts in referee for verdict in verdicts)
    if placed < sum(counts.values()) // PLACED_PART:
        raise progress.Failure(f"{placed} Calls with two Read chunks or more are accepted: where those may be is hardly tried")
    wrong = [each for case, ours, theirs in zip(cases, codec, referee) for each in differences(case, ours, theirs)]
    if wrong:
        raise progress.Failure(f"{len(wrong)} differences: " + "; ".join(wrong[:MOST_TOLD]),
                              "the draft decides, then Documentation/version-2.rst")


def differences(case: dict, codec: list, referee: list) -> Iterator[str]:
    """The messages of a connection of which both make something else, in words."""
    if not len(case["messages"]) == len(codec) == len(referee):
        yield f"{len(case['messages'])} messages, {len(codec)} and {len(referee)} verdicts"
    for number, (ours, theirs) in enumerate(zip(codec, referee)):
        if not same(ours, theirs):
            yield f"message {number} of {json.dumps(case)}: the codec says {ours}, the referee {theirs}"


def same(ours: dict, theirs: dict) -> bool:
    """Whether two verdicts are one. Of several faults any may be answered: the draft has no order of them."""
    if ours["verdict"] == theirs["verdict"] == "refuse":
        return ours["answer"] in theirs["answers"]
    return ours == theirs
