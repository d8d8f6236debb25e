"""`make requester` and `make life`: one cell with tests of its own, as the variables choose it."""

import kernels
import life_tests
import module
import mounts
import requester
import settings
from mounts import DEVICES, Lane, Plan
from pair import IN_TREE, OURS, End, Setup
from results import Results


def run_requester() -> int:
    """All parts against one server, ours or the in-tree one; of the latter, the known differences are expected."""
    device = settings.choice("DEVICE", DEVICES)
    whose = settings.choice("SERVER", (OURS, IN_TREE))
    kernel = kernels.by_name(settings.choice("KERNEL", ("stock", "debug")))
    server = End(kernel, module.build(kernel) if whose == OURS else None, mounts.MEMORY)
    client = End(kernels.stock(), module.build(kernels.stock()), mounts.MEMORY)
    # What the in-tree server makes its kernel say is shown, but is no mistake of ours.
    plan = Plan(device, None, whose, OURS, requester.TESTS, quiet=whose == OURS)
    return _run(Setup("requester", server, client), plan)


def run_life() -> int:
    """The life cycle as `make check` has it, but for a second processor at the server."""
    device = settings.choice("DEVICE", DEVICES)
    plan = Plan(device, mounts.LIFE_VERSION, OURS, OURS, life_tests.tests(life_tests.CHECK))
    return _run(mounts.server_stressed(device), plan)


def _run(setup: Setup, plan: Plan) -> int:
    results = Results()
    mounts.run_lanes(results, [Lane(setup, [plan])])
    return results.finish()
