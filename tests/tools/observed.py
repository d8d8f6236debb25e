"""A machine of Debian on which the tools run that people run."""

from dataclasses import dataclass
from pathlib import Path

import pytest

import repository
from guests.pair import IN_TREE, OURS
from guests.system import System

OUTPUTS = repository.BUILD / "tools"
# For tests of one module alone.
OURS_ALONE = pytest.mark.parametrize("observed", [OURS], indirect=True, scope="session")
IN_TREE_ALONE = pytest.mark.parametrize("observed", [IN_TREE], indirect=True, scope="session")


@dataclass
class Observed:
    """The machine, whose module it has, and where outputs go."""

    system: System
    whose: str
    directory: Path
    # What drgn told while RPCs waited.
    stalled: str = ""
