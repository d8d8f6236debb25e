"""Tests of what `make` says of a kernel tree that it cannot build against."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import repository

CHECK = repository.ROOT / "tools/check-kdir"
RUSTC = "rustc 1.99.0 (made up)"
OPTIONS = ("CONFIG_64BIT=y", "CONFIG_RUST=y", "CONFIG_SUNRPC=m", "CONFIG_SUNRPC_BACKCHANNEL=y", "CONFIG_INFINIBAND=m",
           "CONFIG_INFINIBAND_ADDR_TRANS=y", f'CONFIG_RUSTC_VERSION_TEXT="{RUSTC}"')
TREE, WELL = Path("tree"), (0, "")
# Of which release and configuration what is said.
REFUSED: dict[str, tuple[str, list[str], str]] = {
    "a little too old": ("7.1.13", ["CONFIG_RUST=y"], "needs 7.2 or newer"),
    "too old": ("6.12.48+deb13-amd64", ["CONFIG_RUST=y"], "needs 7.2 or newer"),
    "without Rust": ("7.3.4", ["CONFIG_MODULES=y"], "CONFIG_RUST=y"),
    "user mode": ("7.3.4", [*OPTIONS, "CONFIG_UML=y"], "CONFIG_UML"),
    "in-tree transport built in": ("7.3.4", [*OPTIONS, "CONFIG_SUNRPC_XPRT_RDMA=y"], "CONFIG_SUNRPC_XPRT_RDMA=m")}


@pytest.fixture(autouse=True)
def all_is_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tree that can be built against, with its compilers, and nothing in sysfs."""
    monkeypatch.chdir(tmp_path)
    for name in ("programs", "tree/rust/kernel"):
        Path(name).mkdir(parents=True)
    monkeypatch.setenv("PATH", f"{tmp_path}/programs:{os.environ['PATH']}")
    monkeypatch.setenv("SYSFS", f"{tmp_path}/sys")
    for name in ("RUSTC", "BINDGEN", "ARCH"):
        monkeypatch.delenv(name, raising=False)
    prepare("7.3.4", *OPTIONS)
    for name in ("libkernel.rmeta", "kernel/error.rs"):
        (TREE / "rust" / name).touch()
    (TREE / "Module.symvers").write_text("0x0\tsymbol\tvmlinux\tEXPORT_SYMBOL\n")
    program("rustc", RUSTC)
    program("bindgen", "bindgen 0.0")


def check(**variables: str) -> tuple[int, str]:
    done = subprocess.run([CHECK, TREE.absolute()], env={**os.environ, **variables}, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def refused(part: str, **variables: str) -> None:
    """One line, with the tree's name, what is wrong and what to do."""
    status, said = check(**variables)
    assert status == 1 and said.count("\n") == 1 and said.startswith(f"{TREE.absolute()}: ") and part in said


def prepare(release: str, *options: str) -> None:
    (TREE / "include/config").mkdir(parents=True, exist_ok=True)
    (TREE / "include/config/kernel.release").write_text(f"{release}\n")
    (TREE / "include/config/auto.conf").write_text("".join(f"{option}\n" for option in options))


def program(name: str, said: str) -> None:
    Path("programs", name).write_text(f"#!/bin/sh\necho '{said}'\n")
    Path("programs", name).chmod(0o755)


def test_all_is_well() -> None:
    assert check() == WELL


def test_no_tree() -> None:
    shutil.rmtree(TREE)
    refused("pass KDIR=")


def test_not_prepared() -> None:
    shutil.rmtree(TREE / "include")
    refused("make modules_prepare")


@pytest.mark.parametrize(("release", "options", "part"), REFUSED.values(), ids=REFUSED)
def test_refused(release: str, options: list[str], part: str) -> None:
    prepare(release, *options)
    refused(part)


@pytest.mark.parametrize("name", ["64BIT", "RUST", "SUNRPC", "SUNRPC_BACKCHANNEL", "INFINIBAND", "INFINIBAND_ADDR_TRANS"])
def test_without_an_option(name: str) -> None:
    """Each that the module needs: none of these configurations builds."""
    prepare("7.3.4", *(option for option in OPTIONS if not option.startswith(f"CONFIG_{name}=")))
    refused({"64BIT": "for 32 bits"}.get(name, f"CONFIG_{name}"))


@pytest.mark.parametrize("place", ["updates/dkms", "extra/mlnx-ofa_kernel/drivers/infiniband/core", "weak-updates"])
def test_modules_of_another_stack(place: str) -> None:
    """As MLNX_OFED puts them beside the kernel's own, in one of its places."""
    program("modinfo", f"/lib/modules/7.3.4/{place}/ib_core.ko")
    refused("not the kernel's own ib_core")


@pytest.mark.parametrize("place", ["/lib/modules/7.3.4/kernel/drivers/infiniband/core/ib_core.ko.xz", "(builtin)"])
def test_modules_of_the_kernel(place: str) -> None:
    program("modinfo", place)
    assert check() == WELL


@pytest.mark.parametrize(("release", "name", "part"), [
    ("7.10.0", "rust/libkernel.rmeta", "libkernel.rmeta is missing"), ("7.3.4", "Module.symvers", "Module.symvers is missing")])
def test_without_metadata_or_symbols(release: str, name: str, part: str) -> None:
    prepare(release, *OPTIONS)
    (TREE / name).unlink()
    refused(part)


def test_kconfig_wants_the_same() -> None:
    """What is refused here, a copy in a kernel tree does not offer, or brings along; as far as the tree's own option,
    SUNRPC_XPRT_RDMA, does not do so already."""
    entry = (repository.ROOT / "Kconfig").read_text().partition("config SUNRPC_XPRT_RDMA_RUST\n")[2].partition("\n\n")[0]
    wanted = {word for line in entry.splitlines() if line.startswith(("\tdepends on ", "\tselect "))
              for word in line.split()[1:] if word.isupper() or word == "64BIT" or word == "!UML"}
    named = {option.removeprefix("CONFIG_").partition("=")[0] for option in OPTIONS}
    named -= {"RUSTC_VERSION_TEXT", "SUNRPC", "INFINIBAND", "INFINIBAND_ADDR_TRANS"}
    assert named | {"!UML"} <= wanted


@pytest.mark.parametrize(("tree", "machine"), [("x86", "x86_64"), ("arm64", "aarch64"), ("riscv", "riscv64")])
def test_another_architecture(tree: str, machine: str) -> None:
    """The tree's is told by the title of its configuration, and the module's by ARCH, or else by this machine."""
    prepare("7.3.4", f"# Linux/{tree} 7.3.4 Kernel Configuration", *OPTIONS)
    program("uname", machine)
    assert check() == WELL
    refused(f"pass ARCH={tree}", ARCH="powerpc")
    program("uname", "ppc64le")
    refused(f"pass ARCH={tree}")
    assert check(ARCH=tree) == WELL


@pytest.mark.parametrize("variables", [{}, {"ARCH": "x86"}, {"ARCH": "x86_64"}])
def test_another_name_of_the_architecture(variables: dict[str, str]) -> None:
    """As whoever configured the kernel has said it."""
    prepare("7.3.4", "# Linux/x86_64 7.3.4 Kernel Configuration", *OPTIONS)
    program("uname", "x86_64")
    assert check(**variables) == WELL


def test_without_the_source_of_the_crate() -> None:
    """From which it is seen what a kernel before 7.3 lacks."""
    (TREE / "rust/kernel/error.rs").unlink()
    prepare("7.2.12", *OPTIONS)
    refused("rust/kernel is missing")
    Path("source/rust/kernel").mkdir(parents=True)
    Path("source/rust/kernel/error.rs").touch()
    (TREE / "source").symlink_to(Path("source").absolute())
    assert check() == WELL


def test_another_compiler() -> None:
    prepare("8.0.0-rc1", *OPTIONS)
    program("rustc", "rustc 1.98.0 (made up)")
    refused(f"built with {RUSTC}")


def test_without_types() -> None:
    """The running kernel's modules have types: a tree without them has modules of another layout."""
    types = Path("sys/kernel/btf")
    types.mkdir(parents=True)
    for name in ("vmlinux", "nfs"):
        (types / name).touch()
    program("uname", "7.3.4")
    refused("install pahole")
    prepare("7.3.4", *OPTIONS, "CONFIG_DEBUG_INFO_BTF_MODULES=y")
    assert check() == WELL
    prepare("7.3.5", *OPTIONS)
    assert check() == WELL
    (types / "nfs").unlink()
    prepare("7.3.4", *OPTIONS)
    assert check() == WELL
