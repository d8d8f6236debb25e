"""Tests of captures: what is written is read back, and a tshark without anything of ours takes it for what it is."""

import struct

import pytest

import capture_file
import capture_packet
import capture_roce
import example
import link
import tshark
from captures import EACH_FORM, IWARP, ROCE, Form, changed, written
from link import Sent

PRIVATE = (b"of the client", b"of the server")
# What the connection manager of InfiniBand has room for.
ROOM = {"roce": (56, 196), "iwarp": (0, 0)}
# As rxe has sent it: a Call of NFS's NULL procedure in version 1 of RPC-over-RDMA.
FROM_RXE = bytes.fromhex(
    "525400000001525400000002080045000070ff6440004011b714c0000202c0000201da6a12b7005c00000400ffff000000278010e87cdd41"
    "c155000000010000008000000000000000000000000000000000dd41c1550000000000000002000186a30000000400000000000000000000"
    "00000000000000000000a5c3ea45")


def messages() -> list[Sent]:
    """Of many lengths, whether multiples of four or not, in both directions, some of which make a key invalid."""
    lengths = [1, 2, 3, 4, 17, 1000, 1023, 1024, 1025, 2048, 4096, 4097, 9001]
    return [Sent(bool(index % 2), (bytes(range(256)) * 36)[:length], index if index % 3 == 0 else None)
            for index, length in enumerate(lengths + lengths)]


@EACH_FORM
def test_round_trip(form: Form) -> None:
    connection, = link.read(written("round-trip", form, messages(), PRIVATE))
    assert connection.messages == messages()
    for found, said, room in zip(connection.private, PRIVATE, ROOM[form.kind]):
        assert found == said.ljust(room, b"\0")


@EACH_FORM
def test_among_rdma(form: Form) -> None:
    """RDMA Reads and Writes are not messages, but on InfiniBand take numbers, as many as they have packets."""
    sends = [each for each in example.connection() if isinstance(each, Sent)]
    assert [each.messages for each in link.read(written("among", form, example.connection()))] == [sends]


@EACH_FORM
def test_sent_again(form: Form) -> None:
    """Frames that are twice there, as after a timeout, give no message twice."""
    path = changed(written("again", form, messages()), lambda frames: [*frames, *frames[-9:]])
    assert [each.messages for each in link.read(path)] == [messages()]


@EACH_FORM
def test_begins_again(form: Form) -> None:
    """All of it twice, set-up included, is still one connection."""
    path = changed(written("begins", form, messages()), lambda frames: [*frames[:3], *frames])
    assert [each.messages for each in link.read(path)] == [messages()]


@EACH_FORM
def test_lost_on_the_way(form: Form) -> None:
    """A frame that comes late, with those behind it sent again."""
    path = changed(written("late", form, messages()), lambda frames: frames[:-5] + frames[-4:] + frames[-5:])
    connection, = link.read(path)
    assert sorted(map(repr, connection.messages)) == sorted(map(repr, messages()))


@EACH_FORM
def test_lacking(form: Form) -> None:
    """A frame that is nowhere is not passed over in silence."""
    with pytest.raises(link.Incomplete):
        link.read(changed(written("lacking", form, messages()), lambda frames: frames[:8] + frames[9:]))


@EACH_FORM
def test_set_up_not_captured(form: Form) -> None:
    assert link.read(changed(written("middle", form, messages()), lambda frames: frames[3:])) == []


@pytest.mark.parametrize("form", [Form("tcp", 1024), Form("roce", 1024, 700)], ids=str)
def test_no_such_kind(form: Form) -> None:
    with pytest.raises(ValueError):
        written("none", form, messages())


def test_pcapng() -> None:
    frames = [bytes(range(60)), bytes(range(33))]
    blocks = [struct.pack("<III", 0x0a0d0d0a, 28, 0x1a2b3c4d) + struct.pack("<HHqI", 1, 0, -1, 28),
              struct.pack("<IIHHII", 1, 20, 1, 0, 0, 20)]
    for frame in frames:
        padded = frame + bytes(-len(frame) % 4)
        length = 32 + len(padded)
        header = struct.pack("<IIIIIII", 6, length, 0, 0, 0, len(frame), len(frame))
        blocks.append(header + padded + struct.pack("<I", length))
    path = written("file", ROCE, []).with_suffix(".pcapng")
    path.write_bytes(b"".join(blocks))
    assert list(capture_file.read(path)) == frames


def test_ends_within_a_frame() -> None:
    path = written("cut-off", ROCE, messages())
    whole = list(capture_file.read(path))
    path.write_bytes(path.read_bytes()[:-1])
    assert list(capture_file.read(path)) == whole[:-1]


def test_something_else() -> None:
    path = written("something-else", ROCE, [])
    path.write_bytes(b"no capture, whatever its name is")
    with pytest.raises(ValueError):
        link.read(path)


def test_ip_version_6() -> None:
    """With a tag of a VLAN in front, and padding of Ethernet behind."""
    header = struct.pack(">IHBB", 6 << 28, 4, capture_packet.UDP, 64) + bytes(15) + b"\1" + bytes(15) + b"\2"
    found = capture_packet.parse(bytes(12) + bytes.fromhex("8100000786dd") + header + b"body" + bytes(9))
    assert found == capture_packet.Packet("::1", "::2", capture_packet.UDP, b"body")


# A piece of a packet of IP.
PIECE = capture_packet.HEADER4.pack(0x45, 0, 24, 0, 0x2000, 64, capture_packet.UDP, 0, bytes(4), bytes(4))


@pytest.mark.parametrize("frame", [
    b"", bytes(13), bytes(12) + bytes.fromhex("0806") + bytes(40), bytes(12) + bytes.fromhex("0800") + PIECE + bytes(4)],
    ids=["nothing", "too short", "of another protocol", "a piece"])
def test_no_packet(frame: bytes) -> None:
    assert capture_packet.parse(frame) is None


@EACH_FORM
def test_well_formed(form: Form) -> None:
    """The lower layers are what they should be, checksums too, and RPC-over-RDMA version 1 is found in them."""
    null = Sent(True, struct.pack(">7I", 7, 1, 32, 0, 0, 0, 0) + example.call(7, example.NULL))
    path = written("plain", form, [null, *example.connection()])
    options = ("-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE")
    wrong = "_ws.malformed || tcp.checksum.status == 0 || ip.checksum.status == 0 || tcp.analysis.flags"
    assert tshark.plain(path, *options, "-Y", wrong) == ""
    assert "V3 NULL Call" in tshark.plain(path, "-Y", "rpcordma.xid == 7")


@pytest.mark.parametrize(("form", "field"), [(ROCE, "infiniband.cm.req.ip_cm.private"), (IWARP, "iwarp_mpa.privatedata")])
def test_set_up(form: Form, field: str) -> None:
    """The connection manager and MPA show the private data."""
    assert PRIVATE[0].hex() in tshark.plain(written("set-up", form, messages(), PRIVATE), "-Y", field, "-T", "fields", "-e", field)


@pytest.mark.parametrize(("form", "field", "base"), [(ROCE, "infiniband.ieth", 16), (IWARP, "iwarp_rdma.inval_stag", 10)])
def test_invalidations(form: Form, field: str, base: int) -> None:
    shown = tshark.plain(written("keys", form, messages()), "-Y", field, "-T", "fields", "-e", field).split()
    keys = {each.invalidates for each in messages() if each.invalidates is not None}
    assert {int(key, base) for key in ",".join(shown).split(",")} == keys


def test_invariant_checksum_of_rxe() -> None:
    packet = FROM_RXE[capture_packet.ETHERNET.size:]
    at = capture_packet.HEADER4.size
    assert capture_roce.invariant(packet[:at], packet[at:at + 8], packet[at + 8:-4]) == packet[-4:]
