"""What `make on-device` does over ssh, with a shell in its place."""

import tempfile
import unittest
from pathlib import Path

import on_device
import progress
from guests.cell import LONG_SECONDS


class RemoteTest(unittest.TestCase):
    """As ssh, it is given a host and a command."""

    def setUp(self) -> None:
        self.directory = Path(self.enterContext(tempfile.TemporaryDirectory()))
        ssh = self.directory / "ssh"
        ssh.write_text('#!/bin/sh\ntest "$1" = root@one && exec sh -c "$2"\n')
        ssh.chmod(0o755)
        self.remote = on_device.Remote("root@one", (str(ssh),))

    def test_says_what_is_printed(self) -> None:
        self.assertEqual(self.remote.must("echo there", LONG_SECONDS), "there\n")

    def test_the_first_of_several_commands_fails(self) -> None:
        with self.assertRaisesRegex(progress.Failure, "root@one.*status 1"):
            self.remote.must("false; true", LONG_SECONDS)

    def test_a_command_that_hangs(self) -> None:
        with self.assertRaises(progress.TimedOut):
            self.remote.must("exec sleep 60", 0.2)

    def test_a_copy_can_be_run(self) -> None:
        target = self.directory / "files.py"
        self.remote.copy(on_device.TOOL, str(target))
        said = self.remote.must(f"{target} make {self.directory}/d 5000 then check {self.directory}/d; echo right", LONG_SECONDS)
        self.assertEqual(said, "right\n")


class AddressTest(unittest.TestCase):
    """A report names no machine."""

    def test_hidden(self) -> None:
        for said in ("addr=192.0.2.1", "to 192.0.2.1:20049 lost", "addr=fd00:2::1", "to [fd00:2::1]:20049 lost", "[::1]:80"):
            hidden = on_device.ADDRESS.sub("...", said)
            self.assertNotRegex(hidden, r"\d")
            self.assertIn("...", hidden)

    def test_nothing_else(self) -> None:
        for said in ("[   12.087901] rpcrdma: loaded", "READ of 1 MiB: 4, WRITE of 1 MiB: 4", "port 1: Ethernet 4: ACTIVE 2.5 Gb/sec"):
            self.assertEqual(on_device.ADDRESS.sub("...", said), said)


class MountstatsTest(unittest.TestCase):
    """The transport of the one mount among others."""

    LINES = ("device proc mounted on /proc with fstype proc\n"
             "device a:/ mounted on /mnt/a with fstype nfs4 statvers=1.1\n\txprt:\ttcp 1 2\n"
             "device b:/ mounted on /mnt with fstype nfs4 statvers=1.1\n\txprt:\trdma 0 1 2 3\n")

    class Printing:
        def must(self, command: str, seconds: float) -> str:
            return MountstatsTest.LINES

    def test_found(self) -> None:
        self.assertEqual(on_device._statistics(self.Printing(), "/mnt").split(), "xprt: rdma 0 1 2 3".split())

    def test_of_another_kind(self) -> None:
        with self.assertRaisesRegex(progress.Failure, "/mnt/a of the client is no NFS mount over RDMA"):
            on_device._statistics(self.Printing(), "/mnt/a")
