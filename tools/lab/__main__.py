"""Machines and tools for rpcrdma.ko beside its tests. The Makefile's targets are the usual way in; see `make help`."""

import argparse
import sys
from collections.abc import Callable

import demo
import mutants
import packages
import progress
import try_mount
from bench import command as bench
from guests import image, kernels, module
from guests.arch import AMD64, ARM64
from series import command as series


def main() -> int:
    parser = argparse.ArgumentParser(prog="tools/lab", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    plain: dict[str, tuple[Callable[[], int], str]] = {
        "setup": (setup, "fill the cache without running a test"),
        "deb": (packages.run, "Debian packages"),
        "try": (try_mount.run, "the shortest way to a mount"),
        "demo": (demo.run, "a mount over RDMA, shown from the build to rmmod"),
        "series": (series.run, "the module as patches for a kernel's tree"),
        "bench": (bench.run, "what the module costs beside the in-tree one"),
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


def build_module(options: argparse.Namespace) -> int:
    """Build and say where the module is."""
    built = module.build(kernels.by_name(options.kernel), module.KUNIT if options.kunit else "")
    progress.line(f"built {built}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
