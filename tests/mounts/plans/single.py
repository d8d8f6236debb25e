"""One pair of guests, or two, with tests of their own, as the variables of `make` choose it."""

from functools import partial

import progress
import settings
import setups
import test_calls_back as calls_back
import test_calls_back_2 as calls_back_2
import test_client_life as client_life
import test_dropped_calls as dropped_calls
import test_forged_keys as forged_keys
import test_life as life
import test_loading as loading
import test_memory as memory
import test_provider as provider
import test_requester as requester
import test_responder as responder
import test_responder_2 as responder_2
import test_storm as storm
from guests import devices, kernels
from guests.machine import CLIENT, SERVER
from guests.pair import IN_TREE, OURS
from plan import Case, Lane, Plan, Test, of

MUTATED = 100_000
SOAK_MINUTES = 30
LIFE = "4.2"


def requester_lanes() -> list[Lane]:
    """Our requester against one server, ours or the in-tree one; of the latter, the known differences are expected."""
    device, whose = _device(), settings.choice("SERVER", (OURS, IN_TREE))
    flavour = settings.choice("KERNEL", ("stock", "debug"))
    tests = [*requester.of_any_adapter(flavour, whose), *([requester.test_forged_keys] if devices.named(device).kind == "siw" else [])]
    # What the in-tree server makes its kernel say is shown, but is no mistake of ours.
    plan = Plan(device, None, [*tests, *_leaks(flavour, whose)], server=whose, quiet=whose == OURS)
    return [Lane("requester", partial(setups.chosen, flavour, SERVER.name, whose == OURS), [plan])]


def responder_lanes() -> list[Lane]:
    """A client against a server that breaks the protocol; the in-tree one where it is known what that does."""
    device, whose = _device(), settings.choice("CLIENT", (OURS, IN_TREE))
    flavour = settings.choice("KERNEL", ("debug", "stock"))
    setup = partial(setups.chosen, flavour, CLIENT.name, whose == OURS)
    forged: list[Test] = [forged_keys.test_server_forges_a_key] if devices.named(device).kind == "siw" else []
    if whose != OURS:
        if not forged:
            raise progress.Failure("CLIENT=c has tests with siw alone: DEVICE=siw")
        return [Lane("responder", setup, [Plan(device, responder.VERSION, forged, client=whose)])]
    leaks = _leaks(flavour, whose)
    reversed_1 = [responder.test_server_makes_no_mistake, *of(calls_back), dropped_calls.test_server_goes_mute]
    # Only the stock kernel has groups for the processor.
    without = () if flavour == "stock" else (calls_back_2.test_server_calls_back_at_length,)
    reversed_2 = [responder_2.test_server_has_no_room_for_replies_of_version_2, *of(calls_back_2, *without)]
    mutated = Case(responder_2.test_server_sends_mutated_messages, (MUTATED,))
    return [Lane("responder-2", setup, [
                Plan(device, responder.VERSION, [*of(responder_2, responder_2.test_server_sends_mutated_messages), mutated], protocol=2),
                Plan(device, responder.SESSION_VERSION, [*reversed_2, *leaks], protocol=2)]),
            Lane("responder", setup, [
                Plan(device, responder.VERSION, [*of(responder), *of(dropped_calls, dropped_calls.test_server_goes_mute), *of(provider), *forged]),
                Plan(device, responder.SESSION_VERSION, [*reversed_1, *leaks])])]


def life_lanes() -> list[Lane]:
    """The life cycle of one end, with a second processor there where that works."""
    if settings.choice("END", (SERVER.name, CLIENT.name)) == SERVER.name:
        return [Lane("life", setups.server_stressed, [_plan(LIFE, life.cases(life.SOME, devices.named(_device()).kind))])]
    return [Lane("life", setups.client_stressed, [_plan(LIFE, client_life.cases(client_life.SOME))])]


def memory_lanes() -> list[Lane]:
    """What a client does whose memory is short."""
    return [Lane("memory", setups.client_accounted, [_plan(memory.VERSION, memory.cases())])]


def storm_lanes() -> list[Lane]:
    """Everything at once, for SOAK_MINUTES."""
    return [Lane("storm", setups.server_rebooting, [_plan(storm.VERSION, storm.cases(soak_seconds()))])]


def soak_seconds() -> int:
    """How long a soak is, or a storm alone."""
    return 60 * settings.number("SOAK_MINUTES", SOAK_MINUTES)


def _device() -> str:
    return settings.choice("DEVICE", devices.NAMES)


def _plan(version: str, tests: list[Test]) -> Plan:
    return Plan(_device(), version, tests, protocol=settings.protocol())


def _leaks(flavour: str, whose: str) -> list[Test]:
    """A look for them, where that kernel can and the module is ours."""
    return [loading.test_no_leak] if whose == OURS and flavour in kernels.OWN else []
