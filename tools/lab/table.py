"""Tables for a terminal."""

from collections.abc import Sequence


def text(rows: Sequence[Sequence[str]]) -> str:
    """The rows, the first of which has the heads, in columns that are as wide as they need be."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    return "".join("  ".join(value.ljust(width) for value, width in zip(row, widths)).rstrip() + "\n" for row in rows)
