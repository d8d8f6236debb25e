"""rpcrdma-status on a machine of Debian, and what monitoring makes of that."""

import json
import re
from typing import Any

import progress
from guests.system import System
from observed import IN_TREE_ALONE, OURS_ALONE, Observed
from observers.machine import STATUS_DIRECTORY

STATUS = "/lab/rpcrdma_status.py"
COLLECTED = "/var/lib/prometheus/node-exporter/rpcrdma.prom"
# promtool finds what is to be tested beside the directory of the tests.
ALERTS = ("mkdir -p /tmp/status/selftests && cd /tmp/status && cp /lab/rpcrdma-alerts.yml . && cp /lab/alerts.yml selftests && "
          "promtool check rules rpcrdma-alerts.yml && promtool test rules selftests/alerts.yml")
METRIC = re.compile(r"\brpcrdma_[a-z_]+\b")


def status_of(system: System) -> list[dict[str, Any]]:
    """The connections as objects."""
    return list(json.loads(system.must(f"{STATUS} --json")))


def print_if_failed(system: System, command: str) -> None:
    """Run a command that says on its standard output what is wrong."""
    system.must(f"{{ {command}; }} > /tmp/said 2>&1 || {{ cat /tmp/said >&2; exit 1; }}")


@OURS_ALONE
def test_both_ends_of_a_mount(observed: Observed) -> None:
    """Both ends of a mount say what they are to say, and agree."""
    # A new grant goes with the next Reply.
    observed.system.must("for n in 1 2 3; do touch /mnt/status; sync /mnt/status; done; rm /mnt/status")
    (observed.directory / "rpcrdma-status").write_text(observed.system.must(STATUS))
    (observed.directory / "connections").write_text(observed.system.must("cat /sys/kernel/debug/rpcrdma/connections"))
    client, server = status_of(observed.system)
    link = observed.system.must("rdma link show").split()[1]
    for end, one in (("client", client), ("server", server)):
        wanted = {"end": end, "device": link, "netid": "rdma", "version": 1, "connected": True, "outstanding": 0}
        if differ := {name: one[name] for name, value in wanted.items() if one[name] != value}:
            raise progress.Failure(f"the {end} is to have {wanted}, and has {differ}")
    # One is kept for the probe.
    if client["inline_send"] != server["inline_receive"] or client["grant"] != server["grant"] - 1:
        raise progress.Failure(f"the ends do not agree: {client}, {server}")


@OURS_ALONE
def test_metrics_as_node_exporter_has_them(observed: Observed) -> None:
    """node_exporter takes the file, promtool finds nothing in it, and the dashboard and the alerts ask for nothing else."""
    observed.system.must(f"mkdir -p $(dirname {COLLECTED}) && {STATUS} --metrics --output {COLLECTED}")
    print_if_failed(observed.system, f"promtool check metrics < {COLLECTED}")
    written = observed.system.must(f"cat {COLLECTED}")
    (observed.directory / "rpcrdma-metrics").write_text(written)
    exported = observed.system.must("curl -s localhost:9100/metrics | grep '^rpcrdma_'")
    values = [line for line in written.splitlines() if not line.startswith("#")]
    # It sorts them, and the labels of each.
    if sorted(map(_parts, values)) != sorted(map(_parts, exported.splitlines())):
        raise progress.Failure(f"node_exporter has not what was written:\n{exported}")
    had = {re.split("[{ ]", line)[0] for line in values} | {"rpcrdma_losses_total", "rpcrdma_waiting"}
    asked = {name for file in ("rpcrdma-dashboard.json", "rpcrdma-alerts.yml")
             for line in (STATUS_DIRECTORY / file).read_text().splitlines() if "expr" in line for name in METRIC.findall(line)}
    if not asked or asked - had:
        raise progress.Failure(f"asked for, and not there: {', '.join(sorted(asked - had))}")
    json.loads((STATUS_DIRECTORY / "rpcrdma-dashboard.json").read_text())


def _parts(line: str) -> tuple[str, ...]:
    """The name, the labels that are not empty, which is as good as none, and the value."""
    name, _, value = line.rpartition(" ")
    return (name.partition("{")[0], *sorted(re.findall(r'\w+="(?:[^"\\]|\\.)+"', name)), value)


@OURS_ALONE
def test_alerts(observed: Observed) -> None:
    """promtool finds nothing wrong in them, and each fires when it has to."""
    print_if_failed(observed.system, ALERTS)


@OURS_ALONE
def test_root_alone(observed: Observed) -> None:
    """Nobody else may read it."""
    result = observed.system.run("setpriv --reuid nobody --regid nogroup --clear-groups /lab/rpcrdma_status.py")
    if result.status != 1 or "Permission denied" not in result.err:
        raise progress.Failure(f"status {result.status}: {result.out}{result.err}")


@IN_TREE_ALONE
def test_status_of_the_in_tree_module(observed: Observed) -> None:
    """It says that there is nothing to tell."""
    result = observed.system.run(STATUS)
    if result.status != 1 or "the module is the kernel's own" not in result.err:
        raise progress.Failure(f"status {result.status}: {result.err.strip()}")
