"""Whether the module builds for a kernel, and nothing is said about that."""

import shutil

from guests import module
from guests.kernels import Kernel
from series.overlay import no_warning


def check(kernel: Kernel) -> None:
    """Fail if it does not, or if there is a warning."""
    # What is not built anew warns of nothing.
    with module.lock(kernel):
        shutil.rmtree(module.objects(kernel), ignore_errors=True)
    module.build.cache_clear()
    module.build(kernel)
    no_warning(module.build_log(kernel))
