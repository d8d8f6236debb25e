"""QEMU's own control socket, here for captures of the link's traffic, to hold a guest for a moment, and for its memory."""

import contextlib
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import progress

# Gigabytes, to a disk that others use.
DUMP_SECONDS = 300


class Monitor:
    """A connection to the monitor of one guest's QEMU."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(30)
        # As in agent.py: the path may be longer than a socket's address.
        directory = os.open(path.parent, os.O_PATH)
        try:
            self._socket.connect(f"/proc/self/fd/{directory}/{path.name}")
        finally:
            os.close(directory)
        self._file = self._socket.makefile("rw")
        self._file.readline()
        self._ask("qmp_capabilities", {})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._socket.close()

    @contextlib.contextmanager
    def capture(self, path: Path) -> Iterator[None]:
        """Write every frame of the link into `path` (relative to QEMU's directory) for the length of a block."""
        self._ask("object-add", {"qom-type": "filter-dump", "id": "capture", "netdev": "net", "maxlen": 65535,
                                 "file": path.name})
        try:
            yield
        finally:
            self._ask("object-del", {"id": "capture"})

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """A guest that executes nothing for the length of a block; what it has sent still goes out."""
        self._ask("stop", {})
        try:
            yield
        finally:
            self._ask("cont", {})

    def dump(self, name: str) -> None:
        """Write the guest's memory into a file (relative to QEMU's directory), as an ELF core."""
        self._socket.settimeout(DUMP_SECONDS)
        self._ask("dump-guest-memory", {"paging": False, "protocol": f"file:{name}"})

    def _ask(self, command: str, arguments: dict) -> None:
        try:
            self._file.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
            self._file.flush()
        except OSError as error:
            raise progress.TimedOut(f"QEMU is gone ({error})") from None
        # Events come in between.
        while "return" not in (answer := self._answer()):
            if "error" in answer:
                raise progress.Failure(f"QEMU refused {command}: {answer['error'].get('desc')}")

    def _answer(self) -> dict:
        text = self._file.readline()
        if not text:
            raise progress.TimedOut("QEMU is gone")
        return json.loads(text)
