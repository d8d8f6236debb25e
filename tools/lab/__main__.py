"""Test machines for rpcrdma.ko. The Makefile's targets are the usual way in; see `make help`."""

import argparse
import sys

import kernels
import module
import say
import shortest


def main() -> int:
    parser = argparse.ArgumentParser(prog="tools/lab", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    run = commands.add_parser("run", help="run a command in the tool root, in this directory")
    run.add_argument("argv", nargs=argparse.REMAINDER)
    run.set_defaults(function=lambda options: module.in_tool_root(options.argv))

    build = commands.add_parser("module", help="build rpcrdma.ko for a kernel of the lab")
    build.add_argument("kernel", choices=("stock", "debug"))
    build.add_argument("--kunit", action="store_true", help="with the KUnit suites")
    build.set_defaults(function=build_module)

    attempt = commands.add_parser("try", help="the shortest way to a mount")
    attempt.set_defaults(function=lambda options: shortest.run())

    options = parser.parse_args()
    return say.main_guard(lambda: options.function(options))


def build_module(options: argparse.Namespace) -> int:
    """Build and say where the module is."""
    say.line(f"built {module.build(kernels.by_name(options.kernel), options.kunit)}")
    return 0


sys.exit(main())
