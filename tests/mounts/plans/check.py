"""What every check has: a short list for each pair of a device, a version and a peer; a long one with the debugging kernel at
the client, and a shorter one with it at the server. `make matrix`, `make soak` and others have the rest.

Two debugging kernels would take twice the time, and find no more. What leads to no look for leaks is not in a pair that has
one, where it would take almost twice as long. `-m "not long"` leaves out of each file what is not for every check.
"""

from collections.abc import Callable

import room
import setups
import suites
import test_adapter as adapter
import test_calls_back as calls_back
import test_calls_back_2 as calls_back_2
import test_client as client
import test_client_life as client_life
import test_dropped_calls as dropped_calls
import test_forged_keys as forged_keys
import test_keep_alive as keep_alive
import test_life as life
import test_loading as loading
import test_memory as memory
import test_mount as mount
import test_outage as outage
import test_payload as payload
import test_provider as provider
import test_requester as requester
import test_responder as responder
import test_responder_2 as responder_2
import test_slow_server as slow_server
import test_versions as versions
from guests.pair import IN_TREE, OURS
from plan import Case, Lane, Plan, of
from suites import SHOWN, SMOKE, checked

LIFE = "4.2"
FEW_MUTATED = 200
# Where a client mostly waits for a server that breaks the protocol.
WAITING_FOR_SERVER: list[Callable[..., None]] = [
    responder.test_server_returns_other_chunks, responder.test_server_invalidates_anothers_key,
    provider.test_server_provides_replies_nowhere]


def lanes() -> list[Lane]:
    """Those that only wait begin first, beside the others; of those the longest, so that the last end together."""
    return [*_idle(), _server(), _others(), _responders(), _client(), _version_2(), _peers()]


def _idle() -> list[Lane]:
    """What mostly waits, for minutes."""
    waiting = [Plan("rxe", "4.2", suites.WAITING), Plan("rxe", responder.VERSION, [*WAITING_FOR_SERVER]),
               Plan("rxe", "4.2", [mount.test_connection_broken, loading.test_module_removed], protocol=2)]
    slow = [Plan("rxe", slow_server.VERSION, [slow_server.test_one_file_system_frozen])]
    # The latter beside the others only where there is room for more than one busy pair.
    return [Lane("slow-server", setups.slow, slow, places=0),
            Lane("waiting", setups.client_debugged, waiting, places=0 if room.places() > 1 else 1)]


def _with_in_tree(device: str, server: str, client_module: str, *versions: str) -> list[Plan]:
    return [Plan(device, version, SMOKE[version], server, client_module) for version in versions]


def _responders() -> Lane:
    """Servers that break the protocol."""
    return Lane("responders", setups.client_debugged, [
        Plan("rxe", responder.VERSION, [keep_alive.test_dead_server_noticed, client.test_tcp_and_rdma_side_by_side,
                                        *of(responder, *WAITING_FOR_SERVER),
                                        *of(dropped_calls, dropped_calls.test_server_goes_mute),
                                        # The one of siw, in another lane.
                                        *of(provider, provider.test_server_goes_silent_while_it_is_read, *WAITING_FOR_SERVER)]),
        Plan("rxe", responder.SESSION_VERSION, [responder.test_server_makes_no_mistake, *of(calls_back)]),
        Plan("rxe", "4.0", [responder.test_server_refuses_acls, provider.test_server_provides_nothing])])


def _others() -> Lane:
    """What a client of ours meets otherwise, and what users see."""
    return Lane("others", setups.client_debugged, [
        *_with_in_tree("rxe", IN_TREE, OURS, "3", "4.2"),
        Plan("rxe", client.VERSION, [client.test_trunking, client.test_over_a_link_local_address, *of(outage),
                                     client.test_clients_tunables, *of(payload), versions.test_versions_agreed_on, *SHOWN]),
        # Others look for leaks behind payloads.
        Plan("rxe", "4.2", [*checked(suites.PAYLOADS), loading.test_module_removed]), *_other_devices()])


def _client() -> Lane:
    """Our module on the debugging kernel as a client, with a look for leaks in the end."""
    elsewhere = (*suites.ELSEWHERE, *SHOWN, *suites.PAYLOADS, versions.test_versions_agreed_on, loading.test_no_leak)
    return Lane("client", setups.client_debugged, [
        Plan("rxe", "4.2", checked(suites.FULL["4.2"], *elsewhere)),
        Plan("rxe", "4.2", suites.SECOND_LEAKS, protocol=2),
        Plan("rxe", LIFE, [Case(memory.test_allocations_fail, (memory.COARSELY,), "coarsely"), *client_life.cases(client_life.CHECK)])])


def _server() -> Lane:
    """The same as a server."""
    return Lane("server", setups.server_debugged, [
        Plan("rxe", None, requester.of_any_adapter()),
        Plan("rxe", LIFE, life.cases(life.CHECK, "rxe"))])


def _peers() -> Lane:
    """A server over iWARP, in-tree clients, and Kerberos."""
    elsewhere = (*suites.ASIDE, mount.test_mountstats, mount.test_connection_broken, loading.test_no_leak)
    return Lane("peers", setups.server_debugged, [
        Plan("siw", "3", checked(suites.FULL["3"], *elsewhere)),
        Plan("siw", None, [requester.test_forged_keys]), Plan("siw", "4.2", suites.SECOND_SHORT, protocol=2),
        *_with_in_tree("siw", OURS, IN_TREE, "3", "4.2"), *_with_in_tree("rxe", OURS, IN_TREE, "4.0", "4.1"),
        Plan("rxe", "4.1", SMOKE["4.1"]),
        Plan("rxe", "4.2", suites.secured([mount.test_small_files, mount.test_callback_channel], "4.2"), security="krb5p"),
        # With the others nothing is placed.
        Plan("rxe", "4.2", [mount.test_several_encryption_types], security="krb5")])


def _version_2() -> Lane:
    """Our module at both ends, and servers that break the protocol."""
    mutated = Case(responder_2.test_server_sends_mutated_messages, (FEW_MUTATED,))
    return Lane("version-2", setups.client_debugged, [
        *(Plan("rxe", version, suites.SECOND_CHECK[version], protocol=2) for version in ("4.2", "3")),
        Plan("rxe", responder.VERSION, [mutated, *of(responder_2, responder_2.test_server_sends_mutated_messages)], protocol=2),
        Plan("rxe", responder.SESSION_VERSION, [responder_2.test_server_has_no_room_for_replies_of_version_2, *of(calls_back_2)], protocol=2)])


def _other_devices() -> list[Plan]:
    """iWARP at the client, and devices that play adapters."""
    return [
        Plan("siw", "4.0", [mount.test_small_files], IN_TREE), *_with_in_tree("siw", IN_TREE, OURS, "4.1"),
        Plan("siw", "4.0", [mount.test_small_files]),
        Plan("siw", "4.2", [mount.test_small_files, mount.test_callback_channel]),
        Plan("siw", responder.VERSION, [responder.test_server_says_too_little_of_itself, provider.test_server_provides_replies_in_many_pieces,
                                        provider.test_server_goes_silent_while_it_is_read, forged_keys.test_server_forges_a_key]),
        Plan("dma", "4.2", [mount.test_small_files, mount.test_every_header_type], protocol=2),
        Plan("worst", "4.2", [mount.test_small_files, mount.test_direct_unaligned], protocol=2),
        Plan("dma", "4.2", [*checked(suites.MAPPING), *suites.played(adapter.FAULTS_OF_A_CHECK),
                             adapter.test_nothing_stays_mapped]),
        Plan("bounce", "4.2", [mount.test_small_files, mount.test_callback_channel, mount.test_direct_unaligned,
                               mount.test_large_directory, adapter.test_nothing_stays_mapped]),
        Plan(adapter.INVALIDATES_NOTHING, "4.2", [adapter.test_keys_that_nobody_invalidates]),
        Plan("boastful", "4.2", [mount.test_small_files, adapter.test_nothing_stays_mapped])]
