"""A responder that provides Replies for the client to pull (Documentation/reliable-reply.rst), as it should and not."""

import threading
from collections.abc import Callable
from dataclasses import replace

from behaviours import Behaviour, Places
from failure import require
from header import RDMA_NOMSG, Header, Segment, filled, private_data, pulls, words
from memory import Memory

# What nobody has registered.
NO_KEY = 0x0bad0b00
LONG = 0xfffffff0


class Provides(Behaviour):
    """Keeps in its memory what does not come inline, until it is told that it was pulled."""

    private = private_data() + pulls(may_provide=True)
    # Of the segments of a Reply, wherever its bytes are; the last has the rest.
    lengths: tuple[int, ...] = (1, 4095, 9, 1023)

    def __init__(self) -> None:
        self._memory: dict[tuple[int, int], Memory] = {}

    def reply(self, proxy, offer: Header, message: bytes) -> None:
        inline = Header(offer.xid, credits=self.credits, writes=[filled(chunk, 0) for chunk in offer.writes])
        has_room = offer.reply and len(message) <= sum(segment.length for segment in offer.reply)
        if has_room or len(inline.encode()) + len(message) <= proxy.threshold:
            return proxy.reply(offer, message)
        self.provide(proxy, offer, message)

    def provide(self, proxy, offer: Header, message: bytes) -> None:
        self.send(proxy, self.kept(proxy, offer, message))

    def send(self, proxy, header: Header, rest: bytes = b"") -> None:
        print("provided", flush=True)
        proxy.send_header(header, rest)

    def kept(self, proxy, offer: Header, message: bytes) -> Header:
        """Keep a Reply; the header that says where it is."""
        key = id(proxy), offer.xid
        # Two of one XID may be there, as long as both are.
        while key in self._memory:
            key = key[0], key[1] + (1 << 32)
        memory = self._memory[key] = proxy.readable(message)
        reads, start = [], 0
        for length in (*self.lengths, len(message)):
            length = min(length, len(message) - start)
            if length:
                reads.append((0, Segment(memory.region.contents.remote_key, length, memory.address + start)))
            start += length
        return Header(offer.xid, RDMA_NOMSG, self.credits, reads=reads, writes=[filled(chunk, 0) for chunk in offer.writes])

    def done(self, proxy, xid: int) -> None:
        # The latter of two is meant, while the former may still be read.
        key = id(proxy), xid
        while (key[0], key[1] + (1 << 32)) in self._memory:
            key = key[0], key[1] + (1 << 32)
        memory = self._memory.pop(key, None)
        print("done" if memory else "done with nothing", flush=True)
        if memory:
            memory.close()


class ProvidesBadly(Provides):
    """Has something wrong with a Reply that it provides, of each kind in turn, and nothing when its Call comes again."""

    def __init__(self) -> None:
        super().__init__()
        self._kinds = list(self._forms())
        self._seen: list[int] = []
        # What comes after the first one the client does not hear any more.
        self._spoilt: list = []

    def provide(self, proxy, offer: Header, message: bytes) -> None:
        if not self._kinds or offer.xid in self._seen or proxy in self._spoilt:
            return super().provide(proxy, offer, message)
        name, form = self._kinds.pop(0)
        self._seen.append(offer.xid)
        self._spoilt.append(proxy)
        print(f"spoilt {name}", flush=True)
        form(proxy, offer, message)

    def _forms(self) -> list[tuple[str, Callable[..., None]]]:
        def changed(proxy, offer: Header, message: bytes, **changes) -> None:
            self.send(proxy, replace(self.kept(proxy, offer, message), **changes))

        def reads(change: Callable[[tuple[int, Segment]], tuple[int, Segment]]) -> Callable[..., None]:
            def form(proxy, offer: Header, message: bytes) -> None:
                header = self.kept(proxy, offer, message)
                self.send(proxy, replace(header, reads=[change(read) for read in header.reads]))
            return form

        def more(proxy, offer: Header, message: bytes) -> None:
            header = self.kept(proxy, offer, message)
            self.send(proxy, replace(header, reads=[*header.reads, (44, header.reads[0][1])]))

        def another(proxy, offer: Header, message: bytes) -> None:
            self.send(proxy, self.kept(proxy, offer, words(offer.xid ^ 1) + message[4:]))

        def a_call(proxy, offer: Header, message: bytes) -> None:
            self.send(proxy, self.kept(proxy, offer, message[:4] + words(0) + message[8:]))

        def inline(proxy, offer: Header, message: bytes) -> None:
            self.send(proxy, replace(self.kept(proxy, offer, message), procedure=0), message[:40])

        def chunk_too(proxy, offer: Header, message: bytes) -> None:
            changed(proxy, offer, message, reply=[Segment(1, 40, 0)])

        def write_chunk(proxy, offer: Header, message: bytes) -> None:
            changed(proxy, offer, message, writes=[*offer.writes, [Segment(1, 40, 0)]])

        def short(proxy, offer: Header, message: bytes) -> None:
            header = self.kept(proxy, offer, message)
            self.send(proxy, replace(header, reads=[(0, replace(header.reads[0][1], length=7))]))

        return [("another Position", reads(lambda read: (44, read[1]))), ("two Positions", more),
                ("a Reply chunk, too", chunk_too), ("a Write chunk of nobody", write_chunk),
                ("a key of nobody", reads(lambda read: (0, replace(read[1], handle=NO_KEY)))),
                ("too short", short), ("lengths that overflow", reads(lambda read: (0, replace(read[1], length=LONG)))),
                ("an offset that wraps", reads(lambda read: (0, replace(read[1], offset=(1 << 64) - 1)))),
                ("another XID", another), ("a Call", a_call), ("a message beside it", inline)]


class ProvidesTwice(Provides):
    """Says of each Reply twice that it provides it, and of Replies that nobody awaits."""

    def provide(self, proxy, offer: Header, message: bytes) -> None:
        other = replace(offer, xid=offer.xid ^ 0x5a5a5a5a)
        for each in (other, offer, offer):
            self.send(proxy, self.kept(proxy, each, words(each.xid) + message[4:]))


class ProvidesBeside(Provides, Places):
    """Puts the data of a READ of NFS 3 into its Write chunk, and provides the rest, though it would come inline."""

    def reply(self, proxy, offer: Header, message: bytes) -> None:
        (Places if offer.writes else Provides).reply(self, proxy, offer, message)

    def answer(self, proxy, offer: Header, chunk: list[Segment], rest: bytes) -> None:
        print("beside", flush=True)
        self.send(proxy, replace(self.kept(proxy, offer, rest), writes=[chunk]))


class ProvidesWhatChanges(Provides):
    """Has another XID in a Reply from time to time, for as long as it is provided."""

    def __init__(self) -> None:
        super().__init__()
        self._changes: dict[tuple[int, int], tuple[threading.Event, threading.Thread]] = {}

    def kept(self, proxy, offer: Header, message: bytes) -> Header:
        header = super().kept(proxy, offer, message)
        key = id(proxy), offer.xid
        over, view = threading.Event(), self._memory[key].bytes

        def change() -> None:
            while not over.is_set():
                over.wait(0.003)
                view[:4] = words(offer.xid ^ 1)
                over.wait(0.003)
                view[:4] = message[:4]

        thread = threading.Thread(target=change, daemon=True)
        thread.start()
        self._changes[key] = over, thread
        return header

    def done(self, proxy, xid: int) -> None:
        if change := self._changes.pop((id(proxy), xid), None):
            over, thread = change
            over.set()
            thread.join()
        super().done(proxy, xid)


class ProvidesTooMuch(Provides):
    """Provides more than there is room for: what is behind the Reply is no part of it."""

    def provide(self, proxy, offer: Header, message: bytes) -> None:
        super().provide(proxy, offer, message + bytes(3 << 20))


class ProvidesInPieces(Provides):
    """Provides Replies in as many segments as there may be."""

    lengths = (64,) * 63


class ProvidesUnasked(Provides):
    """Provides long Replies though it has not said that it would, and their Calls have Reply chunks."""

    private = private_data()
    LONG = 4000

    def reply(self, proxy, offer: Header, message: bytes) -> None:
        if offer.reply and len(message) > self.LONG:
            self.provide(proxy, offer, message)
        else:
            proxy.reply(offer, message)


class ProvidesNowhere(Provides):
    """Provides each long Reply, whatever is offered for it, by keys that nobody has."""

    LONG = 4000

    def reply(self, proxy, offer: Header, message: bytes) -> None:
        if len(message) <= self.LONG:
            return proxy.reply(offer, message)
        header = self.kept(proxy, offer, message)
        reads = [(position, replace(segment, handle=segment.handle ^ 0xff)) for position, segment in header.reads]
        self.send(proxy, replace(header, reads=reads))


class ProvidesNothing(Provides):
    """Says that it provides Replies, and has no room for any."""

    def provide(self, proxy, offer: Header, message: bytes) -> None:
        require(not offer.reply, "a Reply chunk was offered")
        proxy.refuse(offer)


BY_NAME = {"provides": Provides, "provides-badly": ProvidesBadly, "provides-twice": ProvidesTwice,
           "provides-too-much": ProvidesTooMuch, "provides-nothing": ProvidesNothing, "provides-beside": ProvidesBeside,
           "provides-what-changes": ProvidesWhatChanges, "provides-in-pieces": ProvidesInPieces,
           "provides-unasked": ProvidesUnasked, "provides-nowhere": ProvidesNowhere}
