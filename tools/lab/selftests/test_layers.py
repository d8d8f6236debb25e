"""Tests of what judges the arrows between the module's files."""

import pytest

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


def test_through_those_that_pass_on() -> None:
    arrows = layers.arrows_of(DOWN)
    assert arrows["client", "call"] == {("kapi", "ib", "mr"), ("kapi", "ib", "ring"), ("xdr",)}
    assert arrows["client", "mount"] == {("client", "call"), ("transport",)}
    assert arrows["kapi", "ib", "ring"] == {("kapi", "ib", "mr"), ("kapi", "bindings")}
    assert arrows["transport",] == {("kapi", "ib", "mr"), ("kapi", "bindings")}


def test_down() -> None:
    assert faults() == []


@pytest.mark.parametrize(("name", "use", "fault"), [
    (("kapi", "ib", "cq"), "use crate::transport::Credits;", "kapi/ib/cq uses transport"),
    (("kapi", "ib", "cq"), "use super::super::super::transport::{self};", "kapi/ib/cq uses transport"),
    (("kapi", "ib", "cq"), "fn f() { crate::transport::f() }", "kapi/ib/cq uses transport"),
    (("kapi", "ib", "cq"), "use xdr::Role;", "kapi/ib/cq uses xdr"),
    (("server", "reply"), "use crate::client::call;", "server/reply uses client")])
def test_up_and_strangers(name: tuple[str, ...], use: str, fault: str) -> None:
    assert faults(Source(name, use)) == [fault]


def test_circles() -> None:
    connect = Source(("client", "connect"), "use super::connection::Connection;")
    connection = Source(("client", "connection"), "use crate::client::connect;")
    assert faults(connect, connection) == ["client/connect is in a circle", "client/connection is in a circle"]
    # One that a file makes with what it holds, without a line of its own for that.
    outer, inner = Source(("kapi", "sys"), "mod one;\nfn f() { one::f() }"), Source(("kapi", "sys", "one"), "use super::f;")
    assert faults(outer, inner) == ["kapi/sys is in a circle", "kapi/sys/one is in a circle"]


def test_leaves() -> None:
    assert layers.leaves("a::{b::{self, c as d}, e, f::*}") == [("a", "b"), ("a", "b", "c"), ("a", "e"), ("a", "f", "*")]
