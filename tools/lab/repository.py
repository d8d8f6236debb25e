"""Places in this repository."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
TESTS = ROOT / "tests"
