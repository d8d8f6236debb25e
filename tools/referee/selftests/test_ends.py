"""The raw requester and the raw responder, and captures of what they say."""

from pathlib import Path

import pytest

import conversation
import link
import protocol
from conversation import Conversation
from ends import CREDITS, End, exchange
from message import Message, Prefix
from conveyed import Call, Reply, call_payload, reply_payload

LONG = bytes(range(256)) * 40


def _answer(call: Message) -> Reply:
    return Reply(call.prefix.xid, reply_payload(call.prefix.xid, LONG))


@pytest.fixture
def client() -> End:
    return End(True, {}, _answer)


def test_all_is_answered() -> None:
    talk = Conversation()
    talk.run()
    assert sorted(talk.client.replies) == [conversation.NULL, conversation.WRITE, conversation.READ, conversation.EXTERNAL,
                                           conversation.LONG, conversation.STREAM, conversation.LAST]
    assert sorted(talk.server.replies) == [conversation.REVERSE, conversation.LONG_REVERSE]
    assert talk.client.errors == {conversation.TOO_MANY: (protocol.READ_CHUNKS, [2])}


def test_each_header_type_comes() -> None:
    kinds = {Prefix.decode(sent.message).kind for sent in Conversation().run()}
    assert kinds == set(protocol.HEADERS) - {protocol.CONNPROP_MIDDLE}


def test_a_reply_is_put_together(client: End) -> None:
    server = End(False, {}, _answer)
    client.tell_properties(1)
    exchange((client, server))
    client.call(Call(5, call_payload(5)))
    messages = [Message.decode(sent.message) for sent in exchange((client, server)) if not sent.by_client]
    assert b"".join(each.payload for each in messages) == reply_payload(5, LONG)


def test_a_service_has_the_whole_call() -> None:
    payload = call_payload(5, 1, LONG)
    calls = list[Message]()
    server = End(False, {}, calls.append)
    for message in Call(5, payload).messages(1024):
        server.receive(message.encode())
    assert [call.payload for call in calls] == [payload]


@pytest.mark.parametrize(("told", "size"), [(1024, 1024), (8192, protocol.DEFAULT_SIZE)])
def test_keeps_to_its_own_size(told: int, size: int) -> None:
    assert End(True, {protocol.SBSIZ: told}, _answer).size == size


def test_waits_for_credits(client: End) -> None:
    client.tell_properties(1)
    client.call(Call(5, call_payload(5)))
    assert client.post() is not None and client.post() is None
    client.receive(Prefix(0, 2, 2, protocol.GRANT).encode())
    assert client.post() is not None


def test_all_fragments_or_none(client: End) -> None:
    client.call(Call(5, call_payload(5, 1, bytes(9000))))
    assert client.post() is None
    client.receive(Prefix(0, 2, 2, protocol.GRANT).encode())
    assert client.post() is None
    client.receive(Prefix(0, 2, 3, protocol.GRANT).encode())
    assert [client.post() is not None for _ in range(4)] == [True, True, True, False]


def test_grants_alone_are_not_answered(client: End) -> None:
    for _ in range(CREDITS):
        client.receive(Prefix(0, 2, 9, protocol.GRANT).encode())
    assert client.post() is None


@pytest.mark.parametrize("kind", ["roce", "iwarp"])
def test_written_and_read(kind: str, tmp_path: Path) -> None:
    messages = Conversation().run()
    link.write(tmp_path / "capture", kind, messages)
    (connection,) = link.read(tmp_path / "capture")
    assert connection.messages == messages
