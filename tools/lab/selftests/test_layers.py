"""Tests of what judges the arrows between the module's files."""

import unittest

from judges import layers
from judges.layers import Source

DOWN = [Source(("rpcrdma_main",), "mod client;\nmod kapi;\nmod transport;\n"),
        Source(("client",), "mod call;\nmod mount;\n"),
        Source(("client", "call"), "use crate::kapi::ib::{\n    Region,\n    Send, //\n};\nuse xdr::Segment;\n"),
        Source(("client", "mount"), "use super::call::{self, Call as Rpc};\nuse crate::transport;\n"),
        Source(("kapi", "ib"), "mod mr;\nmod ring;\npub(crate) use self::{mr::Region, ring::Send};\n"),
        Source(("kapi", "ib", "mr"), "use crate::kapi::bindings;\n"),
        Source(("kapi", "ib", "ring"), "use crate::kapi::{bindings, ib::Region};\n// use crate::client;\n"),
        Source(("kapi", "bindings"), ""),
        Source(("transport",), "use crate::kapi::ib::mr;\nfn f() { crate::kapi::bindings::g() }\n")]


def faults(*more: Source) -> list[str]:
    arrows = layers.arrows_of([*DOWN, *more])
    return [*layers.upward(arrows), *layers.circles(arrows)]


class Arrows(unittest.TestCase):
    def test_through_those_that_pass_on(self) -> None:
        arrows = layers.arrows_of(DOWN)
        self.assertEqual(arrows["client", "call"], {("kapi", "ib", "mr"), ("kapi", "ib", "ring"), ("xdr",)})
        self.assertEqual(arrows["client", "mount"], {("client", "call"), ("transport",)})
        self.assertEqual(arrows["kapi", "ib", "ring"], {("kapi", "ib", "mr"), ("kapi", "bindings")})
        self.assertEqual(arrows["transport",], {("kapi", "ib", "mr"), ("kapi", "bindings")})

    def test_down(self) -> None:
        self.assertEqual(faults(), [])

    def test_up(self) -> None:
        for use in ("use crate::transport::Credits;", "use super::super::super::transport::{self};", "fn f() { crate::transport::f() }"):
            self.assertEqual(faults(Source(("kapi", "ib", "cq"), use)), ["kapi/ib/cq uses transport"], use)

    def test_strangers(self) -> None:
        self.assertEqual(faults(Source(("kapi", "ib", "cq"), "use xdr::Role;")), ["kapi/ib/cq uses xdr"])
        self.assertEqual(faults(Source(("server", "reply"), "use crate::client::call;")), ["server/reply uses client"])

    def test_circles(self) -> None:
        circle = ["client/connect is in a circle", "client/connection is in a circle"]
        self.assertEqual(faults(Source(("client", "connect"), "use super::connection::Connection;"),
                                Source(("client", "connection"), "use crate::client::connect;")), circle)
        # One that a file makes with what it holds, without a line of its own for that.
        self.assertEqual(faults(Source(("kapi", "sys"), "mod one;\nfn f() { one::f() }"), Source(("kapi", "sys", "one"), "use super::f;")),
                         ["kapi/sys is in a circle", "kapi/sys/one is in a circle"])

    def test_leaves(self) -> None:
        self.assertEqual(layers.leaves("a::{b::{self, c as d}, e, f::*}"),
                         [("a", "b"), ("a", "b", "c"), ("a", "e"), ("a", "f", "*")])


if __name__ == "__main__":
    unittest.main()
