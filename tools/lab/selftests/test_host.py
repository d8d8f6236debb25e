"""Tests of what judges the module's source."""

import tempfile
import unittest
from pathlib import Path

import host


class References(unittest.TestCase):
    def test_to_a_structure_that_is_shared(self) -> None:
        for line in ("fn raw(&self) -> &bindings::rpc_rqst {", "_borrow: PhantomData<&'a mut bindings::svc_rqst>,",
                     "unsafe { &mut *self.raw }", "let stat = &(*xprt).stat;", "unsafe { &mut (*self.xprt.as_ptr()).field }",
                     "Self::new_xprt(&*args)", "unsafe { self.raw.as_mut() }"):
            self.assertNotEqual(host.references_in(line), [], line)

    def test_none(self) -> None:
        for line in ("&raw mut (*xprt).stat", "let n = unsafe { (*self.raw).len };", "&*xprt.cast::<Self>()",
                     "const TABLE: &'static bindings::rpc_xprt_ops = &bindings::rpc_xprt_ops {", "a && (*xprt).flag"):
            self.assertEqual(host.references_in(line), [], line)


class Reasons(unittest.TestCase):
    def test_borrowed(self) -> None:
        for reason in ("As above.", "By contract.", "Valid by contract; one word.", "As for `deref`.", "As in `send_done`.",
                       "Valid, and as\n    // above."):
            self.assertEqual(len(host.borrowed_reasons(f"    // SAFETY: {reason}\n    unsafe {{ f() }};\n")), 1, reason)

    def test_own(self) -> None:
        for reason in ("Valid by the contract of this function.", "By the type invariant.", "Long as\n    // it is."):
            self.assertEqual(host.borrowed_reasons(f"    // SAFETY: {reason}\n    unsafe {{ f() }};\n"), [], reason)
        self.assertEqual(host.borrowed_reasons("/// As above.\n// by contract\n"), [])

    def test_begins_its_line(self) -> None:
        text = "    // Why it is done. SAFETY: By the type invariant.\n    unsafe { f() };\n"
        self.assertEqual([line for line, _ in host.borrowed_reasons(text)], [1])

    def test_length(self) -> None:
        def block(lines: int) -> str:
            return "fn f() {\n    unsafe {\n" + "        g({ 1 }); // }\n" * lines + "    }\n}\n"

        self.assertEqual(host.long_blocks(block(host.LONGEST)), [])
        self.assertEqual([line for line, _ in host.long_blocks(block(host.LONGEST + 1))], [2])
        self.assertEqual(host.long_blocks("let x = unsafe { f() };\n" * 20), [])

    def test_files(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            paths = [Path(name) / f"{lines}" for lines in (host.LONGEST_FILE, host.LONGEST_FILE + 1)]
            for path in paths:
                path.write_text("\n" * int(path.name))
            self.assertEqual(len(host.too_long(paths)), 1)

    def test_widths(self) -> None:
        fits, wide = ("    // " + "x" * (host.WIDEST - 7 + more) + "\n" for more in (0, 1))
        self.assertEqual(host.wide_comments(fits + wide + fits), [2])
        self.assertEqual(host.wide_comments('const LONG: &str = "' + "x" * host.WIDEST + '";\n'), [])


if __name__ == "__main__":
    unittest.main()
