"""Variables of `make` that choose what a run does."""

import os

import progress


def choice(name: str, values: tuple[str, ...]) -> str:
    """A variable that takes one of a few values; the first is the default."""
    value = os.environ.get(name) or values[0]
    if value not in values:
        raise progress.Failure(f"{name}={value} is not one of: {', '.join(values)}")
    return value


def protocol() -> int:
    """The highest version of RPC-over-RDMA that our modules speak."""
    return int(choice("VERSION", ("1", "2")))


def number(name: str, default: int) -> int:
    """A variable that takes a number above zero."""
    value = os.environ.get(name) or str(default)
    if not value.isdecimal() or int(value) == 0:
        raise progress.Failure(f"{name}={value} is not a number above zero")
    return int(value)
