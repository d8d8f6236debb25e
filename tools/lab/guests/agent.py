"""Commands in a guest, through QEMU's guest agent on a virtio serial port."""

import base64
import itertools
import json
import os
import socket
import time
from dataclasses import dataclass
from pathlib import Path

import progress
from guests.clock import Clock

# Looking into a directory of the host costs little; a guest pays for every question, the more the slower it is.
LOOK_SECONDS, ASK_SECONDS = 0.01, 2.0
# An agent that is there answers at once, if the guest gets that far; one that is not there yet never answers.
ALIVE_SECONDS, ANSWER_SECONDS = 5, 60


@dataclass(frozen=True)
class Result:
    """How a command in a guest ended."""

    status: int
    out: str
    err: str


class Agent:
    """The host's end of the agent's socket.

    A command leaves a file in the directory that the guest shares with the host when it ends, so that nobody has to ask
    again and again.
    """

    def __init__(self, path: Path, name: str, share: Path, clock: Clock,
                 ask_seconds: float = ASK_SECONDS) -> None:
        """`ask_seconds` is how long a command has before it is asked for though it has not said that it ended."""
        self._name = name
        self._clock = clock
        self._ask_seconds = ask_seconds
        self._share = share
        self._ends: dict[int, Path] = {}
        self._socket = socket.socket(socket.AF_UNIX)
        # A socket's path has room for 107 bytes only; a directory's file descriptor is always short enough.
        directory = os.open(path.parent, os.O_PATH)
        try:
            self._socket.connect(f"/proc/self/fd/{directory}/{path.name}")
        finally:
            os.close(directory)
        self._received = b""
        self._ids = itertools.count(int(time.time()))

    def close(self) -> None:
        self._socket.close()

    def alive(self) -> bool:
        """Whether the agent answers within a while; drops answers to earlier questions."""
        number = next(self._ids)
        deadline = self._clock.now() + ALIVE_SECONDS
        try:
            self._send("guest-sync", {"id": number})
            while self._answer(deadline) != number:
                pass
        except TimeoutError:
            return False
        return True

    def start(self, command: str) -> int:
        """Begin a shell command; its process number in the guest."""
        end = self._share / f"ended-{next(self._ids)}"
        script = f"trap ': > /lab/{end.name}' EXIT\n{command}"
        arguments = {"path": "/bin/sh", "arg": ["-c", script], "capture-output": True}
        process = self._ask("guest-exec", arguments)["pid"]
        self._ends[process] = end
        return process

    def finished(self, process: int) -> Result | None:
        """The result of a command that has ended, once only; None while it runs."""
        answer = self._ask("guest-exec-status", {"pid": process})
        if not answer["exited"]:
            return None
        out, err = (base64.b64decode(answer.get(key, "")).decode(errors="replace") for key in ("out-data", "err-data"))
        # A command that a signal ended has the status that a shell gives it.
        status = answer["exitcode"] if "exitcode" in answer else 128 + answer.get("signal", 0)
        return Result(status, out, err)

    def wait(self, process: int, seconds: float, what: str) -> Result:
        """Wait for a command; taking longer than `seconds` of the guest's time is a Failure."""
        deadline = self._clock.now() + seconds
        end = self._ends.pop(process)
        while True:
            # A command that is killed leaves no file.
            ask = min(self._clock.now() + self._ask_seconds, deadline)
            while not end.exists() and self._clock.now() < ask:
                time.sleep(LOOK_SECONDS)
            result = self.finished(process)
            if result is not None:
                end.unlink(missing_ok=True)
                return result
            if self._clock.now() > deadline:
                raise progress.TimedOut(f"{self._name}: still running after {seconds:.0f} s: {what}")
            time.sleep(LOOK_SECONDS)

    def _ask(self, command: str, arguments: dict) -> dict:
        self._send(command, arguments)
        try:
            return self._answer(self._clock.now() + ANSWER_SECONDS)
        except TimeoutError:
            raise progress.TimedOut(f"{self._name}: the guest does not answer any more") from None

    def _send(self, command: str, arguments: dict) -> None:
        try:
            self._socket.sendall(json.dumps({"execute": command, "arguments": arguments}).encode() + b"\n")
        except OSError as error:
            raise progress.TimedOut(f"{self._name}: the guest is gone ({error})") from None

    def _answer(self, deadline: float):
        while b"\n" not in self._received:
            self._socket.settimeout(max(0.01, deadline - self._clock.now()))
            try:
                data = self._socket.recv(1 << 20)
            except TimeoutError:
                # The host's time is over, and that of the guest perhaps not.
                if self._clock.now() >= deadline:
                    raise
                continue
            except ConnectionError:
                data = b""
            if not data:
                raise progress.TimedOut(f"{self._name}: the guest is gone")
            self._received += data
        text, self._received = self._received.split(b"\n", 1)
        answer = json.loads(text.lstrip(b"\xff"))
        if "error" in answer:
            raise progress.Failure(f"{self._name}: guest agent: {answer['error'].get('desc')}")
        return answer["return"]
