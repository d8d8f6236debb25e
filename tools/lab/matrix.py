"""`make matrix`: the full list of tests in every cell that has our module, and a short one where machines are arm64, for
a day when hours do not matter; on the software devices, or on the one that DEVICE names."""

import fnmatch
import os
import threading

import mounts
import progress
import repository
import settings
from guests import devices, kernels
from guests.cell import Test
from guests.machine import CLIENT, SERVER
from guests.pair import IN_TREE, OURS
from mounts import Worker, Outcome, Plan
from results import Results
from tests import loading, mount as mount_tests, nodes as nodes_tests, reports

TABLE = repository.BUILD / "matrix.txt"
# Where both modules are ours, one end of each device and of each version is debugged, and the other one elsewhere.
CLIENT_DEBUGGED = (("rxe", "4.2"), ("rxe", "4.0"), ("siw", "4.2"), ("siw", "4.1"))

# What is mounted where which ends are arm64 machines, and what is tested there beside what is in any cell: what would come
# out otherwise if architectures did not agree. Nothing that breaks connections, which the stock kernel cannot.
ARM64 = {(SERVER.name, CLIENT.name): (("rxe", "4.2"), ("rxe", "3"), ("siw", "4.2")),
         (CLIENT.name,): (("rxe", "4.2"),), (SERVER.name,): (("rxe", "4.2"),)}
OF_ARM64 = (mount_tests.UNALIGNED, mount_tests.DIRECTORY, mount_tests.TRACED, loading.DESCRIBED)
OF_ARM64_2 = {"3": [mount_tests.UNALIGNED, mount_tests.DIRECTORY],
              "4.2": [mount_tests.UNALIGNED, mount_tests.DIRECTORY, mount_tests.FORMS_2]}


def run() -> int:
    """Every cell that CELLS chooses, with the tests that TESTS does, the table, and the last line."""
    chosen = _chosen(_plans())
    usual = [plan for plan in chosen if not (plan.arm64 or plan.disk or plan.near_wrap or plan.nodes)]
    results, outcomes, lock = Results(), list[Outcome](), threading.Lock()

    def tell(outcome: Outcome) -> None:
        # After each, since a run takes hours and may be ended before its end.
        with lock:
            outcomes.append(outcome)
            TABLE.parent.mkdir(exist_ok=True)
            TABLE.write_text(_table(outcomes))

    workers = []
    for setup, client in ((mounts.client_debugged, True), (mounts.server_debugged, False)):
        plans = [plan for plan in usual if _debugs_client(plan) == client]
        if plans:
            # With all debugging options it would take twice as long; those are what `make check` is for.
            workers.append(Worker(setup(kernels.light()), plans))
    if plans := [plan for plan in chosen if plan.disk]:
        workers.append(Worker(mounts.server_with_disk(kernels.light()), plans))
    if plans := [plan for plan in chosen if plan.near_wrap]:
        workers.append(Worker(mounts.near_wrap(kernels.light()), plans))
    if plans := [plan for plan in chosen if plan.nodes]:
        workers.append(Worker(mounts.two_nodes(), plans))
    for ends in ARM64:
        if plans := [plan for plan in chosen if plan.arm64 == ends]:
            workers.append(Worker(mounts.arm64(ends), plans))
    mounts.run_workers(results, mounts.chosen(workers), tell)
    progress.line(_table(outcomes).rstrip())
    progress.line(f"the table is in {TABLE}")
    return results.finish()


def _plans() -> list[Plan]:
    """All cells, in an order that changes modules and devices seldom, and has Kerberos last."""
    wanted = os.environ.get("DEVICE")
    kinds = (settings.choice("DEVICE", devices.NAMES),) if wanted else devices.KINDS
    whose = [(OURS, OURS), (IN_TREE, OURS), (OURS, IN_TREE)]
    if devices.named(kinds[0]).plays:
        # That server unmaps what it has read only when the request is over (svc_rdma_recv_ctxt_put()): nfsd does not find it.
        whose.remove((IN_TREE, OURS))
    full = mount_tests.FULL | {"3": [*mount_tests.FULL["3"], reports.ONCE]}

    def fit(server: str, client: str, tests: list[Test]) -> list[Test]:
        # The in-tree module has other events, and fires them at other times; and its client does not ask.
        return [test for test in tests if (server == OURS or test != mount_tests.TRACED)
                and (client == OURS or test not in (mount_tests.TRACED_CLIENT, mount_tests.WATCHED))]

    plain = [Plan(device, version, server, client, fit(server, client, full[version]))
             for device in kinds for server, client in whose for version in full]
    # One version with each of the modules, and another one on the other device, or on the only one.
    secured = [*((kinds[0], "4.2", server, client) for server, client in whose), (kinds[-1], "3", OURS, OURS)]

    def fit_secured(version: str, server: str, client: str, security: str) -> list[Test]:
        tests = mount_tests.secured(fit(server, client, full[version]), version)
        # That server confuses the checksums of READs side by side (Documentation/differences.rst).
        confused = server == IN_TREE and security == "krb5i"
        return [test for test in tests if not confused or test not in mount_tests.SIDE_BY_SIDE]

    emulated = [Plan(device, version, OURS, OURS, tests, arm64=ends, protocol=protocol)
                for ends, mounted in ARM64.items() for device, version in mounted if device in kinds
                for protocol, tests in ((1, [*mount_tests.SMOKE[version], *OF_ARM64]),
                                        (2, [*mount_tests.second(mount_tests.SMOKE[version]), *OF_ARM64_2[version]]))]
    second = [Plan(device, version, OURS, OURS, tests, protocol=2)
              for device in kinds for version, tests in mount_tests.SECOND.items()]
    second_secured = [Plan(kinds[0], "4.2", OURS, OURS, mount_tests.secured(mount_tests.SECOND["4.2"], "4.2"), security, protocol=2)
                      for security in mount_tests.SECURITIES]
    on_disk = [Plan(kinds[0], version, OURS, OURS, tests, disk=True) for version, tests in reports.WITH_DISK.items()]
    wraps = [Plan(kinds[0], "4.2", OURS, OURS, mount_tests.WRAPPED, protocol=2, near_wrap=True)]
    nodes = [Plan("dma", "4.2", OURS, OURS, nodes_tests.TESTS, nodes=True)]
    return plain + second + wraps + nodes + emulated + on_disk + second_secured + [
        Plan(device, version, server, client, fit_secured(version, server, client, security), security)
        for device, version, server, client in secured for security in mount_tests.SECURITIES]


def _debugs_client(plan: Plan) -> bool:
    """Which end has the debugging kernel: ours, and where both are, one of them."""
    if plan.server == plan.client:
        return (devices.named(plan.device).kind, plan.version) in CLIENT_DEBUGGED
    return plan.client == OURS


def _chosen(plans: list[Plan]) -> list[Plan]:
    """The cells that CELLS names: the one of that name, or those whose name matches it as a pattern, or contains it."""
    wanted = os.environ.get("CELLS")
    if not wanted:
        return plans
    chosen = ([plan for plan in plans if plan.name == wanted]
              or [plan for plan in plans if fnmatch.fnmatchcase(plan.name, wanted)]
              or [plan for plan in plans if wanted in plan.name])
    if not chosen:
        raise progress.Failure(f"CELLS={wanted} chooses none of: {', '.join(plan.name for plan in plans)}")
    return chosen


def _table(outcomes: list[Outcome]) -> str:
    rows = [("cell", "passed", "failed", "time"),
            *((row.name, str(row.passed), str(row.failed), progress.duration(row.seconds)) for row in outcomes)]
    return "".join(f"{name:<34}{passed:>8}{failed:>8}{duration:>14}\n" for name, passed, failed, duration in rows)
