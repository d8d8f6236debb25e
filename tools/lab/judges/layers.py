"""The layers of the module: an arrow from file to file, which a `use` line makes, points down, and none makes a circle."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import progress
import repository

MODULE = repository.ROOT / "rust"
PROTOCOL = repository.ROOT / "xdr" / "src"
# From the top down: a folder's files use those of the folders behind it, and their own.
LAYERS = ("rpcrdma_main", "server", "client", "transport", "kapi/sunrpc", "kapi/trace", "kapi/ib", "kapi/page", "kapi/sys",
          "kapi/bindings")
# Pairs that do not know each other, though one stands above the other: verbs know nothing of RPC, nor the RPC layer of verbs.
STRANGERS = {("server", "client"), ("kapi/sunrpc", "kapi/ib"), ("kapi/ib", "xdr"), ("kapi/sys", "xdr"), ("kapi/page", "xdr")}

COMMENT = re.compile(r"//[^\n]*")
USE = re.compile(r"^[ \t]*(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);", re.M)
MOD = re.compile(r"^[ \t]*(?:pub(?:\([^)]*\))?\s+)?mod\s+(\w+);", re.M)
INLINE = re.compile(r"\bcrate(?:::\w+)+")
TOKEN = re.compile(r"[{},]|::|\bas\s+\w+|\w+|\*")

Module = tuple[str, ...]


@dataclass(frozen=True)
class Source:
    """A file of a crate."""

    module: Module
    text: str


def check() -> None:
    """Fail if a file uses what is above it, or if files use each other in a circle."""
    module, protocol = arrows_of(sources(MODULE)), arrows_of(sources(PROTOCOL))
    wrong = [*upward(module), *circles(module), *(f"xdr: {each}" for each in circles(protocol))]
    if wrong:
        raise progress.Failure(f"{len(wrong)} in all: " + "; ".join(wrong[:20]),
                          "let the arrow point down (LAYERS in tools/lab/judges/layers.py)")


def sources(root: Path) -> list[Source]:
    """The files of a crate, tests and what stands in for a device left out."""
    paths = [path for path in sorted(root.rglob("*.rs")) if not {"tests", "tests.rs", "fake", "fake.rs"} & set(path.parts)]
    return [Source(path.relative_to(root).with_suffix("").parts, path.read_text()) for path in paths]


def arrows_of(files: list[Source]) -> dict[Module, set[Module]]:
    """What each file uses: files, and crates as modules of one name."""
    modules = {() if each.module in {("rpcrdma_main",), ("lib",)} else each.module: each for each in files}
    exports = {module: dict(_exports(module, each.text)) for module, each in modules.items()}
    return {module: {target for path in _paths(module, each.text)
                     if (target := _target(path, modules, exports)) is not None and target != module}
            for module, each in modules.items()}


def upward(arrows: Mapping[Module, set[Module]]) -> list[str]:
    """Files with arrows that point up, or to a stranger."""
    wrong = set()
    for module, targets in arrows.items():
        for target in targets:
            above, below = _layer(module), _layer(target)
            ranks = [LAYERS.index(each) if each in LAYERS else len(LAYERS) for each in (above, below)]
            if ranks[0] > ranks[1] or (above, below) in STRANGERS:
                wrong.add(f"{_name(module)} uses {below}")
    return sorted(wrong)


def circles(arrows: Mapping[Module, set[Module]]) -> list[str]:
    """Files that are used by what they use."""
    return [f"{_name(module)} is in a circle" for module in sorted(arrows) if module in _reached(arrows, module)]


def _reached(arrows: Mapping[Module, set[Module]], start: Module) -> set[Module]:
    reached: set[Module] = set()
    waiting = list(arrows[start])
    while waiting:
        module = waiting.pop()
        if module not in reached:
            reached.add(module)
            waiting += arrows.get(module, ())
    return reached


def _layer(module: Module) -> str:
    if not module:
        return LAYERS[0]
    return "/".join(module[:2]) if module[0] == "kapi" else module[0]


def _name(module: Module) -> str:
    return "/".join(module) or "the root"


def _paths(module: Module, text: str) -> Iterator[Module]:
    """What a file names of others, as paths from the root of its crate; those of other crates begin with their name."""
    code = COMMENT.sub("", text)
    for public, tree in USE.findall(code):
        for path in leaves(tree):
            # What is passed on to others is theirs, not this file's.
            if not (public and path[0] == "self"):
                yield _absolute(module, path)
    rest = USE.sub("", code)
    for inline in INLINE.findall(rest):
        yield tuple(inline.split("::")[1:])
    for child in MOD.findall(rest):
        for item in re.findall(rf"(?<![\w:]){child}::(\w+)", rest):
            yield (*module, child, item)


def _exports(module: Module, text: str) -> Iterator[tuple[str, Module]]:
    """What a file passes on of its children, by name."""
    for public, tree in USE.findall(COMMENT.sub("", text)):
        if public:
            for path in leaves(tree):
                yield path[-1], _absolute(module, path)


def leaves(tree: str) -> list[Module]:
    """The paths of a tree of `use`."""
    tokens = TOKEN.findall(tree)

    def branch(prefix: Module) -> list[Module]:
        path, found = prefix, []
        while tokens:
            token = tokens.pop(0)
            if token == "{":
                while tokens[0] != "}":
                    found += branch(path)
                    if tokens[0] == ",":
                        tokens.pop(0)
                tokens.pop(0)
                return found
            if token != "::" and not token.startswith("as "):
                path = (*path, token)
            if not tokens or tokens[0] in {",", "}"}:
                break
        return [path[:-1] if path[-1] == "self" and len(path) > 1 else path]

    return branch(())


def _absolute(module: Module, path: Module) -> Module:
    if path[0] == "crate":
        return path[1:]
    if path[0] == "self":
        return (*module, *path[1:])
    while path[0] == "super":
        module, path = module[:-1], path[1:]
        if not path or path[0] != "super":
            return (*module, *path)
    return path


def _target(path: Module, modules: Mapping[Module, Source], exports: Mapping[Module, Mapping[str, Module]]) -> Module | None:
    """The file that has it, through those that pass it on; a crate of ours; or none."""
    if path[:1] == ("xdr",):
        return ("xdr",)
    for end in range(len(path), 0, -1):
        module = path[:end]
        if module in modules:
            passed = exports[module].get(path[end]) if end < len(path) else None
            return _target(passed, modules, exports) if passed is not None and passed != path else module
    return () if len(path) == 1 and () in modules and re.search(rf"\b{path[0]}\b", modules[()].text) else None
