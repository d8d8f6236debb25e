"""One end of a connection, for messages as they are."""

import ctypes
import select
import time
from dataclasses import dataclass

import verbs
from events import SECONDS, Events
from failure import Failure, require
from memory import Memory

RECEIVES = 64
SENDS = 256
MESSAGE_BYTES = 8192
RECEIVED = 1 << 32
OTHER = 1 << 33


@dataclass(frozen=True)
class Received:
    """A message of the peer."""

    message: bytes
    # The key that came to be invalid with it.
    invalidated: int | None


class Lost(Failure):
    """The connection is no more."""


class Endpoint:
    """A queue pair, with Receives posted."""

    def __init__(self, events: Events, domain: int, calls: verbs.Calls, receives: int = RECEIVES,
                 posted: bool = True, receive_bytes: int = MESSAGE_BYTES) -> None:
        """On an id that is bound to the device of the domain. Unless `posted` is false, Receives are."""
        self._receive_bytes = receive_bytes
        self._events, self._domain, self._calls = events, domain, calls
        context = events.id.contents.context
        self._channel = verbs.create_channel(context)
        self._queue = verbs.create_queue(context, SENDS + receives, None, self._channel, 0)
        attributes = verbs.QueuePairAttributes(send_queue=self._queue, receive_queue=self._queue, sends=SENDS,
                                               receives=receives, send_segments=1, receive_segments=1,
                                               type=verbs.QUEUE_PAIR_RC, all_signaled=1)
        verbs.create_queue_pair(self._events.id, domain, ctypes.byref(attributes))
        self._queue_pair = self._events.id.contents.queue_pair
        self._sends = Memory(domain, SENDS * MESSAGE_BYTES, verbs.LOCAL_WRITE)
        self._receives = Memory(domain, receives * MESSAGE_BYTES, verbs.LOCAL_WRITE)
        self._sent, self._in_flight = 0, 0
        self._arrived: list[Received] = []
        self.is_lost = self._is_disconnected = False
        for number in range(receives if posted else 0):
            self._post_receive(number)

    def close(self) -> None:
        """End it."""
        if not self.is_lost:
            verbs.disconnect(self._events.id)
        self._close_windows()
        verbs.destroy_queue_pair(self._events.id)
        verbs.destroy_queue(self._queue)
        verbs.destroy_channel(self._channel)
        self._events.close()
        self._sends.close()
        self._receives.close()

    def send(self, message: bytes, invalidates: int | None = None) -> None:
        """Send a message, which makes a key of the peer's invalid."""
        self._await_room(1)
        self._post(self._send_request(message, invalidates))

    def send_at_once(self, messages: list[bytes]) -> None:
        """Send messages that the device gets in one go, so that they follow each other as fast as it can send."""
        self._await_room(len(messages))
        requests = [self._send_request(message) for message in messages]
        for request, following in zip(requests, requests[1:]):
            request.next = ctypes.addressof(following)
        self._post(requests[0], len(requests))

    def _await_room(self, count: int) -> None:
        """Wait until so many messages more can be under way."""
        while self._in_flight + count > SENDS:
            self._await_completion(time.monotonic() + SECONDS)

    def _send_request(self, message: bytes, invalidates: int | None = None) -> verbs.SendRequest:
        """A message in memory of its own, to be posted."""
        require(len(message) <= MESSAGE_BYTES, "a longer message than there is room for")
        start = self._sent % SENDS * MESSAGE_BYTES
        self._sends.bytes[start:start + len(message)] = message
        piece = self._sends.piece(start, len(message))
        request = verbs.SendRequest(id=self._sent, segments=ctypes.pointer(piece), segment_count=1,
                                    opcode=verbs.SEND if invalidates is None else verbs.SEND_INVALIDATING,
                                    immediate=invalidates or 0, flags=verbs.SEND_SIGNALED)
        self._sent += 1
        return request

    def write(self, data: bytes, key: int, address: int) -> None:
        """Put data into the peer's memory, as far as the device has taken it when this returns."""
        self._transfer(verbs.RDMA_WRITE, key, address, len(data), data)

    def read(self, key: int, address: int, length: int) -> bytes:
        """Data from the peer's memory."""
        return self._transfer(verbs.RDMA_READ, key, address, length, b"")

    def receive(self, seconds: float = SECONDS) -> Received:
        """The next message of the peer."""
        deadline = time.monotonic() + seconds
        while not self._arrived:
            self._await_completion(deadline)
        return self._arrived.pop(0)

    def has_received(self, seconds: float) -> bool:
        """Whether there is a message of the peer, or comes within so many seconds."""
        deadline = time.monotonic() + seconds
        while not self._arrived and (left := deadline - time.monotonic()) > 0:
            if not self._complete_next():
                self._await_notice(left)
        return bool(self._arrived)

    @property
    def taken(self) -> int:
        """Messages that the peer is known to have received."""
        return self._sent - self._in_flight

    def _close_windows(self) -> None:
        """Before the queue pair, for which rxe would otherwise wait."""

    def _transfer(self, opcode: int, key: int, address: int, length: int, data: bytes) -> bytes:
        room = Memory(self._domain, max(length, 1), verbs.LOCAL_WRITE)
        room.bytes[:len(data)] = data
        piece = room.piece(0, length)
        self._post(verbs.SendRequest(id=OTHER, segments=ctypes.pointer(piece), segment_count=1, opcode=opcode,
                                     flags=verbs.SEND_SIGNALED, remote=(ctypes.c_uint64 * 4)(address, key)))
        try:
            self._drain_sends()
            return room.bytes[:length]
        finally:
            room.close()

    def _post(self, request: verbs.SendRequest, count: int = 1) -> None:
        """Post a request, with those that follow it: so many in all; Lost if the connection has ended."""
        try:
            self._calls.post_send(self._queue_pair, request)
        except OSError:
            # siw refuses it, too, when it knows of the end and has not told of it yet.
            if not self._ends():
                raise
            raise Lost("the connection is lost") from None
        self._in_flight += count

    def _drain_sends(self) -> None:
        """Wait until all that was posted is done."""
        while self._in_flight:
            self._await_completion(time.monotonic() + SECONDS)

    def _post_receive(self, number: int) -> None:
        piece = self._receives.piece(number * MESSAGE_BYTES, self._receive_bytes)
        request = verbs.ReceiveRequest(id=RECEIVED + number, segments=ctypes.pointer(piece), segment_count=1)
        self._calls.post_receive(self._queue_pair, request)

    def _await_completion(self, deadline: float) -> None:
        """Wait for the next completion; Lost if there is none because the connection has ended."""
        while not self._complete_next():
            left = deadline - time.monotonic()
            require(left > 0, "no answer")
            self._await_notice(min(left, 0.2))

    def _complete_next(self) -> bool:
        """Take the next completion, if there is one, or else ask for notice of it; Lost as above."""
        completion = self._calls.poll(self._queue)
        if completion is None and self.is_lost:
            raise Lost("the connection is lost")
        if completion is None:
            # What came before this would not be told.
            self._calls.notify(self._queue)
            completion = self._calls.poll(self._queue)
        if completion is None:
            return False
        self._completed(completion)
        return True

    def _await_notice(self, seconds: float, *others: int) -> list[int]:
        """Wait for a completion, an event, or until one of the other descriptors is readable; which of these are."""
        mine = self._channel.contents.descriptor
        readable = select.select([mine, self._events.descriptor, *others], [], [], seconds)[0]
        if mine in readable:
            verbs.get_notice(self._channel, ctypes.byref(ctypes.c_void_p()), ctypes.byref(ctypes.c_void_p()))
            verbs.ack_notices(self._queue, 1)
        elif self._events.descriptor in readable:
            self._next_event(0)
        return [other for other in others if other in readable]

    def _await_disconnect(self) -> None:
        require(self._ends(), "the connection is lost, but the peer does not end it")

    def _ends(self) -> bool:
        """Wait for the end of the connection; whether it came."""
        deadline = time.monotonic() + SECONDS
        while not self._is_disconnected and (left := deadline - time.monotonic()) > 0:
            self._next_event(left)
        return self._is_disconnected

    def _next_event(self, seconds: float) -> None:
        event = self._events.next(seconds)
        if event is not None and event[0] == verbs.DISCONNECTED:
            self.is_lost = self._is_disconnected = True

    def _completed(self, completion: verbs.Completion) -> None:
        if completion.status:
            self.is_lost = True
        elif completion.id & RECEIVED:
            number = completion.id & 0xffff
            start = number * MESSAGE_BYTES
            message = self._receives.bytes[start:start + completion.length]
            invalidated = completion.invalidated if completion.flags & verbs.COMPLETED_INVALIDATED else None
            self._arrived.append(Received(message, invalidated))
            self._post_receive(number)
        else:
            self._in_flight -= 1
