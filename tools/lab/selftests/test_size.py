"""Tests of what judges what the module has too much of: what nothing uses, and lines of code."""

from judges import code_lines, unused

CODE = "fn f() {\n    // old_call() is gone\n    unsafe { bindings::call(x.field, T::default()) }\n}\n"
LAYOUT = "\tSIZE(one);\n\tFIELD(one, field);\n\tFIELD(one, field_of_old);\n\tSIZE(T);\n\tSIZE(none);\n" \
         "\tINNER(none, inner, \"a.inner\");\n"
SOURCE = "//! Of what.\n\nuse a::{\n    b,\n    c, //\n};\n\n/// Does it.\nfn f() {\n    g(); // now\n}\n    pub(crate) use d::e;\n"


def test_helpers() -> None:
    header = "int rpcrdma_rs_call(int a);\nint rpcrdma_rs_old_call(void);\n"
    assert unused.helpers(header, CODE) == ["old_call()"]


def test_assertions() -> None:
    assert unused.assertions(LAYOUT, CODE) == ["one.field_of_old", "none.inner", "none"]


def test_lines() -> None:
    assert code_lines.lines_of(SOURCE) == 3


def test_ceilings() -> None:
    ceilings = code_lines.read_ceilings("# why\ndriver 10\nkapi 5\n")
    assert code_lines.judge({"driver": 10, "kapi": 5}, ceilings) == []
    assert code_lines.judge({"driver": 11, "kapi": 5, "new": 1}, ceilings) == [
        "new has no ceiling", "driver has 11 lines of code, more than 10"]


def test_parts() -> None:
    counts = code_lines.count()
    driver = sum(lines for part, lines in counts.items() if part != "driver" and not part.startswith("kapi"))
    assert driver == counts["driver"]
