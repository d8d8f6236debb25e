"""The packages that the tests are of."""

import shutil
from pathlib import Path

import pytest

import packages
from upgrades import RUN


@pytest.fixture(scope="session")
def built() -> list[Path]:
    """They are built anew, and lintian finds nothing in them."""
    shutil.rmtree(RUN, ignore_errors=True)
    RUN.mkdir(parents=True)
    return packages.build()
