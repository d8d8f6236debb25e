"""Tests of how a command ends."""

import signal
import subprocess
import sys

import pytest

import repository

ENDS = """
import time
import progress

def run():
    print("runs", flush=True)
    while True:
        time.sleep(0.1)

raise SystemExit(progress.main_guard(run))
"""


def test_ends_in_the_background_too(request: pytest.FixtureRequest) -> None:
    # There, shells have SIGINT ignored.
    ignoring = [sys.executable, "-B", "-c", "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n" + ENDS]
    process = subprocess.Popen(ignoring, cwd=repository.ROOT / "tools/lab", stdout=subprocess.PIPE, text=True)
    request.addfinalizer(process.kill)
    assert process.stdout and process.stdout.readline() == "runs\n"
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=60)[0] == "interrupted\n" and process.returncode == 130
