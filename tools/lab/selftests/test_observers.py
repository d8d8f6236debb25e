"""Outputs of two modules, compared."""

import pytest

import progress
from observers.tools import CHUNKS, EACH, Apart, Tool, blocks, counted

OUTPUT = "READ:\n\t17 ops (26%)\n\tRTT: 9.235294 (milliseconds)\nxprt: rdma 0x1a 65\n"


def test_numbers() -> None:
    tool = Tool("any", "true", exact="ops")
    assert tool.differences(OUTPUT, OUTPUT.replace("9.235294", "11").replace("0x1a", "7")) == []
    assert tool.differences(OUTPUT, OUTPUT.replace("17 ops", "18 ops")) == ["-18 ops (26%)", "+17 ops (26%)"]


def test_fields() -> None:
    tool = Tool("any", "true")
    assert tool.differences(OUTPUT.replace(" 65", ""), OUTPUT) == ["-xprt: rdma N N", "+xprt: rdma N"]
    assert tool.differences(OUTPUT, OUTPUT + "WRITE:\n") == ["-WRITE:"]


def test_what_is_meant() -> None:
    tool = Tool("any", "true", apart=(Apart("^WRITE", "there are none"),))
    assert tool.differences(OUTPUT, OUTPUT + "WRITE:\n") == []
    assert tool.differences(OUTPUT, OUTPUT) == ["no line is as ^WRITE"]
    assert Tool("any", "true", exact="bytes").differences(OUTPUT, OUTPUT) == ["no line is as bytes"]


def test_shapes() -> None:
    assert blocks("a\n  b 1\n\nc\n  d\n") == ["a b 1", "c d"]
    names = (*EACH, *CHUNKS, CHUNKS[0])
    perf = "".join(f"0.1 nfsd/5 rpcrdma:{name}(xid: 1)\n" for name in names)
    trace = "".join(f"nfsd-5 [001] ..... 188.552211: {name}:  xid=1\n" for name in names)
    assert counted(perf) == counted(trace)
    assert counted(perf) == [*EACH, f"{CHUNKS[0]}: 2", *(f"{name}: 1" for name in CHUNKS[1:])]
    more = f"1.1: {EACH[0]}: xid=2\n"
    assert f"{EACH[0]}: 2" in counted(trace + more)
    assert counted(trace + more, late=1) == counted(trace)
    assert f"{EACH[0]}: 3" in counted(trace + 2 * more, late=1)
    with pytest.raises(progress.Failure):
        counted(trace.replace(EACH[1], "another"))
