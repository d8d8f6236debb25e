"""A responder that does not answer some Calls, ever."""

from behaviours import Behaviour, Grants, is_fsstat
from header import Header


class DropsFsstats(Grants):
    """Answers no FSSTAT of NFS 3, and breaks the connection at the first one."""

    def __init__(self, credits: int) -> None:
        super().__init__(credits)
        self._broken = False

    def takes(self, proxy, offer: Header, call: bytes) -> bool:
        if not is_fsstat(call):
            return True
        print("dropped", flush=True)
        if not self._broken:
            self._broken = True
            proxy.hang_up()
        return False


class DropsFirst(Behaviour):
    """Does not answer the first Call of so many connections."""

    def __init__(self, count: int) -> None:
        self._left = count
        self._known: list = []

    def takes(self, proxy, offer: Header, call: bytes) -> bool:
        first = proxy not in self._known
        if not first or not self._left:
            return True
        self._known.append(proxy)
        self._left -= 1
        print("dropped", flush=True)
        return False


BY_NAME = {"drops-fsstats": DropsFsstats, "drops-first": DropsFirst}
