"""Memory of this process that a device may use."""

import ctypes
import mmap

import verbs


class Memory:
    """A mapping, registered."""

    def __init__(self, domain: int, size: int, access: int) -> None:
        self.bytes = mmap.mmap(-1, size)
        self._anchor = ctypes.c_char.from_buffer(self.bytes)
        self.address = ctypes.addressof(self._anchor)
        self._domain, self._access = domain, access
        self.region = verbs.register(domain, self.address, size, access)

    def piece(self, start: int, length: int) -> verbs.Segment:
        """A part of it, for a work request."""
        return verbs.Segment(self.address + start, length, self.region.contents.local_key)

    def close(self) -> None:
        verbs.deregister(self.region)
        del self._anchor
        self.bytes.close()
