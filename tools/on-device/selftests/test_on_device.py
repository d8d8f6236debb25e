"""What `make on-device` does over ssh, with a shell in its place."""

import re
from pathlib import Path
from unittest import mock

import pytest

import rpcrdma_on_device as on_device
import statistics_line
from rpcrdma_on_device import LONG_SECONDS, Failure, Remote

MOUNTS = ("device proc mounted on /proc with fstype proc\n"
          "device a:/ mounted on /mnt/a with fstype nfs4 statvers=1.1\n\txprt:\ttcp 1 2\n"
          "device b:/ mounted on /mnt with fstype nfs4 statvers=1.1\n\txprt:\trdma 0 1 2 3\n")


@pytest.fixture
def remote(tmp_path: Path) -> Remote:
    """As ssh, it is given a host and a command."""
    ssh = tmp_path / "ssh"
    ssh.write_text('#!/bin/sh\ntest "$1" = root@one && exec sh -c "$2"\n')
    ssh.chmod(0o755)
    return Remote("root@one", (str(ssh),))


def test_says_what_is_printed(remote: Remote) -> None:
    assert remote.must("echo there", LONG_SECONDS) == "there\n"


def test_the_first_of_several_commands_fails(remote: Remote) -> None:
    with pytest.raises(Failure, match="root@one.*status 1"):
        remote.must("false; true", LONG_SECONDS)


def test_a_command_that_hangs(remote: Remote) -> None:
    with pytest.raises(Failure):
        remote.must("exec sleep 60", 0.2)


def test_a_copy_can_be_run(remote: Remote, tmp_path: Path) -> None:
    target = tmp_path / "files.py"
    remote.copy(on_device.TOOL, str(target))
    assert remote.must(f"{target} make {tmp_path}/d 5000 then check {tmp_path}/d; echo right", LONG_SECONDS) == "right\n"


@pytest.mark.parametrize("said", ["addr=192.0.2.1", "to 192.0.2.1:20049 lost", "addr=fd00:2::1", "to [fd00:2::1]:20049 lost",
                                  "[::1]:80"])
def test_addresses_are_hidden(said: str) -> None:
    """A report names no machine."""
    hidden = on_device.ADDRESS.sub("...", said)
    assert "..." in hidden and not re.search(r"\d", hidden)


@pytest.mark.parametrize("said", ["[   12.087901] rpcrdma: loaded", "READ of 1 MiB: 4, WRITE of 1 MiB: 4",
                                  "port 1: Ethernet 4: ACTIVE 2.5 Gb/sec"])
def test_nothing_else_is_hidden(said: str) -> None:
    assert on_device.ADDRESS.sub("...", said) == said


def test_every_number_has_a_name() -> None:
    assert len(statistics_line.in_words("\txprt:\trdma " + " ".join(map(str, range(28))))) == 28


def test_the_mount_is_found() -> None:
    """Among others."""
    assert on_device.statistics_of(mock.Mock(**{"must.return_value": MOUNTS}), "/mnt").split() == "xprt: rdma 0 1 2 3".split()


def test_a_mount_of_another_kind() -> None:
    with pytest.raises(Failure, match="/mnt/a of the client is no NFS mount over RDMA"):
        on_device.statistics_of(mock.Mock(**{"must.return_value": MOUNTS}), "/mnt/a")
