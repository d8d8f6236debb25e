"""Captures that the tests have tshark read."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

import capture_file
import link
import repository
from link import Moved, Sent

DIRECTORY = repository.BUILD / "wireshark"


class Form(NamedTuple):
    """How a connection is carried: octets of a message in a packet or a segment of DDP, and where segments of TCP end."""

    kind: str
    mtu: int
    cut: int | None = None

    def __str__(self) -> str:
        return "-".join(str(part) for part in self if part)


FORMS = (Form("roce", 1024), Form("roce", 4096), Form("iwarp", 1000), Form("iwarp", 1000, 700), Form("iwarp", 3000, 1448))
# One of each kind.
ROCE, IWARP = FORMS[0], FORMS[2]
EACH_FORM, BOTH_KINDS = (pytest.mark.parametrize("form", forms, ids=Form.__str__) for forms in (FORMS, (ROCE, IWARP)))
# tshark may go over a capture once or twice.
PASSES = pytest.mark.parametrize("options", [(), ("-2",)], ids=["one-pass", "two-passes"])


def written(name: str, form: Form, messages: Sequence[Sent | Moved], private: tuple[bytes, bytes] = (b"", b"")) -> Path:
    """A capture of a connection."""
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    path = DIRECTORY / f"{name}-{form}.pcap"
    link.write(path, form.kind, messages, private, form.mtu, form.cut)
    return path


def changed(path: Path, change: Callable[[list[bytes]], list[bytes]]) -> Path:
    """A capture with other frames."""
    made = path.with_suffix(".changed.pcap")
    capture_file.write(made, change(list(capture_file.read(path))))
    return made


def agreement(may_pull: bool, may_provide: bool) -> bytes:
    """Private data with the block that says who pulls Replies (Documentation/reliable-reply.rst)."""
    return bytes.fromhex("f6ab0e1801010703") + bytes.fromhex("72a1c35e01") + bytes((may_pull + 2 * may_provide, 0, 0))
