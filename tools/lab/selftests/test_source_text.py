"""Tests of what judges the module's source."""

from pathlib import Path

import pytest

from judges import source


@pytest.mark.parametrize(("line", "wrong"), [
    ("fn raw(&self) -> &bindings::rpc_rqst {", True), ("_borrow: PhantomData<&'a mut bindings::svc_rqst>,", True),
    ("unsafe { &mut *self.raw }", True), ("let stat = &(*xprt).stat;", True), ("unsafe { &mut (*self.xprt.as_ptr()).field }", True),
    ("Self::new_xprt(&*args)", True), ("unsafe { self.raw.as_mut() }", True), ("&raw mut (*xprt).stat", False),
    ("let n = unsafe { (*self.raw).len };", False), ("&*xprt.cast::<Self>()", False), ("a && (*xprt).flag", False),
    ("const TABLE: &'static bindings::rpc_xprt_ops = &bindings::rpc_xprt_ops {", False)])
def test_references_to_a_structure_that_is_shared(line: str, wrong: bool) -> None:
    assert bool(source.references_in(line)) == wrong


@pytest.mark.parametrize(("reason", "count"), [
    ("As above.", 1), ("By contract.", 1), ("Valid by contract; one word.", 1), ("As for `deref`.", 1), ("As in `send_done`.", 1),
    ("Valid, and as\n    // above.", 1), ("Valid by the contract of this function.", 0), ("By the type invariant.", 0),
    ("Long as\n    // it is.", 0)])
def test_borrowed_reason_or_own(reason: str, count: int) -> None:
    assert len(source.borrowed_reasons(f"    // SAFETY: {reason}\n    unsafe {{ f() }};\n")) == count


def test_reasons_in_other_comments() -> None:
    assert source.borrowed_reasons("/// As above.\n// by contract\n") == []


def test_reason_begins_its_line() -> None:
    text = "    // Why it is done. SAFETY: By the type invariant.\n    unsafe { f() };\n"
    assert [line for line, _ in source.borrowed_reasons(text)] == [1]


def test_length() -> None:
    def block(lines: int) -> str:
        return "fn f() {\n    unsafe {\n" + "        g({ 1 }); // }\n" * lines + "    }\n}\n"

    assert source.long_blocks(block(source.LONGEST)) == []
    assert [line for line, _ in source.long_blocks(block(source.LONGEST + 1))] == [2]
    assert source.long_blocks("let x = unsafe { f() };\n" * 20) == []


def test_files(tmp_path: Path) -> None:
    paths = [tmp_path / f"{lines}" for lines in (source.LONGEST_FILE, source.LONGEST_FILE + 1)]
    for path in paths:
        path.write_text("\n" * int(path.name))
    assert len(source.too_long(paths)) == 1


def test_widths() -> None:
    fits, wide = ("    // " + "x" * (source.WIDEST - 7 + more) + "\n" for more in (0, 1))
    assert source.wide_comments(fits + wide + fits) == [2]
    assert source.wide_comments('const LONG: &str = "' + "x" * source.WIDEST + '";\n') == []
