"""What the documents name of the source is there: files, and what is in them."""

import re
from collections.abc import Iterator

import progress
import repository

DOCUMENTATION = repository.ROOT / "Documentation"
# As the tables of conformance.rst write it: below rust/, and what is meant in it.
MODULE = re.compile(r"\b((?:client|server|transport|kapi)/[\w/]+\.rs)(?:: (\w+(?:, \w+)*))?")
PROTOCOL = re.compile(r"\bxdr: (\w+\.rs)(?: (\w+))?")
# As the layout in design.rst has them: a directory, and the files in it.
DIRECTORY = re.compile(r"^  (\S+/) ", re.M)
LISTED = re.compile(r"^    (\S+\.rs) ", re.M)
# A KUnit suite, as the table of testing.rst has it and as the source has it.
ROW = re.compile(r"^``(rpcrdma_\w+)``  ", re.M)
SUITE = re.compile(r"#\[kunit_tests\((\w+)\)\]")


def check() -> None:
    """Fail if a document names a file that is not there, or something that is not in it."""
    wrong = [*conformance((DOCUMENTATION / "conformance.rst").read_text()), *layout((DOCUMENTATION / "design.rst").read_text()),
             *suites((DOCUMENTATION / "testing.rst").read_text())]
    if wrong:
        raise progress.Failure(f"{len(wrong)} in all: " + "; ".join(wrong[:20]), "the source has moved on: correct the documents")


def conformance(text: str) -> Iterator[str]:
    """What the tables name and is not there."""
    for file, items in MODULE.findall(text):
        yield from _missing(f"rust/{file}", items)
    for file, item in PROTOCOL.findall(text):
        yield from _missing(f"xdr/src/{file}", item)


def layout(text: str) -> Iterator[str]:
    """Files that the layout has and the directory has not, and the other way round."""
    parts = DIRECTORY.split(text)
    for directory, listing in zip(parts[1::2], parts[2::2]):
        listed = set(LISTED.findall(listing.split("\n\n")[0]))
        if directory in {"rust/client/", "rust/server/"}:
            there = {path.name for path in (repository.ROOT / directory).glob("*.rs")}
            yield from (f"{directory}{name} is not there" for name in sorted(listed - there))
            yield from (f"{directory}{name} is not in the layout" for name in sorted(there - listed))


def suites(text: str) -> Iterator[str]:
    """KUnit suites that the table has and the source has not, and the other way round."""
    there = {name for directory in ("rust", "kunit") for path in (repository.ROOT / directory).rglob("*.rs")
             for name in SUITE.findall(path.read_text())}
    yield from (f"there is no suite {name}" for name in ROW.findall(text) if name not in there)
    yield from (f"testing.rst does not say what the suite {name} protects" for name in sorted(there) if f"``{name}``" not in text)


def _missing(file: str, items: str) -> Iterator[str]:
    path = repository.ROOT / file
    if not path.exists():
        yield f"there is no {file}"
        return
    source = path.read_text()
    for item in items.split(", ") if items else ():
        if not re.search(rf"\b{item}\b", source):
            yield f"no {item} in {file}"
