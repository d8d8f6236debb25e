"""A connection to the server, for messages as they are."""

import ctypes
import select
import time
from dataclasses import dataclass

import verbs
from adapter import SECONDS, Adapter, Events, Memory
from failure import Failure, require
from header import Segment, private_data

RECEIVES = 64
SENDS = 256
MESSAGE_BYTES = 8192
RECEIVED = 1 << 32
BOUND = 1 << 33


@dataclass(frozen=True)
class Received:
    """A message of the server."""

    message: bytes
    # The key that came to be invalid with it.
    invalidated: int | None


class Lost(Failure):
    """The connection is no more."""


class Connection:
    """One connection."""

    def __init__(self, adapter: Adapter, private: bytes = private_data(), not_ready_retries: int = 7,
                 receives: int = RECEIVES) -> None:
        self._adapter, self._calls = adapter, adapter.calls
        self._events = Events()
        self._events.resolve(adapter.address)
        self._channel = verbs.create_channel(adapter.context)
        self._queue = verbs.create_queue(adapter.context, SENDS + receives, None, self._channel, 0)
        attributes = verbs.QueuePairAttributes(send_queue=self._queue, receive_queue=self._queue, sends=SENDS,
                                               receives=receives, send_segments=1, receive_segments=1,
                                               type=verbs.QUEUE_PAIR_RC, all_signaled=1)
        verbs.create_queue_pair(self._events.id, adapter.domain, ctypes.byref(attributes))
        self._queue_pair = self._events.id.contents.queue_pair
        self._sends = Memory(adapter.domain, SENDS * MESSAGE_BYTES, verbs.LOCAL_WRITE)
        self._receives = Memory(adapter.domain, receives * MESSAGE_BYTES, verbs.LOCAL_WRITE)
        self._sent, self._in_flight = 0, 0
        self._windows: list[verbs.Window] = []
        self._arrived: list[Received] = []
        self.is_lost = self._is_disconnected = False
        for number in range(receives):
            self._post_receive(number)
        buffer = ctypes.create_string_buffer(private, len(private))
        parameters = verbs.ConnectionParameters(
            private=ctypes.addressof(buffer) if private else None, private_length=len(private), responder_resources=16,
            initiator_depth=16, retries=7, not_ready_retries=not_ready_retries)
        verbs.connect(self._events.id, ctypes.byref(parameters))
        # What the server says of itself.
        self.private = self._events.expect(verbs.ESTABLISHED)

    def close(self) -> None:
        """End it."""
        if not self.is_lost:
            verbs.disconnect(self._events.id)
        # Before the queue pair, for which rxe would otherwise wait.
        for window in self._windows:
            self._calls.dealloc_window(window)
        verbs.destroy_queue_pair(self._events.id)
        verbs.destroy_queue(self._queue)
        verbs.destroy_channel(self._channel)
        self._events.close()
        self._sends.close()
        self._receives.close()

    def send(self, message: bytes) -> None:
        """Send a message."""
        require(len(message) <= MESSAGE_BYTES, "the case sends a longer message than there is room for")
        while self._in_flight == SENDS:
            self._await_completion(time.monotonic() + SECONDS)
        start = self._sent % SENDS * MESSAGE_BYTES
        self._sends.bytes[start:start + len(message)] = message
        piece = self._segment(self._sends, start, len(message))
        self._post(verbs.SendRequest(id=self._sent, segments=ctypes.pointer(piece), segment_count=1,
                                     opcode=verbs.SEND, flags=verbs.SEND_SIGNALED))
        self._sent += 1

    def receive(self, seconds: float = SECONDS) -> Received:
        """The next message of the server."""
        deadline = time.monotonic() + seconds
        while not self._arrived:
            self._await_completion(deadline)
        return self._arrived.pop(0)

    def must_be_lost(self) -> None:
        """Wait until the server has ended the connection; nothing may come before."""
        try:
            received = self.receive()
        except Lost:
            # The device here may have found the error first, and the server may not know of it yet.
            self._await_disconnect()
            return
        raise Failure(f"the connection is not lost, but there is an answer: {received.message[:48].hex(' ', 4)}")

    def window(self, segment: Segment) -> Segment:
        """Memory by the key of a window of its own, which the server may make invalid.

        The device takes a message that would do that to the key of a region for a mistake, if it is rxe.
        """
        window = self._calls.alloc_window(self._adapter.domain)
        self._windows.append(window)
        key = window.remote_key & 0xffffff00 | (window.remote_key + 1) & 0xff
        region = ctypes.cast(self._adapter.arena.region, ctypes.c_void_p)
        bind = verbs.BindInfo(region=region, address=segment.offset, length=segment.length,
                              access=verbs.REMOTE_WRITE | verbs.REMOTE_READ)
        self._post(verbs.SendRequest(id=BOUND, opcode=verbs.BIND_WINDOW, flags=verbs.SEND_SIGNALED,
                                     window=ctypes.addressof(window), window_key=key, bind=bind))
        while self._in_flight:
            self._await_completion(time.monotonic() + SECONDS)
        return Segment(key, segment.length, segment.offset)

    def _post(self, request: verbs.SendRequest) -> None:
        self._calls.post_send(self._queue_pair, request)
        self._in_flight += 1

    def _post_receive(self, number: int) -> None:
        piece = self._segment(self._receives, number * MESSAGE_BYTES, MESSAGE_BYTES)
        request = verbs.ReceiveRequest(id=RECEIVED + number, segments=ctypes.pointer(piece), segment_count=1)
        self._calls.post_receive(self._queue_pair, request)

    @staticmethod
    def _segment(memory: Memory, start: int, length: int) -> verbs.Segment:
        return verbs.Segment(memory.address + start, length, memory.region.contents.local_key)

    def _await_completion(self, deadline: float) -> None:
        """Wait for the next completion; Lost if there is none because the connection has ended."""
        while True:
            if self.is_lost:
                raise Lost("the connection is lost")
            completion = self._calls.poll(self._queue)
            if completion is None:
                # What came before this would not be told.
                self._calls.notify(self._queue)
                completion = self._calls.poll(self._queue)
            if completion is not None:
                self._completed(completion)
                return
            left = deadline - time.monotonic()
            require(left > 0, "no answer")
            descriptor = self._channel.contents.descriptor
            if select.select([descriptor], [], [], min(left, 0.2))[0]:
                verbs.get_notice(self._channel, ctypes.byref(ctypes.c_void_p()), ctypes.byref(ctypes.c_void_p()))
                verbs.ack_notices(self._queue, 1)
            else:
                self._next_event(0)

    def _await_disconnect(self) -> None:
        deadline = time.monotonic() + SECONDS
        while not self._is_disconnected:
            left = deadline - time.monotonic()
            require(left > 0, "the connection is lost, but the server does not end it")
            self._next_event(left)

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
