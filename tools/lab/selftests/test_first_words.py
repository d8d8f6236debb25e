"""Tests of what judges the first words of doc comments."""

import unittest

import repository
from judges import first_words


def faults(text: str) -> list[str]:
    return list(first_words.other_words(text))


class FirstWords(unittest.TestCase):
    def test_verbs(self) -> None:
        self.assertEqual(faults("/// Returns the number.\nfn f() {}\n\n    /// Takes a credit.\n    ///\n    /// The last one.\n"
                                "    #[inline]\n    pub(super) fn g() {}\n"), [])

    def test_others(self) -> None:
        for first, word in (("The number.", "The"), ("Whether it is.", "Whether"), ("returns it.", "returns"), ("", ""),
                            ("This returns it.", "This"), ("Has it posted.", "Has"), ("Bytes of it.", "Bytes"),
                            ("`f` takes it.", "`f`"), ("RDMA Reads have ended.", "RDMA")):
            self.assertEqual(faults(f"use a;\n/// {first}\nfn f() {{}}\n"), [f"2: f() is `{word}`"], first)

    def test_functions_of_all_kinds(self) -> None:
        for kind in ("fn f(", "pub fn f<T>(", "pub(crate) const fn f(", "unsafe fn f(", "pub(in crate::a) fn f(",
                     "unsafe extern \"C\" fn f("):
            self.assertEqual(faults(f"    /// It is.\n    {kind}"), ["1: f() is `It`"], kind)

    def test_between(self) -> None:
        for between in ("#[cold]\n", "// Not inlined.\n#[inline(never)]\n", "#[expect(\n    a,\n    b\n)]\n", "#[cfg(a[0])]\n"):
            self.assertEqual(faults(f"/// It is.\n/// Returns.\n{between}fn f() {{}}\n"), ["1: f() is `It`"], between)

    def test_what_is_no_function(self) -> None:
        self.assertEqual(faults("/// The state.\nstruct S {\n    /// The XID.\n    xid: u32,\n}\n\n//! Of it.\n\nfn f() {}\n"
                                "/// The callback.\ntype F = fn(u32);\n"), [])

    def test_files(self) -> None:
        names = [str(path.relative_to(repository.ROOT)) for path in first_words.sources()]
        self.assertIn("rust/client/reply.rs", names)
        self.assertEqual([name for name in names if "tests" in name], [])


if __name__ == "__main__":
    unittest.main()
