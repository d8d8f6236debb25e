"""A responder that returns chunks which were not offered like that."""

from dataclasses import replace

from behaviours import Behaviour, Places
from header import RDMA_MSG, Header, Segment


class Returns(Places):
    """Returns the Write chunk of a READ in another form than it was offered, in each once, and as it should when it comes again."""

    def __init__(self) -> None:
        self._seen: list[int] = []

    def answer(self, proxy, offer: Header, chunk: list[Segment], rest: bytes) -> None:
        first = chunk[0]
        forms = (replace(first, handle=first.handle ^ 1), replace(first, offset=first.offset + 8),
                 replace(first, length=first.length + (1 << 20)))
        if offer.xid in self._seen or len(self._seen) == len(forms):
            return super().answer(proxy, offer, chunk, rest)
        form = forms[len(self._seen)]
        self._seen.append(offer.xid)
        super().answer(proxy, offer, [form, *chunk[1:]], rest)


class ReturnsUnoffered(Behaviour):
    """Returns a Write chunk that nobody has offered with its first answer, which is that to the transport's own Call."""

    def __init__(self) -> None:
        self._spent = False

    def reply(self, proxy, offer: Header, message: bytes) -> None:
        if self._spent:
            return proxy.reply(offer, message)
        self._spent = True
        print("returned", flush=True)
        proxy.send_header(Header(offer.xid, RDMA_MSG, self.credits, writes=[[Segment(0x1234, 8, 0x1000)]]), message)


BY_NAME = {"returns": Returns, "returns-unoffered": ReturnsUnoffered}
