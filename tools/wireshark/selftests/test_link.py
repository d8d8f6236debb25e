"""Tests of captures: what is written is read back, and a tshark without anything of ours takes it for what it is."""

import struct
import unittest

import capture_file
import capture_packet
import capture_roce
import example
import link
import tshark
from captures import FORMS, IWARP, ROCE, Form, changed, written
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


class WrittenTest(unittest.TestCase):
    """What is written is read back."""

    def test_round_trip(self) -> None:
        for form in FORMS:
            with self.subTest(form=form):
                connection, = link.read(written("round-trip", form, messages(), PRIVATE))
                self.assertEqual(connection.messages, messages())
                for found, said, room in zip(connection.private, PRIVATE, ROOM[form.kind]):
                    self.assertEqual(found, said.ljust(room, b"\0"))

    def test_among_rdma(self) -> None:
        """RDMA Reads and Writes are not messages, but on InfiniBand take numbers, as many as they have packets."""
        sends = [each for each in example.connection() if isinstance(each, Sent)]
        for form in FORMS:
            with self.subTest(form=form):
                connection, = link.read(written("among", form, example.connection()))
                self.assertEqual(connection.messages, sends)

    def test_sent_again(self) -> None:
        """Frames that are twice there, as after a timeout, give no message twice."""
        for form in FORMS:
            with self.subTest(form=form):
                path = changed(written("again", form, messages()), lambda frames: [*frames, *frames[-9:]])
                self.assertEqual([each.messages for each in link.read(path)], [messages()])

    def test_begins_again(self) -> None:
        """All of it twice, set-up included, is still one connection."""
        for form in FORMS:
            with self.subTest(form=form):
                path = changed(written("begins", form, messages()), lambda frames: [*frames[:3], *frames])
                self.assertEqual([each.messages for each in link.read(path)], [messages()])

    def test_lost_on_the_way(self) -> None:
        """A frame that comes late, with those behind it sent again."""
        for form in FORMS:
            with self.subTest(form=form):
                path = changed(written("late", form, messages()), lambda frames: frames[:-5] + frames[-4:] + frames[-5:])
                connection, = link.read(path)
                self.assertEqual(sorted(map(repr, connection.messages)), sorted(map(repr, messages())))

    def test_lacking(self) -> None:
        """A frame that is nowhere is not passed over in silence."""
        for form in FORMS:
            with self.subTest(form=form), self.assertRaises(link.Incomplete):
                link.read(changed(written("lacking", form, messages()), lambda frames: frames[:8] + frames[9:]))

    def test_set_up_not_captured(self) -> None:
        for form in FORMS:
            with self.subTest(form=form):
                self.assertEqual(link.read(changed(written("middle", form, messages()), lambda frames: frames[3:])), [])

    def test_no_such_kind(self) -> None:
        for form in (Form("tcp", 1024), Form("roce", 1024, 700)):
            with self.subTest(form=form), self.assertRaises(ValueError):
                written("none", form, messages())


class FileTest(unittest.TestCase):
    """Kinds of files."""

    def test_pcapng(self) -> None:
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
        self.assertEqual(list(capture_file.read(path)), frames)

    def test_ends_within_a_frame(self) -> None:
        path = written("cut-off", ROCE, messages())
        whole = list(capture_file.read(path))
        path.write_bytes(path.read_bytes()[:-1])
        self.assertEqual(list(capture_file.read(path)), whole[:-1])

    def test_something_else(self) -> None:
        path = written("something-else", ROCE, [])
        path.write_bytes(b"no capture, whatever its name is")
        with self.assertRaises(ValueError):
            link.read(path)


class PacketTest(unittest.TestCase):
    """What is around a packet."""

    def test_ip_version_6(self) -> None:
        """With a tag of a VLAN in front, and padding of Ethernet behind."""
        header = struct.pack(">IHBB", 6 << 28, 4, capture_packet.UDP, 64) + bytes(15) + b"\1" + bytes(15) + b"\2"
        found = capture_packet.parse(bytes(12) + bytes.fromhex("8100000786dd") + header + b"body" + bytes(9))
        self.assertEqual(found, capture_packet.Packet("::1", "::2", capture_packet.UDP, b"body"))

    def test_no_packet(self) -> None:
        """Too short, of another protocol, a piece."""
        piece = capture_packet.HEADER4.pack(0x45, 0, 24, 0, 0x2000, 64, capture_packet.UDP, 0, bytes(4), bytes(4))
        of_arp, of_piece = bytes.fromhex("0806") + bytes(40), bytes.fromhex("0800") + piece + bytes(4)
        for frame in (b"", bytes(13), bytes(12) + of_arp, bytes(12) + of_piece):
            with self.subTest(frame=frame):
                self.assertIsNone(capture_packet.parse(frame))


class PlainTest(unittest.TestCase):
    """A tshark without the dissectors."""

    def test_well_formed(self) -> None:
        """The lower layers are what they should be, checksums too, and RPC-over-RDMA version 1 is found in them."""
        null = Sent(True, struct.pack(">7I", 7, 1, 32, 0, 0, 0, 0) + example.call(7, example.NULL))
        for form in FORMS:
            with self.subTest(form=form):
                path = written("plain", form, [null, *example.connection()])
                options = ("-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE")
                wrong = "_ws.malformed || tcp.checksum.status == 0 || ip.checksum.status == 0 || tcp.analysis.flags"
                self.assertEqual(tshark.plain(path, *options, "-Y", wrong), "")
                self.assertIn("V3 NULL Call", tshark.plain(path, "-Y", "rpcordma.xid == 7"))

    def test_set_up(self) -> None:
        """The connection manager and MPA show the private data."""
        for form, field in ((ROCE, "infiniband.cm.req.ip_cm.private"), (IWARP, "iwarp_mpa.privatedata")):
            with self.subTest(form=form):
                shown = tshark.plain(written("set-up", form, messages(), PRIVATE), "-Y", field, "-T", "fields", "-e", field)
                self.assertIn(PRIVATE[0].hex(), shown)

    def test_invalidations(self) -> None:
        for form, field, base in ((ROCE, "infiniband.ieth", 16), (IWARP, "iwarp_rdma.inval_stag", 10)):
            with self.subTest(form=form):
                shown = tshark.plain(written("keys", form, messages()), "-Y", field, "-T", "fields", "-e", field).split()
                keys = [each.invalidates for each in messages() if each.invalidates is not None]
                self.assertEqual(sorted({int(key, base) for key in ",".join(shown).split(",")}), sorted(set(keys)))


class ChecksumTest(unittest.TestCase):
    """The invariant checksum of RoCE."""

    def test_of_rxe(self) -> None:
        packet = FROM_RXE[capture_packet.ETHERNET.size:]
        at = capture_packet.HEADER4.size
        self.assertEqual(capture_roce.invariant(packet[:at], packet[at:at + 8], packet[at + 8:-4]), packet[-4:])
