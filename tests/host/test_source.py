"""The source, as far as its text tells."""

import re
import textwrap
from pathlib import Path

import defects
import progress
import repository
from judges import code_lines, documents, first_words, layers, source, unused
from series import patches


def test_unsafe_and_raw_bindings_are_under_rust_kapi() -> None:
    source.confinement()


def test_no_references_to_structures_of_sunrpc() -> None:
    source.references()


def test_each_unsafe_block_is_short_and_has_its_own_reason() -> None:
    source.reasons()


def test_no_file_has_more_lines_than_a_reader_keeps_in_mind() -> None:
    source.lengths()


def test_no_comment_is_wider_than_code() -> None:
    source.widths()


def test_doc_comments_of_functions_begin_with_a_verb() -> None:
    first_words.check()


def test_arrows_between_files_point_down() -> None:
    layers.check()


def test_nothing_in_the_bindings_is_unused() -> None:
    unused.check()


def test_lines_of_code_of_each_part() -> None:
    code_lines.check()


def test_planted_defects_can_be_planted() -> None:
    defects.stale()


def test_each_file_is_in_a_patch_of_the_series() -> None:
    patches.check()


def test_what_the_documents_name_is_there() -> None:
    documents.check()


def test_examples_of_the_first_change_apply(tmp_path: Path) -> None:
    text = (repository.ROOT / "Documentation/first-change.rst").read_text()
    examples = re.findall(r"^::\n\n(  --- a/(?:(?:  )?.*\n)+?)(?=^\S)", text, re.MULTILINE)
    assert len(examples) == 3
    for number, example in enumerate(examples, 1):
        patch = tmp_path / f"example {number} of first-change.rst"
        patch.write_text(textwrap.dedent(example).rstrip("\n") + "\n")
        try:
            defects.apply(patch, repository.ROOT, "--check", "--reverse")
        except progress.Failure:
            defects.apply(patch, repository.ROOT, "--check")
