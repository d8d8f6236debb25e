"""Tests of how a command ends."""

import signal
import subprocess
import sys
import unittest

import repository

ENDS = """
import signal
import progress

def run():
    print("runs", flush=True)
    signal.pause()

raise SystemExit(progress.main_guard(run))
"""


class MainGuard(unittest.TestCase):
    def test_ends_in_the_background_too(self) -> None:
        # There, shells have SIGINT ignored.
        ignoring = [sys.executable, "-B", "-c", "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n" + ENDS]
        process = subprocess.Popen(ignoring, cwd=repository.ROOT / "tools/lab", stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        assert process.stdout
        self.assertEqual(process.stdout.readline(), "runs\n")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.communicate(timeout=60)[0], "interrupted\n")
        self.assertEqual(process.returncode, 130)


if __name__ == "__main__":
    unittest.main()
