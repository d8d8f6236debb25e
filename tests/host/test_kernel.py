"""What the kernel's own tools say of the module, and whether it builds without a warning."""

import pytest

from guests import kernels
from guests.arch import ARM64
from judges import kernel_tools, quiet_build

pytestmark = [pytest.mark.xdist_group("kernel"), pytest.mark.usefixtures("place")]


def test_clippy() -> None:
    kernel_tools.clippy()


def test_rustdoc() -> None:
    kernel_tools.rustdoc()


def test_checkpatch() -> None:
    """Two kinds of message are left out for files with trace events and layout.c, whose macros stand for
    declarations."""
    kernel_tools.checkpatch()


def test_builds_for_arm64_without_a_warning() -> None:
    quiet_build.check(kernels.stock(ARM64))


def test_builds_without_a_warning() -> None:
    quiet_build.check(kernels.stock())
