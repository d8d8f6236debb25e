"""The full list of tests in every cell that has our module, and a short one where machines are arm64, for a day when hours do
not matter; on the software devices, or on the one that DEVICE names."""

import os
from functools import partial

import settings
import setups
import suites
import test_keep_alive as keep_alive
import test_loading as loading
import test_mount as mount
import test_nodes as nodes
import test_reports as reports
from guests import devices
from guests.machine import CLIENT, SERVER
from guests.pair import IN_TREE, OURS
from plan import Lane, Plan, Test, of

# Where both modules are ours, one end of each device and of each version is debugged, and the other one elsewhere.
CLIENT_DEBUGGED = (("rxe", "4.2"), ("rxe", "4.0"), ("siw", "4.2"), ("siw", "4.1"))
# What is mounted where which ends are arm64 machines, and what is tested there beside what is in any cell: what would come
# out otherwise if architectures did not agree. Nothing that breaks connections, which the stock kernel cannot.
ARM64 = {(SERVER.name, CLIENT.name): (("rxe", "4.2"), ("rxe", "3"), ("siw", "4.2")),
         (CLIENT.name,): (("rxe", "4.2"),), (SERVER.name,): (("rxe", "4.2"),)}
OF_ARM64 = (mount.test_direct_unaligned, mount.test_large_directory, mount.test_trace_events_of_the_server, loading.test_types_for_bpf)
OF_ARM64_2: dict[str, list[Test]] = {
    "3": [mount.test_direct_unaligned, mount.test_large_directory],
    "4.2": [mount.test_direct_unaligned, mount.test_large_directory, mount.test_every_header_type]}
FULL = suites.FULL | {"3": [*suites.FULL["3"], reports.test_done_once_over_broken_connections]}


def lanes() -> list[Lane]:
    """By their guests, in an order that changes modules and devices seldom, and has Kerberos last."""
    kinds = _kinds()
    usual = [*_plain(kinds), *_second(kinds), *_secured(kinds)]
    lanes = [Lane(name, setup, [plan for plan in usual if _debugs_client(plan) == client])
             for name, setup, client in (("client", setups.CLIENT_LIGHT, True), ("server", setups.SERVER_LIGHT, False))]
    lanes.append(Lane("disk", setups.server_with_disk, [Plan(kinds[0], version, tests, disk=True)
                                                       for version, tests in suites.WITH_DISK.items()]))
    lanes.append(Lane("near-wrap", setups.near_wrap, [Plan(kinds[0], "4.2", suites.WRAPPED, protocol=2, near_wrap=True)]))
    lanes.append(Lane("nodes", setups.two_nodes, [Plan("dma", "4.2", of(nodes), nodes=True)]))
    return lanes + [Lane("-".join(["arm64", *ends]), partial(setups.arm64, ends), _emulated(kinds, ends)) for ends in ARM64]


def _kinds() -> tuple[str, ...]:
    return (settings.choice("DEVICE", devices.NAMES),) if os.environ.get("DEVICE") else devices.KINDS


def _whose(kinds: tuple[str, ...]) -> list[tuple[str, str]]:
    """The modules at both ends; not the in-tree server where a device follows what is mapped: it unmaps what it has read only
    when the request is over (svc_rdma_recv_ctxt_put()), and nfsd does not find it."""
    whose = [(OURS, OURS), (IN_TREE, OURS), (OURS, IN_TREE)]
    return [each for each in whose if each[0] == OURS or not devices.named(kinds[0]).plays]


def _fit(server: str, client: str, tests: list[Test]) -> list[Test]:
    """The in-tree module has other events, and fires them at other times; and its client does not ask."""
    of_client = (mount.test_trace_events_of_the_client, keep_alive.test_silent_server_noticed)
    return [test for test in tests if (server == OURS or test != mount.test_trace_events_of_the_server)
            and (client == OURS or test not in of_client)]


def _plain(kinds: tuple[str, ...]) -> list[Plan]:
    return [Plan(device, version, _fit(server, client, FULL[version]), server, client)
            for device in kinds for server, client in _whose(kinds) for version in FULL]


def _second(kinds: tuple[str, ...]) -> list[Plan]:
    return [Plan(device, version, tests, protocol=2) for device in kinds for version, tests in suites.SECOND.items()]


def _secured(kinds: tuple[str, ...]) -> list[Plan]:
    """One version with each of the modules, and another one on the other device, or on the only one."""
    second = suites.secured(suites.SECOND["4.2"], "4.2")
    cells = [*((kinds[0], "4.2", server, client) for server, client in _whose(kinds)), (kinds[-1], "3", OURS, OURS)]
    return [*(Plan(kinds[0], "4.2", second, security=security, protocol=2) for security in mount.SECURITIES),
            *(Plan(device, version, _fit_secured(version, server, client, security), server, client, security)
              for device, version, server, client in cells for security in mount.SECURITIES)]


def _fit_secured(version: str, server: str, client: str, security: str) -> list[Test]:
    """The in-tree server confuses the checksums of READs side by side (Documentation/differences.rst)."""
    tests = suites.secured(_fit(server, client, FULL[version]), version)
    confused = server == IN_TREE and security == "krb5i"
    return [test for test in tests if not confused or test not in suites.SIDE_BY_SIDE]


def _emulated(kinds: tuple[str, ...], ends: tuple[str, ...]) -> list[Plan]:
    return [Plan(device, version, tests, arm64=ends, protocol=protocol) for device, version in ARM64[ends] if device in kinds
            for protocol, tests in ((1, [*suites.SMOKE[version], *OF_ARM64]),
                                    (2, [*suites.second(suites.SMOKE[version]), *OF_ARM64_2[version]]))]


def _debugs_client(plan: Plan) -> bool:
    """Which end has the debugging kernel: ours, and where both are, one of them."""
    if plan.server == plan.client:
        return (devices.named(plan.device).kind, plan.version) in CLIENT_DEBUGGED
    return plan.client == OURS
