"""Tests of what `make` says of a kernel tree that it cannot build against."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import repository

CHECK = repository.ROOT / "tools/check-kdir"
RUSTC = "rustc 1.99.0 (made up)"
OPTIONS = ("CONFIG_RUST=y", "CONFIG_SUNRPC=m", "CONFIG_INFINIBAND=m", "CONFIG_INFINIBAND_ADDR_TRANS=y",
           f'CONFIG_RUSTC_VERSION_TEXT="{RUSTC}"')


class KernelTree(unittest.TestCase):
    def setUp(self) -> None:
        self.tree = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.programs = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def check(self) -> tuple[int, str]:
        environment = {**os.environ, "PATH": f"{self.programs}:{os.environ['PATH']}"}
        environment.pop("RUSTC", None)
        done = subprocess.run([CHECK, self.tree], env=environment, capture_output=True, text=True, check=False)
        return done.returncode, done.stderr

    def refused(self, part: str) -> None:
        """One line, with the tree's name, what is wrong and what to do."""
        status, said = self.check()
        self.assertEqual(status, 1)
        self.assertEqual(said.count("\n"), 1)
        self.assertTrue(said.startswith(f"{self.tree}: "))
        self.assertIn(part, said)

    def prepare(self, release: str, *options: str) -> None:
        (self.tree / "include/config").mkdir(parents=True, exist_ok=True)
        (self.tree / "include/config/kernel.release").write_text(f"{release}\n")
        (self.tree / "include/config/auto.conf").write_text("".join(f"{option}\n" for option in options))

    def metadata(self) -> None:
        (self.tree / "rust").mkdir()
        (self.tree / "rust/libkernel.rmeta").touch()
        (self.tree / "Module.symvers").write_text("0x0\tsymbol\tvmlinux\tEXPORT_SYMBOL\n")

    def program(self, name: str, version: str) -> None:
        program = self.programs / name
        program.write_text(f"#!/bin/sh\necho '{version}'\n")
        program.chmod(0o755)

    def test_no_tree(self) -> None:
        self.tree = self.tree / "absent"
        self.refused("pass KDIR=")

    def test_not_prepared(self) -> None:
        self.refused("make modules_prepare")

    def test_too_old(self) -> None:
        for release in ("6.12.48+deb13-amd64", "7.2.9"):
            self.prepare(release, "CONFIG_RUST=y")
            self.refused("needs 7.3 or newer")

    def test_without_rust(self) -> None:
        self.prepare("7.3.4", "CONFIG_MODULES=y")
        self.refused("CONFIG_RUST=y")

    def test_without_metadata(self) -> None:
        self.prepare("7.10.0", *OPTIONS)
        self.refused("libkernel.rmeta is missing")

    def test_without_rdma(self) -> None:
        self.prepare("7.3.4", *(option for option in OPTIONS if "ADDR_TRANS" not in option))
        self.refused("CONFIG_INFINIBAND_ADDR_TRANS")

    def test_in_tree_transport_built_in(self) -> None:
        self.prepare("7.3.4", *OPTIONS, "CONFIG_SUNRPC_XPRT_RDMA=y")
        self.refused("CONFIG_SUNRPC_XPRT_RDMA=m")

    def test_without_symbols(self) -> None:
        self.prepare("7.3.4", *OPTIONS)
        self.metadata()
        (self.tree / "Module.symvers").unlink()
        self.refused("Module.symvers is missing")

    def test_another_compiler(self) -> None:
        self.prepare("8.0.0-rc1", *OPTIONS)
        self.metadata()
        self.program("rustc", "rustc 1.98.0 (made up)")
        self.refused(f"built with {RUSTC}")

    def test_all_is_well(self) -> None:
        self.prepare("7.3.4", *OPTIONS)
        self.metadata()
        self.program("rustc", RUSTC)
        self.program("bindgen", "bindgen 0.0")
        self.assertEqual(self.check(), (0, ""))


if __name__ == "__main__":
    unittest.main()
