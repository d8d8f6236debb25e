"""A kernel's tree with the module in it, beside the one in C: as a whole, and as it grows from patch to patch."""

import bisect
import posixpath
import re
from collections.abc import Set
from pathlib import Path

import progress
import repository
from series import patches
from series.patches import TEXTS, Patch

SUNRPC = "net/sunrpc"
HOME = f"{SUNRPC}/xprtrdma-rust"
DOCUMENTS = "Documentation/filesystems/nfs"
# Files of the kernel that are changed.
CHANGED = ("MAINTAINERS", f"{SUNRPC}/Makefile", f"{SUNRPC}/Kconfig", f"{DOCUMENTS}/index.rst")
GOES_TO_C = "obj-$(CONFIG_SUNRPC_XPRT_RDMA) += xprtrdma/\n"
GOES_TO_EITHER = "obj-$(CONFIG_SUNRPC_XPRT_RDMA) += xprtrdma$(if $(CONFIG_SUNRPC_XPRT_RDMA_RUST),-rust)/\n"
LAST_DOCUMENT = "   reexport\n"
# What of the repository has another place than its name says.
ELSEWHERE = {"tools/series/gitignore": f"{HOME}/.gitignore"}
# A document that another mentions in brackets.
LINK = re.compile(r"\s\(`[^`]* <([\w-]+\.rst)>`_\)")
# The root of the module until all that it uses is there.
EARLY = {"rust/rpcrdma_main.rs": TEXTS / "rpcrdma_main.rs"}
# What an option of ours is about; before that is there, nobody is asked.
OPTIONS = {"RPCRDMA_KUNIT_TEST": "kunit/kunit.rs"}

# What the kernel's own settings of rustfmt would change.
RUSTFMT = f"find {HOME} -name '*.rs' ! -name '*generated*' | xargs rustfmt --check --color never\n"

# `mod name;` with what belongs to it.
MOD = re.compile(r"^(?P<with>(?:[ \t]*(?:#\[.*\]|///.*)\n)*)[ \t]*(?:pub(?:\([^)]*\))? )?mod (?P<name>\w+);\n", re.M)
PATH = re.compile(r'#\[path = "(.*)"\]')
OUTSIDE = re.compile(r"(?:^#[^\n]*\n)*^ifdef KBUILD_EXTMOD\n.*?^endif # KBUILD_EXTMOD\n\n", re.M | re.S)
# Files whose modules are beside them.
ROOTS = ("lib", "rpcrdma_main")
# In Kbuild, in front of the name of a part and its directory.
RULE = f"# {'-' * 75}\n"
ENTRY = re.compile(r"[^\n]+\n[A-Z]:\t")


def whole(plain: Path) -> dict[str, str]:
    """What a tree has with all of the series: files by their paths."""
    series = patches.read()
    return after(series, len(series), plain)


def after(series: list[Patch], count: int, plain: Path) -> dict[str, str]:
    """What it has after so many patches; without any, what of the kernel is going to be changed."""
    files = {name: (plain / name).read_text() for name in CHANGED}
    if count == 0:
        return files
    there = {name for name, place in patches.owners(series, patches.names()).items() if place < count} | EARLY.keys()
    files |= {_place(name): _grown(name, there, series, count) for name in there}
    files["MAINTAINERS"] = with_entry(files["MAINTAINERS"], _entry(files))
    files[f"{SUNRPC}/Makefile"] = _replaced(files, f"{SUNRPC}/Makefile", GOES_TO_C, GOES_TO_EITHER)
    files[f"{SUNRPC}/Kconfig"] += f'\nsource "{HOME}/Kconfig"\n'
    documents = [f"   {Path(name).stem}\n" for name in sorted(map(_place, there)) if name.endswith(".rst")]
    index = f"{DOCUMENTS}/index.rst"
    files[index] = _replaced(files, index, LAST_DOCUMENT, LAST_DOCUMENT + "".join(documents))
    return files


def _place(name: str) -> str:
    """Where a file of the repository is in the tree."""
    return f"{DOCUMENTS}/{Path(name).name}" if name.endswith(".rst") else ELSEWHERE.get(name, f"{HOME}/{name}")


def _grown(name: str, there: Set[str], series: list[Patch], count: int) -> str:
    """A file as it is while those files are there."""
    early = EARLY.get(name)
    if early is not None and patches.owners(series, [name])[name] >= count:
        return with_modules(early.read_text(), name, there)
    text = (repository.ROOT / name).read_text()
    if name.endswith(".rs"):
        return with_modules(text, name, there)
    if name.endswith(".rst"):
        return with_links(text, there)
    grow = {"Kbuild": with_parts, "Kconfig": with_options}.get(name)
    return grow(text, there) if grow else text


def with_modules(text: str, name: str, there: Set[str]) -> str:
    """Rust without the modules that have no file yet."""
    def kept(match: re.Match) -> str:
        return match[0] if _file_of(match, name) in there else ""
    cut = MOD.sub(kept, text)
    return text if cut == text else re.sub(r"\n{3,}", "\n\n", cut).rstrip("\n") + "\n"


def _file_of(match: re.Match, name: str) -> str:
    """Where the compiler looks for a module that a file declares."""
    directory, file = posixpath.split(name)
    given = PATH.search(match["with"])
    if given:
        return posixpath.normpath(posixpath.join(directory, given[1]))
    stem = file.removesuffix(".rs")
    return posixpath.join(directory, "" if stem in ROOTS or directory == "kunit" else stem, f"{match['name']}.rs")


def with_parts(kbuild: str, there: Set[str]) -> str:
    """Kbuild as it is in a kernel tree, with the parts whose directories have files."""
    first, *parts = OUTSIDE.sub("", kbuild, count=1).split(RULE)
    kept = [part for part in parts if any(name.startswith(f"{_directory(part)}/") for name in there)]
    return RULE.join([first, *kept]).rstrip("\n") + "\n"


def _directory(part: str) -> str:
    """What the first line of a part names."""
    return part.partition("\n")[0].rpartition(": ")[2]


def with_options(kconfig: str, there: Set[str]) -> str:
    """Kconfig without the options that are about what is not there yet."""
    for option, about in OPTIONS.items():
        if about not in there:
            kconfig = re.sub(rf"^config {option}\n(?:(?:\t.*)?\n)*", "", kconfig, flags=re.M)
    return kconfig


def with_links(text: str, there: Set[str]) -> str:
    """A document without mentions of those that are not there."""
    beside = {Path(name).name for name in there}
    return LINK.sub(lambda match: match[0] if match[1] in beside else "", text)


def _entry(files: dict[str, str]) -> str:
    """Our entry in MAINTAINERS, with the paths that are there."""
    name, address = repository.author()
    lines = (TEXTS / "MAINTAINERS").read_text().replace("@MAINTAINER@", f"{name} <{address}>").splitlines()
    return "\n".join(line for line in lines if not line.startswith("F:\t") or
                     any(name.startswith(line[3:]) for name in files))


def with_entry(maintainers: str, entry: str) -> str:
    """MAINTAINERS with one entry more. A few of those that it has are out of order."""
    entries = maintainers.split("\n\n")
    first = next(place for place, other in enumerate(entries) if ENTRY.match(other))
    bisect.insort(entries, entry, lo=first, key=_title)
    return "\n\n".join(entries)


def _title(entry: str) -> str:
    return entry.partition("\n")[0].upper()


def _replaced(files: dict[str, str], name: str, old: str, new: str) -> str:
    if files[name].count(old) != 1:
        raise progress.Failure(f"{name} of this kernel is not as it is known here: it has no line {old.strip()}")
    return files[name].replace(old, new)
