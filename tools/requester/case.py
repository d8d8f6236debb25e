"""A case: one thing that a server has to do."""

from collections.abc import Callable
from dataclasses import dataclass

from bench import Bench


@dataclass(frozen=True)
class Difference:
    """What the in-tree server is known to do instead."""

    why: str
    # What the case finds wrong there: a regular expression.
    finds: str
    # Where it does so on one kind of device only.
    device: str | None = None


@dataclass(frozen=True)
class Case:
    """A case by its name."""

    name: str
    function: Callable[[Bench], None]
    in_tree: Difference | None = None
