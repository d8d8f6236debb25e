"""The doc comment of a function begins with what the function does: a verb in the third person ("Returns the number of ...")."""

import re
from collections.abc import Iterator
from pathlib import Path

import progress
import repository
from judges import code_lines

ROOTS = (repository.ROOT / "rust", repository.ROOT / "xdr" / "src")
# Words that end like such a verb. "Has" and "Is" are verbs, and say what something is and not what a function does.
NO_VERBS = {"Always", "As", "Bytes", "Credits", "Does", "Has", "Is", "Its", "Less", "Pieces", "Regions", "Segments", "Sizes",
            "This", "Those", "Unless", "Was", "Words"}

VERB = re.compile(r"[A-Z][a-z]+s")
# A doc comment from its first line; what may stand between it and its function; the function.
FUNCTION = re.compile(r"^[ \t]*///[ \t]*([^\n]*)\n(?:[ \t]*///[^\n]*\n)*"
                      r"(?:[ \t]*(?://[^\n]*|#\[[^\n]*\]|#\[[^\]]*\])\n)*"
                      r"[ \t]*(?:pub(?:\([^)]*\))?[ \t]+)?(?:(?:const|async|unsafe|extern[ \t]+\"C\")[ \t]+)*fn[ \t]+(\w+)", re.M)


def check() -> None:
    """Fail with the places of those that do not."""
    wrong = [f"{path.relative_to(repository.ROOT)}:{place}" for path in sources() for place in other_words(path.read_text())]
    if wrong:
        raise progress.Failure(f"{len(wrong)} in all: " + "; ".join(wrong[:20]),
                               "begin with a verb in the third person and its object, in the words of the RFCs or the kernel")


def sources() -> Iterator[Path]:
    """The files that are read."""
    for root in ROOTS:
        for path in sorted(root.rglob("*.rs")):
            if not code_lines.TESTS & set(path.parts):
                yield path


def other_words(text: str) -> Iterator[str]:
    """The functions of a file whose doc comment begins with another word: line, name and word."""
    for match in FUNCTION.finditer(text):
        word = (match[1].split() or [""])[0]
        if not VERB.fullmatch(word) or word in NO_VERBS:
            yield f"{text.count(chr(10), 0, match.start()) + 1}: {match[2]}() is `{word}`"
