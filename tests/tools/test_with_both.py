"""What the outputs with both modules have in common. They are in build/tools when the other tests have run."""

import pytest

import progress
from guests.pair import IN_TREE, OURS
from observed import OUTPUTS
from observers import document
from observers.tools import TOOLS, Tool, file_of

# Differences that are told of one output.
MOST = 8


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name.replace(" ", "-"))
def test_the_same(tool: Tool) -> None:
    """Both outputs have in common what they are to have."""
    ours, theirs = (file_of(OUTPUTS / whose, tool.name).read_text() for whose in (OURS, IN_TREE))
    if differences := tool.differences(ours, theirs):
        raise progress.Failure(f"{len(differences)} lines differ: {'; '.join(differences[:MOST])}")


def test_document_with_these_outputs() -> None:
    document.write(OUTPUTS)
    progress.line(f"outputs are in {OUTPUTS}")
