"""Whether the module builds for a kernel, and nothing is said about that."""

import progress
from guests import module
from guests.kernels import Kernel
from series.overlay import no_warning


def check(kernel: Kernel) -> None:
    """Fail if it does not, or if there is a warning."""
    module.build(kernel)
    log = module.build_log(kernel)
    try:
        no_warning(log)
    except progress.Failure:
        # It may have been of what has changed since.
        module.remove(kernel)
        module.build(kernel)
        no_warning(log)
