"""Tests of what `make` says of a kernel tree that it cannot build against."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import repository

CHECK = repository.ROOT / "tools/check-kdir"
RUSTC = "rustc 1.99.0 (made up)"
OPTIONS = ("CONFIG_64BIT=y", "CONFIG_RUST=y", "CONFIG_SUNRPC=m", "CONFIG_SUNRPC_BACKCHANNEL=y", "CONFIG_INFINIBAND=m", "CONFIG_INFINIBAND_ADDR_TRANS=y",
           f'CONFIG_RUSTC_VERSION_TEXT="{RUSTC}"')


class KernelTree(unittest.TestCase):
    def setUp(self) -> None:
        self.tree = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.programs = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.system = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def check(self, **variables: str) -> tuple[int, str]:
        environment = {**os.environ, "PATH": f"{self.programs}:{os.environ['PATH']}", "SYSFS": str(self.system)}
        for name in ("RUSTC", "ARCH"):
            environment.pop(name, None)
        environment |= variables
        done = subprocess.run([CHECK, self.tree], env=environment, capture_output=True, text=True, check=False)
        return done.returncode, done.stderr

    def refused(self, part: str, **variables: str) -> None:
        """One line, with the tree's name, what is wrong and what to do."""
        status, said = self.check(**variables)
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
        (self.tree / "rust/kernel").mkdir()
        (self.tree / "rust/kernel/error.rs").touch()
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
        for release in ("6.12.48+deb13-amd64", "7.1.13"):
            self.prepare(release, "CONFIG_RUST=y")
            self.refused("needs 7.2 or newer")

    def test_without_rust(self) -> None:
        self.prepare("7.3.4", "CONFIG_MODULES=y")
        self.refused("CONFIG_RUST=y")

    def test_modules_of_another_stack(self) -> None:
        """As MLNX_OFED puts them beside the kernel's own, in one of its places."""
        self.prepare("7.3.4", *OPTIONS)
        self.metadata()
        for place in ("updates/dkms", "extra/mlnx-ofa_kernel/drivers/infiniband/core", "weak-updates"):
            with self.subTest(place):
                self.program("modinfo", f"/lib/modules/7.3.4/{place}/ib_core.ko")
                self.refused("not the kernel's own ib_core")
        for well in ("/lib/modules/7.3.4/kernel/drivers/infiniband/core/ib_core.ko.xz", "(builtin)"):
            with self.subTest(well):
                self.program("modinfo", well)
                self.assertNotIn("ib_core", self.check()[1])

    def test_without_metadata(self) -> None:
        self.prepare("7.10.0", *OPTIONS)
        self.refused("libkernel.rmeta is missing")

    def test_without_an_option(self) -> None:
        """Each that the module needs: none of these configurations builds."""
        for name in ("64BIT", "RUST", "SUNRPC", "SUNRPC_BACKCHANNEL", "INFINIBAND", "INFINIBAND_ADDR_TRANS"):
            with self.subTest(name):
                self.prepare("7.3.4", *(option for option in OPTIONS if not option.startswith(f"CONFIG_{name}=")))
                self.refused({"64BIT": "for 32 bits"}.get(name, f"CONFIG_{name}"))

    def test_user_mode(self) -> None:
        self.prepare("7.3.4", *OPTIONS, "CONFIG_UML=y")
        self.refused("CONFIG_UML")

    def test_kconfig_wants_the_same(self) -> None:
        """What is refused here, a copy in a kernel tree does not offer, or brings along; as far as the tree's own option,
        SUNRPC_XPRT_RDMA, does not do so already."""
        entry = (repository.ROOT / "Kconfig").read_text().partition("config SUNRPC_XPRT_RDMA_RUST\n")[2].partition("\n\n")[0]
        wanted = {word for line in entry.splitlines() if line.startswith(("\tdepends on ", "\tselect "))
                  for word in line.split()[1:] if word.isupper() or word == "64BIT" or word == "!UML"}
        named = {option.removeprefix("CONFIG_").partition("=")[0] for option in OPTIONS}
        named -= {"RUSTC_VERSION_TEXT", "SUNRPC", "INFINIBAND", "INFINIBAND_ADDR_TRANS"}
        self.assertLessEqual(named | {"!UML"}, wanted)

    def test_another_architecture(self) -> None:
        """The tree's is told by the title of its configuration, and the module's by ARCH, or else by this machine."""
        self.metadata()
        self.program("rustc", RUSTC)
        self.program("bindgen", "bindgen 0.0")
        for tree, machine in (("x86", "x86_64"), ("arm64", "aarch64"), ("riscv", "riscv64")):
            with self.subTest(tree):
                self.prepare("7.3.4", f"# Linux/{tree} 7.3.4 Kernel Configuration", *OPTIONS)
                self.program("uname", machine)
                self.assertEqual(self.check(), (0, ""))
                self.refused(f"pass ARCH={tree}", ARCH="powerpc")
                self.program("uname", "ppc64le")
                self.refused(f"pass ARCH={tree}")
                self.assertEqual(self.check(ARCH=tree), (0, ""))

    def test_another_name_of_the_architecture(self) -> None:
        """As whoever configured the kernel has said it."""
        self.metadata()
        self.program("rustc", RUSTC)
        self.program("bindgen", "bindgen 0.0")
        self.prepare("7.3.4", "# Linux/x86_64 7.3.4 Kernel Configuration", *OPTIONS)
        self.program("uname", "x86_64")
        for variables in ({}, {"ARCH": "x86"}, {"ARCH": "x86_64"}):
            self.assertEqual(self.check(**variables), (0, ""))

    def test_without_the_source_of_the_crate(self) -> None:
        """From which it is seen what a kernel before 7.3 lacks."""
        self.metadata()
        (self.tree / "rust/kernel/error.rs").unlink()
        self.prepare("7.2.12", *OPTIONS)
        self.refused("rust/kernel is missing")
        self.program("rustc", RUSTC)
        self.program("bindgen", "bindgen 0.0")
        source = Path(self.enterContext(tempfile.TemporaryDirectory()))
        (source / "rust/kernel").mkdir(parents=True)
        (source / "rust/kernel/error.rs").touch()
        (self.tree / "source").symlink_to(source)
        self.assertEqual(self.check(), (0, ""))

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

    def test_without_types(self) -> None:
        """The running kernel's modules have types: a tree without them has modules of another layout."""
        (self.system / "kernel/btf").mkdir(parents=True)
        for name in ("vmlinux", "nfs"):
            (self.system / "kernel/btf" / name).touch()
        self.metadata()
        self.program("rustc", RUSTC)
        self.program("bindgen", "bindgen 0.0")
        self.program("uname", "7.3.4")
        self.prepare("7.3.4", *OPTIONS)
        self.refused("install pahole")
        self.prepare("7.3.4", *OPTIONS, "CONFIG_DEBUG_INFO_BTF_MODULES=y")
        self.assertEqual(self.check(), (0, ""))
        self.prepare("7.3.5", *OPTIONS)
        self.assertEqual(self.check(), (0, ""))
        (self.system / "kernel/btf/nfs").unlink()
        self.prepare("7.3.4", *OPTIONS)
        self.assertEqual(self.check(), (0, ""))

    def test_all_is_well(self) -> None:
        self.prepare("7.3.4", *OPTIONS)
        self.metadata()
        self.program("rustc", RUSTC)
        self.program("bindgen", "bindgen 0.0")
        self.assertEqual(self.check(), (0, ""))


if __name__ == "__main__":
    unittest.main()
