"""The letter that goes before the patches. Its numbers are those of Documentation/performance.rst."""

import re
import textwrap

import progress
import repository
from series.patches import COVER, Patch

PERFORMANCE = repository.ROOT / "Documentation/performance.rst"
# Where the run is named that the tables are of.
MEASURED = re.compile(r"^Of (commit \w+, .*?); ", re.M)
# A table, between lines of equals signs, with its head.
TABLE = re.compile(r"^(=+(?:  =+)+)\n(.*)\n\1\n((?:.+\n)+?)\1\n", re.M)
# Its columns in the letter: TCP is left out, and the names are those of this letter.
COLUMNS = {"total, ours": "all, Rust", "in-tree": "C", "ratio": "ratio", "rpcrdma, ours": "own, Rust",
           "ours": "Rust"}
LEFT_OUT = ("TCP",)
WIDTH = 72


def subject_and_body(series: list[Patch], kernel: str) -> str:
    """The letter, the first line of which is its subject."""
    subject, _, body = COVER.read_text().removeprefix("Subject: ").partition("\n\n")
    text = PERFORMANCE.read_text()
    said = {f"@{patch.name.partition('-')[2]}@": str(place) for place, patch in enumerate(series, 1)}
    said |= {"@KERNEL@": kernel, "@MEASURED@": measured(text)}
    for name, value in said.items():
        body = body.replace(name, value)
    body = re.sub(r"^@TABLE (.*)@$", lambda match: table(text, match[1]), body, flags=re.M)
    left = re.findall(r"@[\w ]+@", body)
    if left:
        raise progress.Failure(f"{COVER.name}: nobody knows {', '.join(left)}")
    return f"{subject}\n\n{body}"


def measured(text: str) -> str:
    """What the measurements were made with."""
    found = MEASURED.search(text)
    if not found:
        raise progress.Failure(f"{PERFORMANCE.name} does not say what its results are of")
    said = f"The numbers are of {found[1]}. Commits are those of the module's own repository."
    return textwrap.fill(said.replace("``", ""), WIDTH)


def table(text: str, title: str) -> str:
    """The first table after a line that begins with its title."""
    found = re.search(rf"^{re.escape(title)}\b", text, re.M)
    rows = TABLE.search(text, found.end()) if found else None
    if not rows:
        raise progress.Failure(f"{PERFORMANCE.name} has no table {title}")
    places = [match.span() for match in re.finditer("=+", rows[1])]
    head, *body = ([line[slice(*place)].strip() for place in places] for line in (rows[2], *rows[3].splitlines()))
    kept = [column for column, name in enumerate(head) if name not in LEFT_OUT]
    lines = [[COLUMNS.get(head[column], head[column]) for column in kept],
             *([COLUMNS.get(row[column], row[column]) for column in kept] for row in body if row[0] not in LEFT_OUT)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(kept))]
    return "\n".join("  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])])
                     for line in lines)
