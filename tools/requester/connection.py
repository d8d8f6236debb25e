"""A connection to the server."""

import ctypes

import verbs
from adapter import PORT, Adapter
from endpoint import MESSAGE_BYTES, OTHER, RECEIVES, Endpoint, Lost
from events import DEPTH, Events
from failure import Failure
from header import Segment, private_data


class Connection(Endpoint):
    """One connection."""

    def __init__(self, adapter: Adapter, private: bytes = private_data(), not_ready_retries: int = 7,
                 receives: int = RECEIVES, posted: bool = True, receive_bytes: int = MESSAGE_BYTES,
                 depth: int = DEPTH) -> None:
        events = Events()
        events.resolve(adapter.address, PORT)
        super().__init__(events, adapter.domain, adapter.calls, receives, posted, receive_bytes)
        self._adapter = adapter
        self._windows: list[verbs.Window] = []
        # What the server says of itself.
        self.private = events.connect(private, not_ready_retries, depth)

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
        self._post(verbs.SendRequest(id=OTHER, opcode=verbs.BIND_WINDOW, flags=verbs.SEND_SIGNALED,
                                     window=ctypes.addressof(window), window_key=key, bind=bind))
        self._drain_sends()
        return Segment(key, segment.length, segment.offset)

    def _close_windows(self) -> None:
        for window in self._windows:
            self._calls.dealloc_window(window)
