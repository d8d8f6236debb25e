"""Whether the module builds for a kernel, and nothing is said about that."""

import shutil

from guests import module
from guests.kernels import Kernel
from series.overlay import no_warning


def check(kernel: Kernel) -> None:
    """Fail if it does not, or if there is a warning."""
    # What is not built anew warns of nothing.
    shutil.rmtree(module.objects(kernel, module.ANEW), ignore_errors=True)
    module.build(kernel, module.ANEW)
    no_warning(module.build_log(kernel, module.ANEW))
