"""Tests of what judges the module's source."""

import unittest

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


if __name__ == "__main__":
    unittest.main()
