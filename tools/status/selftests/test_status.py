"""What is read of the module's file, and what is made of it."""

import re
import sys
from pathlib import Path
from unittest import mock

import pytest

import rpcrdma_status

LISTED = """\
transport 3 to 192.0.2.1:20049: connected
\tgrant: 32
\toutstanding: 5
\tattempts: 4
\tlost: 2, the server has closed it
\tlost: 1, a reply is overdue
transport 4 to [2001:db8::1]:20049: no connection for 12 s, it is refused
\tgrant: 1
\toutstanding: 0
\tattempts: 7
client of 192.0.2.1:20049: version 1, no other is allowed
\tdevice: mlx5_0/1
\tage: 7384 s
\tinline: 8192 sent, 4096 received
\tremote invalidation: on
\tpulls: off, the server provides no Replies
\tcontinuation: off, version 1 has none
\ttransport: 3
\tkeep-alive: on, silent for 30 s, probed
server of 192.0.2.9:683: version not known yet
\tdevice: mlx5_0/1
\tage: 0 s
\tsomething new: 7
\tgrant: 16
\toutstanding: 1
\tmessages: 9
"""
TASKS = """\
13440 0801      0 0x4 0xa68ad9e7    59967 nfs4_read_ops [nfsv4] nfsv4 READ a:call_status [sunrpc] q:xprt_pending
13441 0801    -11 0x4 0x0        0 nfs4_read_ops [nfsv4] nfsv4 READ a:call_connect_status [sunrpc] q:xprt_pending
13442 0801      0 0x4 0x10        0 0xffffffffc0a nfsv4 WRITE a:call_reserveresult [sunrpc] q:xprt_backlog
"""
CLIENT, LOST, SERVER = ALL = rpcrdma_status.read(LISTED)


def test_a_mount_has_what_is_known_of_its_transport() -> None:
    one = CLIENT
    assert (one.end, one.peer, one.netid, one.version, one.why, one.transport) == (
        "client", "192.0.2.1:20049", "rdma", 1, "no other is allowed", 3)
    assert (one.device, one.age_seconds, one.inline_send, one.inline_receive) == ("mlx5_0/1", 7384, 8192, 4096)
    assert (one.connected, one.grant, one.outstanding, one.attempts) == (True, 32, 5, 4)
    assert one.losses == {"the server has closed it": 2, "a reply is overdue": 1}
    assert one.choices["remote invalidation"] == rpcrdma_status.Choice(True, "")
    assert one.choices["pulls"] == rpcrdma_status.Choice(False, "the server provides no Replies")
    assert one.choices["keep-alive"] == rpcrdma_status.Choice(True, "silent for 30 s, probed")


def test_a_transport_without_a_connection_is_there() -> None:
    one = LOST
    assert (one.end, one.netid, one.version, one.connected, one.outage_seconds) == ("client", "rdma6", None, False, 12)
    assert (one.state, one.attempts) == ("no connection for 12 s, it is refused", 7)


def test_a_client_of_this_server() -> None:
    one = SERVER
    assert (one.end, one.version, one.why, one.grant, one.outstanding, one.messages, one.attempts) == (
        "server", None, "not known yet", 16, 1, 9, None)


def test_a_copy_with_blanks_for_tabs() -> None:
    assert rpcrdma_status.read("\n" + LISTED.replace("\t", "        ").replace("server of", "\nserver of")) == ALL


def test_more_than_is_known_here() -> None:
    one, = rpcrdma_status.read("client of 192.0.2.1:20049: version 3, new\n\tinline: not known\n\tpulls: perhaps\n\tx\n")
    assert (one.version, one.inline_send, one.choices["pulls"].on) == (3, None, False)


def test_nothing_and_nonsense() -> None:
    assert rpcrdma_status.read("") == []
    with pytest.raises(rpcrdma_status.Failure):
        rpcrdma_status.read("something else\n")


@pytest.mark.parametrize("ports, said", [("rdma 20049\ntcp 2049\n", "listens"), ("tcp 2049\n", "does not listen"),
                                         (None, "does not listen")])
def test_without_connections(ports: str | None, said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
                             capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "connections").touch()
    if ports is not None:
        (tmp_path / "ports").write_text(ports)
    monkeypatch.setattr(rpcrdma_status, "CONNECTIONS", tmp_path / "connections")
    monkeypatch.setattr(rpcrdma_status, "PORTS", tmp_path / "ports")
    monkeypatch.setattr(sys, "argv", ["rpcrdma-status"])
    assert rpcrdma_status.main() == 0
    assert capsys.readouterr().out == f"no connections; nfsd {said} for RDMA\n"


def test_who_is_not_root_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(rpcrdma_status, "CONNECTIONS", mock.Mock(**{"read_text.side_effect": PermissionError}, __str__=lambda self: "it"))
    monkeypatch.setattr(sys, "argv", ["rpcrdma-status"])
    assert rpcrdma_status.main() == 1
    assert capsys.readouterr().err == "rpcrdma-status: only root may read it\n"


def test_the_table_has_a_line_for_each_and_reasons_below() -> None:
    lines = list(rpcrdma_status.table(ALL))
    _, client, lost, _ = (line.split() for line in lines if not line.startswith(" "))
    assert client == "client 192.0.2.1:20049 rdma 1 mlx5_0/1 2 h 3 min 32 5 8192/4096".split()
    assert lost == "client [2001:db8::1]:20049 rdma6 - - - 1 0 -".split()
    assert "    lost: the server has closed it (2); a reply is overdue (1)" in lines
    assert "    no connection for 12 s, it is refused" in lines
    assert "    pulls: off, the server provides no Replies" in lines


def test_each_metric_is_described_and_has_labels_of_its_own() -> None:
    lines = list(rpcrdma_status.metrics(ALL))
    values = [line for line in lines if not line.startswith("#")]
    assert len({line.rpartition(" ")[0] for line in values}) == len(values)
    assert {re.split("[{ ]", line)[0] for line in values} == {line.split()[2] for line in lines if line.startswith("# TYPE")}
    assert "rpcrdma_up 1" in lines
    assert 'rpcrdma_losses_total{end="client",peer="192.0.2.1:20049",transport="3",reason="a reply is overdue"} 1' in lines
    assert 'rpcrdma_connected{end="client",peer="[2001:db8::1]:20049",transport="4"} 0' in lines


def test_of_the_kernels_own_module_no_more_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rpcrdma_status, "MODULE", Path("/"))
    assert [line for line in rpcrdma_status._up(0) if not line.startswith("#")] == ["rpcrdma_up 0"]


def test_of_two_with_the_same_labels_there_is_one() -> None:
    twice = rpcrdma_status.read(LISTED + LISTED[LISTED.index("client of"):LISTED.index("server of")].replace("7384", "1"))
    line, = (line for line in rpcrdma_status.metrics(twice) if line.startswith("rpcrdma_age_seconds{end=\"client\""))
    assert line.rpartition(" ")[2] == "1"


@pytest.mark.parametrize(("seconds", "text"), [(None, "-"), (0, "0 s"), (59, "59 s"), (60, "1 min 0 s"), (3600, "1 h 0 min"),
                                               (90000, "1 d 1 h")])
def test_durations(seconds: int | None, text: str) -> None:
    assert rpcrdma_status.duration(seconds) == text


def test_what_tasks_wait_for() -> None:
    tasks = rpcrdma_status.tasks(TASKS)
    assert [rpcrdma_status.waits(task) for task in tasks] == ["for a Reply", "for a connection", "for a slot"]
    assert (tasks[0]["procedure"], tasks[0]["xid"]) == ("READ", "0xa68ad9e7")


@pytest.mark.parametrize(("netid", "address", "peer"), [("rdma", "192.0.2.1", "192.0.2.1:20049"),
                                                        ("rdma6", "2001:db8::1", "[2001:db8::1]:20049")])
def test_the_address_is_as_the_module_writes_it(netid: str, address: str, peer: str) -> None:
    assert rpcrdma_status.peer_of(f"netid: {netid}\naddr:  {address}\nport:  20049\nstate: 0x11\nnetns: 1\n") == peer
