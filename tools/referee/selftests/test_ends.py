"""The raw requester and the raw responder, and captures of what they say."""

import tempfile
import unittest
from pathlib import Path

import conversation
import link
import protocol
from conversation import Conversation
from ends import CREDITS, End, exchange
from message import Message, Prefix
from conveyed import Call, Reply, call_payload, reply_payload


class Talking(unittest.TestCase):
    """What the ends do with the messages of each other."""

    def test_all_is_answered(self) -> None:
        talk = Conversation()
        talk.run()
        self.assertEqual(sorted(talk.client.replies), [conversation.NULL, conversation.WRITE, conversation.READ,
                                                       conversation.EXTERNAL, conversation.LONG, conversation.STREAM,
                                                       conversation.LAST])
        self.assertEqual(sorted(talk.server.replies), [conversation.REVERSE, conversation.LONG_REVERSE])
        self.assertEqual(talk.client.errors, {conversation.TOO_MANY: (protocol.READ_CHUNKS, [2])})

    def test_each_header_type_comes(self) -> None:
        kinds = {Prefix.decode(sent.message).kind for sent in Conversation().run()}
        self.assertEqual(kinds, set(protocol.HEADERS) - {protocol.CONNPROP_MIDDLE})

    def test_a_reply_is_put_together(self) -> None:
        client, server = End(True, {}, _answer), End(False, {}, _answer)
        client.tell_properties(1)
        exchange((client, server))
        client.call(Call(5, call_payload(5)))
        messages = [Message.decode(sent.message) for sent in exchange((client, server)) if not sent.by_client]
        self.assertEqual(b"".join(each.payload for each in messages), reply_payload(5, bytes(range(256)) * 40))

    def test_a_service_has_the_whole_call(self) -> None:
        payload = call_payload(5, 1, bytes(range(256)) * 40)
        calls = list[Message]()
        server = End(False, {}, calls.append)
        for message in Call(5, payload).messages(1024):
            server.receive(message.encode())
        self.assertEqual([call.payload for call in calls], [payload])

    def test_keeps_to_its_own_size(self) -> None:
        self.assertEqual(End(True, {protocol.SBSIZ: 1024}, _answer).size, 1024)
        self.assertEqual(End(True, {protocol.SBSIZ: 8192}, _answer).size, protocol.DEFAULT_SIZE)

    def test_waits_for_credits(self) -> None:
        client = End(True, {}, _answer)
        client.tell_properties(1)
        client.call(Call(5, call_payload(5)))
        self.assertIsNotNone(client.post())
        self.assertIsNone(client.post())
        client.receive(Prefix(0, 2, 2, protocol.GRANT).encode())
        self.assertIsNotNone(client.post())

    def test_all_fragments_or_none(self) -> None:
        client = End(True, {}, _answer)
        client.call(Call(5, call_payload(5, 1, bytes(9000))))
        self.assertIsNone(client.post())
        client.receive(Prefix(0, 2, 2, protocol.GRANT).encode())
        self.assertIsNone(client.post())
        client.receive(Prefix(0, 2, 3, protocol.GRANT).encode())
        self.assertEqual([client.post() is not None for _ in range(4)], [True, True, True, False])

    def test_grants_alone_are_not_answered(self) -> None:
        client = End(True, {}, _answer)
        for _ in range(CREDITS):
            client.receive(Prefix(0, 2, 9, protocol.GRANT).encode())
        self.assertIsNone(client.post())


class Captured(unittest.TestCase):
    """Conversations through a file."""

    def test_written_and_read(self) -> None:
        messages = Conversation().run()
        for kind in ("roce", "iwarp"):
            with tempfile.TemporaryDirectory() as directory:
                path = Path(directory) / "capture"
                link.write(path, kind, messages)
                (connection,) = link.read(path)
                self.assertEqual(connection.messages, messages)


def _answer(call: Message) -> Reply:
    return Reply(call.prefix.xid, reply_payload(call.prefix.xid, bytes(range(256)) * 40))


if __name__ == "__main__":
    unittest.main()
