"""Tests of the dissector of version 2: every header type and error, continued messages, and what is malformed."""

import shutil
from random import Random

import pytest

import example
import tshark
from captures import BOTH_KINDS, DIRECTORY, EACH_FORM, PASSES, ROCE, Form, changed, written
from example import Type, message, words
from guests import roots
from judges import dissector
from link import Moved, Sent

EXPERTS = ("malformed", "continuation", "credit.exceeded", "trailing", "type.unknown")
WRONG = " || ".join(["_ws.malformed", "_ws.lua.error", *(f"rpcrdma2.{name}" for name in EXPERTS)])
# What an error has, by its code.
ARMS = {1: {"vers_low": 1, "vers_high": 2}, 2: {}, 3: {}, 4: {}, 5: {}, 6: {"max_chunks": 3}, 7: {"max_chunks": 4},
        8: {"max_segments": 5}, 9: {"chunk_index": 1, "length_needed": 70000}, 10: {"length_needed": 80000}, 11: {},
        100: {}, 4711: {}}
FIELDS = ("vers_low", "vers_high", "max_chunks", "max_segments", "chunk_index", "length_needed")
# What cannot be.
HEADERS = {
    "no error code": message(Type.ERROR, 1, 1),
    "half an arm": message(Type.ERROR, 1, 1, words(9, 1)),
    "fewer properties than said": message(Type.CONNPROP_FINAL, 1, 1, words(2, 1, 4, 8192)),
    "many more properties than said": message(Type.CONNPROP_FINAL, 1, 1, words(0xffffffff, 1, 4, 8192)),
    "a property of a wrong length": message(Type.CONNPROP_FINAL, 1, 1, words(1, 1, 8, 0, 8192)),
    "a property beyond the end": message(Type.CONNPROP_FINAL, 1, 1, words(1, 6, 0xfffffffd, 0)),
    "no Read list": message(Type.CALL_INLINE, 1, 1, words(0)),
    "half a segment": message(Type.CALL_INLINE, 1, 1, words(0, 1, 0, 7, 4096)),
    "a list that goes on with 2": message(Type.CALL_INLINE, 1, 1, words(0, 2, 0, 7, 4096, 0, 0, 0, 0, 0)),
    "a chunk of too many segments": message(Type.REPLY_INLINE, 1, 1, words(1, 0xffffffff, 7, 4096, 0, 0, 0)),
    "no RPC message": message(Type.REPLY_INLINE, 1, 1, words(0)),
    "no end of the lists": message(Type.CALL_EXTERNAL, 1, 1, words(0, 0, 0, 0)),
    "nothing remaining": message(Type.CALL_MIDDLE, 1, 1),
    "no Call chunk": message(Type.CALL_EXTERNAL, 1, 1, words(0, 0, 0, 0, 0)),
    "an empty Call chunk": message(Type.CALL_EXTERNAL, 1, 1, words(0, 1, 0, 7, 0, 0, 0, 0, 0, 0, 0)),
    "an empty Reply chunk": message(Type.REPLY_EXTERNAL, 1, 1, words(0, 1, 0))}
# Calls and Replies in parts, and how many of those say that they are wrong.
RPC, LISTS = example.call(1, example.NULL), words(0, 0, 0, 0)
BEGUN = (Type.CALL_MIDDLE, 1, words(20) + RPC[:20])
CONTINUED: dict[str, tuple[list[tuple[Type, int, bytes]], int]] = {
    "wrong at the end": ([(Type.CALL_MIDDLE, 1, words(21) + RPC[:20]), (Type.CALL_INLINE, 1, LISTS + RPC[20:])], 1),
    "wrong in between": ([BEGUN, (Type.CALL_MIDDLE, 1, words(8) + RPC[20:28]), (Type.CALL_INLINE, 1, LISTS + RPC[28:])], 2),
    "another XID": ([BEGUN, (Type.CALL_INLINE, 2, LISTS + example.call(2, 0))], 1),
    "a Reply": ([BEGUN, (Type.REPLY_INLINE, 1, words(0) + example.reply(1))], 1),
    "properties": ([BEGUN, (Type.CONNPROP_FINAL, 1, words(0))], 1),
    "all is well": ([BEGUN, (Type.ERROR, 9, words(2)), (Type.GRANT, 0, b""), (Type.CALL_INLINE, 1, LISTS + RPC[20:])], 0)}


@EACH_FORM
@PASSES
def test_types_and_credits(form: Form, options: tuple[str, ...]) -> None:
    """Every message is there, in order, with what is in its prefix; nothing is wrong with any."""
    expected = []
    for each in example.connection():
        if not isinstance(each, Sent):
            continue
        xid, version, credit, kind = (int.from_bytes(each.message[at:at + 4], "big") for at in range(0, 16, 4))
        expected.append([f"{xid:#010x}", str(version), str(credit), str(kind)])
    path = written("connection" + "".join(options), form, example.connection())
    names = ("rpcrdma2.xid", "rpcrdma2.version", "rpcrdma2.credit", "rpcrdma2.type")
    found = tshark.fields(path, "rpcrdma2.xid", *names, options=options)
    # A frame may have two messages on iWARP.
    flat = [list(values) for line in found for values in zip(*(field.split(",") for field in line))]
    assert flat == expected
    assert tshark.output(path, *options, "-Y", WRONG) == ""


@EACH_FORM
@PASSES
def test_nfs_inside(form: Form, options: tuple[str, ...]) -> None:
    """NFS is dissected in simple, continued and special messages, with what chunks have; and Replies find their Calls."""
    path = written("nfs" + "".join(options), form, example.connection())
    entries = tshark.fields(path, "rpcrdma2 && nfs.readdir.entry", "rpcrdma2.xid", "nfs.readdir.entry3.name", options=options)
    assert entries == [[xid, ",".join(example.NAMES)] for xid in ("0x00000003", "0x00000006")]
    data = tshark.fields(path, "rpcrdma2 && nfs.data", "rpc.xid", "rpc.msgtyp", "nfs.data", options=options)
    assert data == [["0x00000004", "0", example.DATA.hex()], ["0x00000005", "1", example.DATA.hex()],
                    ["0x00000007", "0", "00" * 2000]]
    answered = tshark.fields(path, "rpcrdma2 && rpc.time", "rpc.xid", "rpc.procedure", options=options)
    expected = {2: example.NULL, 3: example.READDIR, 4: example.WRITE, 5: example.READ, 6: example.READDIR,
                7: example.WRITE, 8: example.NULL}
    assert answered == [[f"{xid:#010x}", str(procedure)] for xid, procedure in expected.items()]


@BOTH_KINDS
def test_chunks_not_captured(form: Form) -> None:
    """What is in the Send is shown as it is, and nothing is taken for malformed."""
    sends = [each for each in example.connection() if isinstance(each, Sent)]
    path = written("sends", form, sends)
    reduced = tshark.fields(path, "rpcrdma2.reduced", "rpcrdma2.xid", "rpcrdma2.rpc.reduced")
    assert reduced == [["0x00000004", example.write_call(4, example.DATA)[:-len(example.DATA) - 3].hex()],
                       ["0x00000005", example.read_reply(5, len(example.DATA)).hex()]]
    assert tshark.output(path, "-Y", WRONG) == ""


@EACH_FORM
def test_fragments(form: Form) -> None:
    """A continued message says where its parts are, and a part where the whole is."""
    path = written("fragments", form, example.connection())
    parts = tshark.fields(path, "rpcrdma2.type == 12", "frame.number", "rpcrdma2.remaining", "rpcrdma2.payload",
                          "rpcrdma2.reassembled_in", options=("-2",))
    last, = tshark.fields(path, "rpcrdma2.fragment && rpcrdma2.type == 13", "frame.number", "rpcrdma2.fragment",
                          "rpcrdma2.payload", "rpcrdma2.rpc.length")
    assert [line[1:] for line in parts] == [["1667", "1501", last[0]], ["166", "1501", last[0]]]
    assert last[1:] == [",".join(line[0] for line in parts), "166", "3168"]


@BOTH_KINDS
def test_properties(form: Form) -> None:
    path = written("properties", form, example.connection())
    found = tshark.fields(path, "rpcrdma2.prop", "rpcrdma2.type", "rpcrdma2.prop.id", "rpcrdma2.prop.value",
                          "rpcrdma2.prop.reverse", "rpcrdma2.prop.data")
    sizes = "8192,8192,1048576,16"
    assert found == [["7", "1,2,3,4,5", sizes, "2", ""], ["6", "1,2,3,4", sizes, "", ""],
                     ["7", "5,6,77", "", "0", f"{b'hello'.hex()},{'00' * 8}"]]


@BOTH_KINDS
def test_chunks(form: Form) -> None:
    """Lists, chunks and segments."""
    path = written("chunks", form, example.connection())
    counts = [f"rpcrdma2.{name}.count" for name in ("call", "reads", "writes", "reply")]
    segments = [f"rpcrdma2.{name}" for name in ("position", "handle", "length", "offset")]
    found = tshark.fields(path, "rpcrdma2.segment", "rpcrdma2.xid", "rpcrdma2.inv_handle", *counts, *segments)
    room = ["0x00000022,0x00000023", "4096,925", "0x0000000000002000,0xffff800000003000"]
    assert found == [
        ["0x00000004", "0x00000000", "", "2", "0", "0", "80,80", "0x00000011,0x00000012", "2000,3021",
         "0x0000000000001000,0x8000000000000ffc"],
        ["0x00000005", "0x00000022", "", "0", "1", "0", "", *room],
        ["0x00000005", "", "", "", "1", "", "", *room],
        ["0x00000006", "0x00000034", "1", "0", "0", "1", "0", "0x00000033,0x00000034", "80,20000",
         "0x0000000000004000,0x0000000000008000"],
        ["0x00000006", "", "", "", "0", "1", "", "0x00000034", "3168", "0x0000000000008000"]]


@BOTH_KINDS
def test_credits_left(form: Form) -> None:
    """What an end may still send is what its peer has told, less what it has sent."""
    path = written("left", form, example.connection())
    found = tshark.fields(path, "rpcrdma2.credit.left", "rpcrdma2.credit.left", "rpcrdma2.credit.advance", "rpcrdma2.sequence")
    assert {line[0] for line in found} == {"8"}
    assert found[:4] == [["8", "", "1"], ["8", "", "1"], ["8", "0", "2"], ["8", "2", "2"]]


@EACH_FORM
def test_sent_again(form: Form) -> None:
    """What is sent again, as after a timeout, neither counts nor spoils what it is in between of."""
    path = written("version-2-again", form, example.connection())
    wanted = ("rpcrdma2.sequence", "rpcrdma2.xid", "rpcrdma2.sequence", "rpcrdma2.rpc.length")
    again = changed(path, lambda frames: [each for end in range(1, len(frames) + 1) for each in frames[max(0, end - 3):end]])
    assert tshark.fields(again, *wanted) == tshark.fields(path, *wanted)
    assert tshark.fields(again, "nfs.readdir.entry", "nfs.readdir.entry3.name") == 2 * [[",".join(example.NAMES)]]


def test_set_up_not_captured() -> None:
    """On RoCE nobody knows then which directions belong together: nothing is said of credits."""
    path = changed(written("version-2-middle", ROCE, example.connection()), lambda frames: frames[3:])
    assert tshark.fields(path, "rpcrdma2.credit.left || rpcrdma2.credit.exceeded", "frame.number") == []
    assert tshark.fields(path, "rpcrdma2.fragment && rpcrdma2.type == 13", "rpcrdma2.rpc.length") == [["3168"]]


@BOTH_KINDS
def test_arms(form: Form) -> None:
    messages = [Sent(False, message(Type.ERROR, code, 100, words(code, *arms.values()))) for code, arms in ARMS.items()]
    path = written("errors", form, messages)
    found = tshark.fields(path, "rpcrdma2.error", "rpcrdma2.error", *(f"rpcrdma2.{name}" for name in FIELDS))
    assert found == [[str(code), *(str(arms.get(name, "")) for name in FIELDS)] for code, arms in ARMS.items()]
    assert tshark.output(path, "-Y", f"({WRONG}) && !rpcrdma2.credit.exceeded") == ""


@EACH_FORM
@PASSES
def test_behind_version_1(form: Form, options: tuple[str, ...]) -> None:
    """Wireshark's dissector of version 1, once it was right, is asked first, and takes an RDMA2_ERROR for its own."""
    null = words(7, 1, 32, 0, 0, 0, 0) + example.call(7, example.NULL)
    messages = [Sent(True, null), Sent(False, message(Type.ERROR, 8, 1, words(4)))]
    path = written("behind" + "".join(options), form, messages)
    found = tshark.fields(path, "rpcrdma2", "rpcrdma2.xid", "rpcrdma2.error", options=options)
    assert found == [["0x00000008", "4"]]


@BOTH_KINDS
def test_headers(form: Form) -> None:
    path = written("malformed", form, [Sent(False, header) for header in HEADERS.values()])
    found = tshark.fields(path, "rpcrdma2.malformed", "rpcrdma2.type")
    assert len(found) == len(HEADERS), found
    assert tshark.output(path, "-Y", "_ws.lua.error") == ""


@BOTH_KINDS
def test_cut_everywhere(form: Form) -> None:
    """No end of a message makes an error of the dissector's own; and an end within a header is always told."""
    whole = next(each.message for each in example.connection()
                 if isinstance(each, Sent) and each.message[12:16] == words(Type.CALL_EXTERNAL))
    ends = range(16, len(whole), 4)
    path = written("ends", form, [Sent(True, whole[:end]) for end in ends])
    assert len(tshark.fields(path, "rpcrdma2.malformed", "frame.number")) == len(ends)
    assert tshark.output(path, "-Y", "_ws.lua.error") == ""


@BOTH_KINDS
def test_random(form: Form) -> None:
    """Whatever is wrong with messages, the dissector makes no error of its own."""
    random = Random(2)
    messages: list[Sent | Moved] = []
    for each in 20 * example.connection():
        if isinstance(each, Sent):
            changed = bytearray(each.message)
            for _ in range(random.randrange(1, 4)):
                at = 4 * random.randrange(2, len(changed) // 4)
                changed[at:at + 4] = words(random.choice((0, 1, 2, 7, 80, 0x7fffffff, 0xffffffff, random.getrandbits(32))))
            del changed[random.choice((len(changed), random.randrange(16, len(changed) + 1))):]
            each = Sent(each.by_client, bytes(changed), each.invalidates)
        messages.append(each)
    path = written("random", form, messages)
    assert tshark.output(path, "-Y", "_ws.lua.error") == ""
    assert len(tshark.fields(path, "rpcrdma2.malformed", "frame.number")) > 50


@BOTH_KINDS
def test_unknown_type(form: Form) -> None:
    """It is shown where version 2 is spoken for sure, and is nobody's else."""
    unknown = Sent(True, message(14, 1, 1, words(1, 2)))
    path = written("unknown", form, [unknown, Sent(True, message(Type.GRANT, 0, 1)), unknown])
    assert tshark.fields(path, "rpcrdma2", "rpcrdma2.type", "_ws.expert.message")[1:] == [
        ["14", "Unknown header type,Sent without a credit"]]


@BOTH_KINDS
def test_trailing(form: Form) -> None:
    path = written("trailing", form, [Sent(True, message(Type.GRANT, 0, 1, words(0xabcd)))])
    assert tshark.fields(path, "rpcrdma2.trailing.present", "rpcrdma2.trailing") == [["0000abcd"]]


@BOTH_KINDS
def test_other_rpc_message(form: Form) -> None:
    body = words(0, 0, 0, 0) + example.call(2, 0)
    path = written("other", form, [Sent(True, message(Type.CALL_INLINE, 1, 1, body))])
    assert tshark.fields(path, "rpcrdma2.xid.differs", "rpcrdma2.xid", "rpc.xid") == [["0x00000001", "0x00000002"]]


@BOTH_KINDS
def test_credits(form: Form) -> None:
    """One message may be sent before any credit is told of, and a GRANT more."""
    path = written("credits", form, [*3 * [Sent(True, message(Type.GRANT, 0, 1))], Sent(False, message(Type.GRANT, 0, 5)),
                                     Sent(True, message(Type.CONNPROP_FINAL, 1, 1, words(0)))])
    assert tshark.fields(path, "rpcrdma2.credit.exceeded", "rpcrdma2.sequence") == [["3"]]


@BOTH_KINDS
@pytest.mark.parametrize("name", CONTINUED)
def test_continuation(form: Form, name: str) -> None:
    """What remains is not what was announced; another message is in between; an end comes too early."""
    parts, wrong = CONTINUED[name]
    messages = [Sent(True, message(kind, xid, 9, body)) for kind, xid, body in parts]
    path = written(f"continuation-{name.replace(' ', '-')}", form, messages)
    assert len(tshark.fields(path, "rpcrdma2.continuation", "frame.number")) == wrong


def test_loaded_from_the_folder() -> None:
    """The plugins folder, from which Wireshark loads each file by itself."""
    folder = DIRECTORY / "plugins"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for file in dissector.SCRIPT.parent.glob("*.lua"):
        shutil.copyfile(file, folder / file.name)
    path = written("folder", ROCE, example.connection())
    run = [*dissector.NOBODY, f"WIRESHARK_PLUGIN_DIR={folder}", "sh", "-c", 'exec "$@" 2>&1', "sh"]
    said = roots.tool_root().output([*run, "tshark", "-n", "-r", str(path), "-Y", "rpcrdma2.error || rpcrdma_private"])
    assert "Lua" not in said and "RDMA2_ERR_REPLY_RESOURCE" in said
