"""Tests of what judges the first words of doc comments."""

import pytest

import repository
from judges import first_words


def faults(text: str) -> list[str]:
    return list(first_words.other_words(text))


def test_verbs() -> None:
    assert faults("/// Returns the number.\nfn f() {}\n\n    /// Takes a credit.\n    ///\n    /// The last one.\n"
                  "    #[inline]\n    pub(super) fn g() {}\n") == []


@pytest.mark.parametrize(("text", "fault"), [
    *((f"use a;\n/// {first}\nfn f() {{}}\n", f"2: f() is `{word}`") for first, word in (
        ("The number.", "The"), ("Whether it is.", "Whether"), ("returns it.", "returns"), ("", ""), ("This returns it.", "This"),
        ("Has it posted.", "Has"), ("Bytes of it.", "Bytes"), ("`f` takes it.", "`f`"), ("RDMA Reads have ended.", "RDMA"))),
    # Functions of all kinds.
    *((f"    /// It is.\n    {kind}", "1: f() is `It`") for kind in (
        "fn f(", "pub fn f<T>(", "pub(crate) const fn f(", "unsafe fn f(", "pub(in crate::a) fn f(", "unsafe extern \"C\" fn f(")),
    # What may be between.
    *((f"/// It is.\n/// Returns.\n{between}fn f() {{}}\n", "1: f() is `It`") for between in (
        "#[cold]\n", "// Not inlined.\n#[inline(never)]\n", "#[expect(\n    a,\n    b\n)]\n", "#[cfg(a[0])]\n"))])
def test_others(text: str, fault: str) -> None:
    assert faults(text) == [fault]


def test_what_is_no_function() -> None:
    assert faults("/// The state.\nstruct S {\n    /// The XID.\n    xid: u32,\n}\n\n//! Of it.\n\nfn f() {}\n"
                  "/// The callback.\ntype F = fn(u32);\n") == []


def test_files() -> None:
    names = [str(path.relative_to(repository.ROOT)) for path in first_words.sources()]
    assert "rust/client/reply.rs" in names
    assert [name for name in names if "tests" in name] == []
