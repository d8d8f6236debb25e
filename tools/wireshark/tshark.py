"""tshark of the tool root, with the dissectors of this directory."""

from pathlib import Path

from guests import roots
from judges.dissector import NOBODY, TSHARK


def output(capture: Path, *arguments: str) -> str:
    """What tshark prints of a capture."""
    return roots.tool_root().output([*TSHARK, "-n", "-r", str(capture), *arguments])


def fields(capture: Path, wanted: str, *names: str, options: tuple[str, ...] = ()) -> list[list[str]]:
    """The fields of each frame that passes a filter; values of the same field have commas in between."""
    asked = [text for name in names for text in ("-e", name)]
    lines = output(capture, *options, "-Y", wanted, "-T", "fields", *asked).splitlines()
    return [line.split("\t") for line in lines]


def plain(capture: Path, *arguments: str) -> str:
    """What tshark prints of a capture without the dissectors."""
    return roots.tool_root().output([*NOBODY, "tshark", "-n", "-r", str(capture), *arguments])
