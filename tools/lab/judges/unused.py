"""What nothing uses: C helpers that no Rust names, and assertions on fields and structures that no Rust names."""

import re

import progress
import repository

MODULE = repository.ROOT / "rust"
BINDINGS = MODULE / "kapi" / "bindings"
TESTS = repository.ROOT / "kunit"

COMMENT = re.compile(r"//[^\n]*")
HELPER = re.compile(r"\brpcrdma_rs_(\w+)\(")
# A size, or a field of a structure.
SIZE = re.compile(r"^\tSIZE\((\w+)\);", re.M)
FIELD = re.compile(r"^\t(?:FIELD|INNER)\((\w+), (\w+)[^)]*\);", re.M)


def check() -> None:
    """Fail if there are any."""
    code = "\n".join(path.read_text() for root in (MODULE, TESTS) for path in sorted(root.rglob("*.rs")))
    unused = [*helpers((BINDINGS / "helpers.h").read_text(), code), *assertions((BINDINGS / "layout.c").read_text(), code)]
    if unused:
        raise progress.Failure(f"{len(unused)} that no Rust names: " + ", ".join(unused),
                               "take them out of helpers.c, helpers.h and layout.c in rust/kapi/bindings")


def helpers(header: str, code: str) -> list[str]:
    """C functions for Rust that no Rust calls."""
    words = _words(code)
    return [f"{name}()" for name in HELPER.findall(header) if name not in words]


def assertions(layout: str, code: str) -> list[str]:
    """Fields that no Rust names, and structures of which it names neither themselves nor a field."""
    words = _words(code)
    fields = FIELD.findall(layout)
    used = {structure for structure, field in fields if field in words}
    return [*(f"{structure}.{field}" for structure, field in fields if field not in words),
            *(structure for structure in SIZE.findall(layout) if structure not in words | used)]


def _words(code: str) -> set[str]:
    return set(re.findall(r"\w+", COMMENT.sub("", code)))
