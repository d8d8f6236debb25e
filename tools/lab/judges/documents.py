"""What the documents name of the source is there: files, and what is in them."""

import re
from collections.abc import Iterator, Mapping

import kunits
import progress
import repository

DOCUMENTATION = repository.ROOT / "Documentation"
# As the tables of conformance.rst and version-2.rst write it: below rust/, and what is meant in it.
MODULE = re.compile(r"\b((?:client|server|transport|kapi)/[\w/]+\.rs)(?:: (\w+(?:, \w+)*))?")
PROTOCOL = re.compile(r"\bxdr: ([\w/]+\.rs)(?: (\w+))?")
# Where Rust defines a name.
DEFINED = r"\b(?:fn|struct|enum|trait|type|const|static|mod|impl)\b[^\n]*\b{}\b"
# As the layout in design.rst has them: a directory, and the files in it.
DIRECTORY = re.compile(r"^  (\S+/) ", re.M)
LISTED = re.compile(r"^    (\S+\.rs) ", re.M)
# A KUnit suite, as the table of testing.rst has it and as the source has it.
ROW = re.compile(r"^``(rpcrdma_\w+)``  ", re.M)
# A test in Python, or a file of such, as documents have it.
TEST = re.compile(r"\btest_\w+\b")
# What design.rst says in code's words: names, and a type's own `Type.field` or `Type::function()`.
LITERAL = re.compile(r"``([^`\n]+)``")
NAME = re.compile(r"\b[A-Za-z_]\w{3,}")
MEMBER = re.compile(r"\b([A-Z]\w+)(?:\.|::)(\w+)")
# Names of the kernel that nothing of the module uses.
KERNEL_NAMES = {"rdma_rw", "rpc_execute", "rpc_async_schedule"}


def check() -> None:
    """Fail if a document names a file that is not there, or something that is not in it."""
    design = (DOCUMENTATION / "design.rst").read_text()
    tables = "".join((DOCUMENTATION / name).read_text() for name in ("conformance.rst", "version-2.rst"))
    testing = (DOCUMENTATION / "testing.rst").read_text()
    wrong = [*conformance(tables), *layout(design), *names(design, _sources()), *suites(testing), *tests(tables + testing)]
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
    there = kunits.suites()
    yield from (f"there is no suite {name}" for name in ROW.findall(text) if name not in there)
    yield from (f"testing.rst does not say what the suite {name} protects" for name in there if f"``{name}``" not in text)


def tests(text: str) -> Iterator[str]:
    """Tests in Python that there are not."""
    paths = list(repository.TESTS.rglob("test_*.py"))
    there = {path.stem for path in paths}.union(*(re.findall(r"^def (test_\w+)", path.read_text(), re.M) for path in paths))
    yield from (f"there is no {name}" for name in sorted(set(TEST.findall(text)) - there))


def names(text: str, sources: Mapping[str, str]) -> Iterator[str]:
    """Names in prose and tables that no source has, and members that are not where their type is."""
    words = KERNEL_NAMES.union(*(re.findall(r"\w+", part) for item in sources.items() for part in item))
    for literal in dict.fromkeys(LITERAL.findall(text)):
        yield from (f"design.rst says {literal}, and nothing is called {name}" for name in NAME.findall(literal)
                    if name not in words)
        for owner, member in MEMBER.findall(literal):
            defined = re.compile(rf"\b(?:struct|enum|trait|type) {owner}\b")
            homes = [source for source in sources.values() if defined.search(source)]
            if homes and not any(re.search(rf"\b{member}\b", source) for source in homes):
                yield f"design.rst says {literal}, and {owner} has no {member}"


def _sources() -> dict[str, str]:
    """All files of the repository that are text, by name, but documents and planted defects."""
    left_out = (DOCUMENTATION, repository.TESTS / "defects")
    found = {}
    for path in repository.listed("*"):
        if not any(path.is_relative_to(folder) for folder in left_out):
            try:
                found[str(path.relative_to(repository.ROOT))] = path.read_text()
            except UnicodeDecodeError:
                continue
    return found


def _missing(file: str, items: str) -> Iterator[str]:
    path = repository.ROOT / file
    if not path.exists():
        yield f"there is no {file}"
        return
    source = path.read_text()
    for item in items.split(", ") if items else ():
        if not re.search(DEFINED.format(item), source):
            yield f"{item} is not defined in {file}"
