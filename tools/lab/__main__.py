"""Test machines for rpcrdma.ko. The Makefile's targets are the usual way in; see `make help`."""

import argparse
import functools
import sys
import time
from collections.abc import Callable

import adapters
import defects
import demo
import every_kernel
import host
import in_tree
import installation
import kunits
import matrix
import mounts
import mutants
import on_device
import packages
import progress
import single
import try_mount
from bench import command as bench
from guests import image, kernels, module, roots
from guests.arch import AMD64, ARM64
from observers import command as observers
from results import Results
from series import command as series


def main() -> int:
    parser = argparse.ArgumentParser(prog="tools/lab", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    plain: dict[str, tuple[Callable[[], int], str]] = {
        "setup": (setup, "fill the cache without running a test"),
        "deb": (packages.run, "Debian packages"),
        "check-deb": (installation.check, "the packages on a machine"),
        "check-tools": (observers.run, "the tools that people run, beside the in-tree module"),
        "try": (try_mount.run, "the shortest way to a mount"),
        "demo": (demo.run, "a mount over RDMA, shown from the build to rmmod"),
        "check": (check, "all tests"),
        "check-host": (host.run, "the tests that need no guest"),
        "check-kunit": (kunits.run, "the KUnit suites"),
        "check-mount": (mounts.run, "mounts between two guests"),
        "in-tree-check": (in_tree.run, "the module inside a kernel's tree"),
        "kernels": (every_kernel.run, "the module on every kernel of Debian's archive, and on plain ones"),
        "series": (series.run, "the module as patches for a kernel's tree"),
        "check-series": (series.check, "that each patch applies and builds"),
        "matrix": (matrix.run, "every test of the mounts in every cell"),
        "requester": (single.run_requester, "the raw requester against one server"),
        "responder": (single.run_responder, "the client against a server that breaks the protocol"),
        "life": (single.run_life, "connections, listeners and devices that come and go"),
        "memory": (single.run_memory, "a client whose memory is short"),
        "storm": (single.run_storm, "everything at once, while everything is broken"),
        "adapters": (adapters.run, "that all is well within the limits of adapters"),
        "on-device": (on_device.run, "a mount between two real machines, over ssh"),
        "soak": (mounts.soak, "the hard part of the mounts again and again"),
        "bench": (bench.run, "what the module costs beside the in-tree one"),
        "check-tests": (defects.run, "that planted defects are found"),
        "mutants": (mutants.run, "that mistakes in the protocol crate and the state machines are found"),
    }
    for name, (function, text) in plain.items():
        commands.add_parser(name, help=text).set_defaults(function=lambda options, function=function: function())

    run = commands.add_parser("run", help="run a command in the tool root, in this directory")
    run.add_argument("argv", nargs=argparse.REMAINDER)
    run.set_defaults(function=lambda options: module.in_tool_root(options.argv))

    build = commands.add_parser("module", help="build rpcrdma.ko for a kernel of the lab")
    build.add_argument("kernel", choices=("stock", "debug"))
    build.add_argument("--kunit", action="store_true", help="with the KUnit suites")
    build.set_defaults(function=build_module)

    options = parser.parse_args()
    return progress.main_guard(lambda: options.function(options))


def setup() -> int:
    """Make everything that comes from the archive or is built once."""
    for kernel in (kernels.stock(), kernels.debug()):
        image.initramfs(kernel)
        for device in kernels.DRIVERS:
            kernels.driver(kernel, device)
    image.disk(AMD64)
    # The module is built for it in any case.
    kernels.stock(ARM64)
    return 0


def check() -> int:
    """All parts; one that cannot even begin is one failed test."""
    began = time.monotonic()
    # Without these nothing can run, and each part would try to make them anew.
    roots.tool_root()
    kernels.debug()
    results = Results()
    _part("host", host.check, results)
    # Fuzzing has the processor that the guest leaves.
    results.side_by_side(functools.partial(_part, "kunit", kunits.check), "fuzz", functools.partial(_part, "fuzz", host.fuzz))
    _part("mount", mounts.check, results)
    progress.line(f"all tests took {progress.duration(time.monotonic() - began)}")
    return results.finish()


def _part(name: str, check: Callable[[Results], None], results: Results) -> None:
    try:
        check(results)
    except progress.Failure as failure:
        failure.tell_log()
        results.fail(f"{name}: could not run", failure.what)
    except OSError as error:
        results.fail(f"{name}: could not run", str(error))


def build_module(options: argparse.Namespace) -> int:
    """Build and say where the module is."""
    built = module.build(kernels.by_name(options.kernel), module.KUNIT if options.kunit else "")
    progress.line(f"built {built}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
