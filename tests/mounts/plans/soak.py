"""What is hard on connections and memory, in turn on each device, for SOAK_MINUTES: a round that has begun is ended, but none
begins after that. What breaks most comes first."""

from collections.abc import Callable
from dataclasses import replace

import room
import setups
import suites
import test_adapter as adapter
import test_callback as callback
import test_calls_back as calls_back
import test_calls_back_2 as calls_back_2
import test_client as client
import test_client_life as client_life
import test_dropped_calls as dropped_calls
import test_keep_alive as keep_alive
import test_life as life
import test_load as load
import test_memory as memory
import test_outage as outage
import test_payload as payload
import test_provider as provider
import test_responder as responder
import test_responder_2 as responder_2
import test_slow_server as slow_server
import test_storm as storm
from guests import devices
from guests.pair import IN_TREE, OURS, Setup
from plan import Case, Lane, Plan, Test, of
from plans.single import LIFE, MUTATED, soak_seconds

CALLBACKS = 100_000
# In which all have had a turn.
ALL_SECONDS = 290 * 60
# The part of a soak that its storms may take.
STORM_PART = 6


def lanes() -> list[Lane]:
    """Those of version 1, those of version 2, and the others; what wants the machine for itself comes last."""
    once = [*_of(1), *_of(2), *_alone()]
    return [replace(lane, name=f"{lane.name}-again-{turn}") if turn else lane
            for turn in range(1 + soak_seconds() // ALL_SECONDS) for lane in once]


def _of(protocol: int) -> list[Lane]:
    """Those that are there for each version of RPC-over-RDMA."""
    def plan(device: str, tests: list[Test], version: str = LIFE) -> Plan:
        return Plan(device, version, tests, protocol=protocol)

    storms = soak_seconds() // STORM_PART
    called_back = Case(callback.test_called_back, (CALLBACKS,))
    each: list[tuple[str, Callable[[], Setup], list[Plan]]] = [
        (f"{name}-{device}", setup, [plan(device, tests(device), version)])
            for name, setup, version, tests in (
                ("storm", setups.server_rebooting, storm.VERSION, lambda _: storm.cases(storms)),
                ("client-life", setups.client_stressed, LIFE, lambda _: client_life.cases(client_life.SOAK)),
                ("memory", setups.client_accounted, memory.VERSION, lambda _: memory.cases()),
                ("life", setups.server_stressed, LIFE, lambda device: life.cases(life.SOAK, device)))
            for device in devices.KINDS]
    mounts = [plan(device, suites.SOAK) for device in devices.KINDS]
    each += [("callbacks", setups.nothing_debugged, [plan("rxe", [called_back])]),
             ("client", setups.client_debugged, mounts), ("server", setups.server_debugged, mounts)]
    return [Lane(f"{name}-version-{protocol}", setup, plans, until=soak_seconds()) for name, setup, plans in each]


def _alone() -> list[Lane]:
    of_session = [responder.test_server_makes_no_mistake, *of(calls_back), dropped_calls.test_server_goes_mute]
    mutated = responder_2.test_server_sends_mutated_messages
    of_session_2 = [responder_2.test_server_has_no_room_for_replies_of_version_2,
                    *of(calls_back_2, calls_back_2.test_server_calls_back_at_length)]
    slow = [Plan("rxe", slow_server.VERSION, [slow_server.test_one_file_system_frozen], *whose)
            for whose in ((OURS, OURS), (IN_TREE, OURS), (OURS, IN_TREE))]
    adapters = [*of(outage), *of(payload), adapter.test_adapter_without_extensions]
    return [Lane("clients", setups.client_debugged, [
                Plan("rxe", client.VERSION, [*client.on_one_network(), *adapters]),
                Plan("rxe", responder.VERSION, [keep_alive.test_dead_server_noticed, client.test_tcp_and_rdma_side_by_side, client.test_nconnect,
                                                *of(responder), *of(dropped_calls, dropped_calls.test_server_goes_mute), *of(provider)]),
                Plan("rxe", responder.VERSION, [*of(responder_2, mutated), Case(mutated, (MUTATED,))], protocol=2),
                Plan("rxe", responder.SESSION_VERSION, of_session_2, protocol=2),
                Plan("rxe", responder.SESSION_VERSION, of_session)], until=soak_seconds()),
            Lane("bonds", setups.server_debugged, [Plan("rxe", client.VERSION, [client.test_clients_address_moves]),
                                                   Plan("rxe", LIFE, [callback.test_copy_after_idleness])], until=soak_seconds()),
            Lane("slow-server", setups.slow, slow, until=soak_seconds()),
            Lane("load", setups.nothing_debugged, [Plan("rxe", load.VERSION, [load.test_fair])], places=room.places(), until=soak_seconds())]
