"""`make requester`, `make responder`, `make life`, `make memory` and `make storm`: one cell with tests of its own, as
the variables choose it."""

import mounts
import settings
from guests import arch, devices, kernels, module
from guests.cell import Test
from guests.kernels import Kernel
from guests.machine import CLIENT, SERVER, Build
from guests.pair import IN_TREE, OURS, End, Setup
from mounts import Worker, Plan
from results import Results
from tests import (client_life as client_life_tests, dropped_calls, forged_keys, life as life_tests, memory as memory_tests,
                   mount as mount_tests, provider, requester, responder, responder_2, storm as storm_tests)
from totals import TOTALS


def run_requester() -> int:
    """All parts against one server, ours or the in-tree one; of the latter, the known differences are expected."""
    device = settings.choice("DEVICE", devices.NAMES)
    whose = settings.choice("SERVER", (OURS, IN_TREE))
    kernel = kernels.by_name(settings.choice("KERNEL", ("stock", "debug")), arch.chosen())
    stock = kernels.stock(kernel.arch)
    server = End(kernel, module.build(kernel) if whose == OURS else None, Build(mounts.MEMORY))
    client = End(stock, module.build(stock), Build(mounts.MEMORY))
    # What the in-tree server makes its kernel say is shown, but is no mistake of ours.
    tests = requester.tests(kernel) + requester.long_tests(kernel) + ([requester.FORGING] if devices.named(device).kind == "siw" else [])
    plan = Plan(device, None, whose, OURS, tests + _leaks(kernel, whose), quiet=whose == OURS)
    return _run(Worker(Setup("requester", server, client), [plan]))


def run_responder() -> int:
    """A client against a server that breaks the protocol; the in-tree one where it is known what that does."""
    device = settings.choice("DEVICE", devices.NAMES)
    whose = settings.choice("CLIENT", (OURS, IN_TREE))
    kernel = kernels.by_name(settings.choice("KERNEL", ("debug", "stock")), arch.chosen())
    stock = kernels.stock(kernel.arch)
    server = End(stock, module.build(stock), Build(mounts.MEMORY))
    client = End(kernel, module.build(kernel) if whose == OURS else None, Build(mounts.MEMORY))
    forged = [forged_keys.TEST] if devices.named(device).kind == "siw" else []
    if whose != OURS:
        return _run(Worker(Setup("responder", server, client), [Plan(device, responder.VERSION, OURS, whose, forged)]))
    held = [responder_2.HELD] if kernel.flavour == "stock" else []
    leaks = _leaks(kernel, whose)
    return _run(Worker(Setup("responder-2", server, client),
                       [Plan(device, responder.VERSION, OURS, OURS, responder_2.TESTS, protocol=2),
                        Plan(device, responder.SESSION_VERSION, OURS, OURS, responder_2.SESSIONS + held + leaks, protocol=2)]),
                Worker(Setup("responder", server, client),
                       [Plan(device, responder.VERSION, OURS, OURS,
                             [*responder.TESTS, *dropped_calls.TESTS, *provider.TESTS, *forged]),
                        Plan(device, responder.SESSION_VERSION, OURS, OURS, responder.SESSIONS + dropped_calls.SESSIONS + leaks)]))


def run_life() -> int:
    """The life cycle of one end, with a second processor there where that works."""
    device = settings.choice("DEVICE", devices.NAMES)
    if settings.choice("END", (SERVER.name, CLIENT.name)) == SERVER.name:
        setup, tests = mounts.server_stressed(device), life_tests.tests(life_tests.SOME, devices.named(device).kind)
    else:
        setup, tests = mounts.client_stressed(device), client_life_tests.tests(client_life_tests.SOME)
    return _run_counting(setup, Plan(device, mounts.LIFE_VERSION, OURS, OURS, tests, protocol=settings.protocol()))


def run_memory() -> int:
    """What a client does whose memory is short."""
    device = settings.choice("DEVICE", devices.NAMES)
    plan = Plan(device, memory_tests.VERSION, OURS, OURS, memory_tests.TESTS, protocol=settings.protocol())
    return _run_counting(mounts.client_accounted(device), plan)


def run_storm() -> int:
    """Everything at once, for SOAK_MINUTES."""
    device = settings.choice("DEVICE", devices.NAMES)
    tests = storm_tests.tests(60 * mounts.soak_minutes())
    plan = Plan(device, storm_tests.VERSION, OURS, OURS, tests, protocol=settings.protocol())
    return _run_counting(mounts.server_rebooting(device), plan)


def _leaks(kernel: Kernel, whose: str) -> list[Test]:
    """A look for them, where that kernel can and the module is ours."""
    return [mount_tests.NO_LEAK] if whose == OURS and kernel.flavour in kernels.OWN else []


def _run(*workers: Worker) -> int:
    results = Results()
    mounts.run_workers(results, mounts.chosen(list(workers)))
    return results.finish()


def _run_counting(setup: Setup, plan: Plan) -> int:
    """The same, with what was done in all in front of the last line."""
    results = Results()
    mounts.run_workers(results, mounts.chosen([Worker(setup, [plan])]))
    TOTALS.tell()
    return results.finish()
