"""A second implementation of RPC-over-RDMA version 2, to test the first one with.

It is written from the draft, and not from the module. Where both read the draft otherwise its text has decided, and
Documentation/version-2.rst says how. Usage: python3 referee COMMAND
"""

import argparse
import sys
from pathlib import Path

import differential
import link
from breaks import broken
from conversation import Conversation
from generator import Generator
from judge import judge
from rules import RULES


def main() -> int:
    """Run one command; status 1 if the judge has found that a rule is broken."""
    chosen = _arguments()
    match chosen.command:
        case "decode":
            differential.run(sys.stdin, sys.stdout)
        case "generate":
            for case in Generator(chosen.seed).cases(chosen.count):
                print(differential.compact(case))
        case "judge":
            return _judge(chosen.file, chosen.before)
        case "converse":
            messages = broken(chosen.rule) if chosen.rule else Conversation().run()
            link.write(chosen.file, chosen.kind, messages)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="referee", description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("decode", help="say what a receiver makes of messages: lines of JSON in, lines of JSON out")
    generate = commands.add_parser("generate", help="print messages for decode")
    generate.add_argument("count", type=int, help="how many messages")
    generate.add_argument("seed", type=int, help="the same messages for the same seed")
    judged = commands.add_parser("judge", help="say what a capture holds and which rules its senders break")
    judged.add_argument("file", type=Path, help="a capture")
    judged.add_argument("--before", type=int, default=0, metavar="N", help="messages that each end has counted before the first")
    converse = commands.add_parser("converse", help="write a capture of a raw requester and a raw responder")
    converse.add_argument("kind", choices=("roce", "iwarp"), help="what carries it")
    converse.add_argument("file", type=Path, help="the capture")
    converse.add_argument("--break", dest="rule", choices=RULES, metavar="RULE", help="break this rule: " + ", ".join(RULES))
    return parser.parse_args()


def _judge(path: Path, before: int) -> int:
    try:
        connections = link.read(path)
    except link.Incomplete as fault:
        sys.exit(f"{path}: {fault}")
    if not connections:
        # Nothing that was judged must not pass for something that is good.
        sys.exit(f"{path}: no connection")
    is_good = True
    for connection in connections:
        print(connection.name)
        for judged in judge(connection.messages, before):
            print(judged)
            is_good = is_good and not judged.findings
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
