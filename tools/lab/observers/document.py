"""Documentation/tools.rst with the outputs of a run."""

import itertools
import re
from collections.abc import Callable
from pathlib import Path

import progress
import repository
from guests.pair import IN_TREE, OURS
from observers.tools import TOOLS, blocks, counts, file_of, sorted_alike

DOCUMENT = repository.ROOT / "Documentation/tools.rst"
NAMES = {OURS: "this module", IN_TREE: "the in-tree module"}
# What a run has written stands between these two.
PLACE = re.compile(r"(^\.\. output: ([^\n]+)\n\n)(?:.*?\n)??(^\.\. end of output\n)", re.MULTILINE | re.DOTALL)
# Of a line, and of one of two that stand side by side.
COLUMNS, HALF = 116, 56
# Of outputs that stand side by side, and of others.
MANY, FEW = 30, 9
# How outputs are shown whose lines are in no order, or belong together.
SHOWN_AS: dict[Callable, Callable] = {blocks: blocks, sorted_alike: counts}


def write(outputs: Path) -> None:
    """Put the document as it should be beside the outputs."""
    def filled(place: re.Match[str]) -> str:
        return place[1] + _blocks(outputs, place[2]) + "\n" + place[3]

    (outputs / DOCUMENT.name).write_text(PLACE.sub(filled, DOCUMENT.read_text()))


def _blocks(outputs: Path, name: str) -> str:
    """What both have printed: once if that is the same, or else side by side if there is room for it."""
    files = {whose: file_of(outputs / whose, name) for whose in (OURS, IN_TREE)}
    parts = {NAMES[whose]: _shown(name, file.read_text()) for whose, file in files.items() if file.exists()}
    if not parts:
        raise progress.Failure(f"{DOCUMENT.name} wants the output of {name}, which there is none of")
    lines = list(parts.values())
    if len(lines) == 2 and lines[0] == lines[1]:
        return f"With both::\n\n{_literal(lines[0], MANY)}"
    if len(lines) == 2 and all(len(line) <= HALF for part in lines for line in part):
        rows = [f"{one:{HALF}}    {other}".rstrip() for one, other in itertools.zip_longest(*lines, fillvalue="")]
        return f"With this module, and with the in-tree one::\n\n{_literal(rows, MANY)}"
    most = FEW if len(lines) == 2 else len(lines[0])
    return "\n".join(f"With {who}::\n\n{_literal(part, most)}" for who, part in parts.items())


def _shown(name: str, text: str) -> list[str]:
    """The lines of an output that are shown."""
    tool = next((tool for tool in TOOLS if tool.name == name), None)
    if tool is None:
        return text.splitlines()
    lines = SHOWN_AS.get(tool.shape, str.splitlines)(text.strip("\n"))
    return [line.expandtabs(4).rstrip() for line in lines if re.search(tool.shown, line)]


def _literal(lines: list[str], most: int) -> str:
    """Lines of a literal block, as far as there is room."""
    cut = [line if len(line) <= COLUMNS else f"{line[:COLUMNS - 3]}..." for line in lines[:most]]
    return "".join(f"  {line}".rstrip() + "\n" for line in [*cut, *(["..."] if len(lines) > most else [])])
