"""What a responder of version 2 does, and how it meets a client that wants to speak that."""

from dataclasses import replace

import protocol
from behaviours import Behaviour
from conveyed import Reply, reply_payload
from ends import CREDITS
from failure import require
from header import words
from message import Message, Prefix
from proxy_2 import Asked

# A header type, and an XID, that nobody has.
UNKNOWN_TYPE, OTHER_XID = 77, 0x5a5a5a5a
SIZE = 4096
PROPERTIES = {protocol.SBSIZ: SIZE, protocol.RBSIZ: SIZE, protocol.RSSIZ: 1 << 20, protocol.RCSIZ: 16,
              protocol.BRS: protocol.REVERSE_NONE}


class Behaviour2(Behaviour):
    """A server without fault that may speak version 2."""

    properties = PROPERTIES
    # Whether it may send what the client answers under any XID.
    says_anything = False

    def meets(self, proxy, message: bytes) -> bool:
        """Whether the first message of a connection, which is of version 2, is to be taken for that."""
        return True

    def admits(self, proxy, call: Message) -> bool:
        """Whether a Call is to be looked at."""
        return True

    def takes_2(self, proxy, asked: Asked) -> bool:
        """Whether a Call is to be executed."""
        return True

    def reply_2(self, proxy, asked: Asked, message: bytes) -> None:
        """Send the Reply of the server."""
        proxy.reply_2(asked, message)


class Ignores(Behaviour2):
    """Says nothing to a message of version 2."""

    def meets(self, proxy, message: bytes) -> bool:
        return False


class HangsUp(Behaviour2):
    """Ends a connection that begins with version 2."""

    def meets(self, proxy, message: bytes) -> bool:
        proxy.hang_up()
        return False


class ErrsVersion(Behaviour2):
    """Answers version 2 as a server that does not know it, and says that it speaks this range of versions."""

    def __init__(self, low: int, high: int) -> None:
        self._range = low, high

    def meets(self, proxy, message: bytes) -> bool:
        xid = Prefix.decode(message).xid
        # In the words of RFC 8166, section 4.5.1, and with the version of what it refuses.
        proxy.send(words(xid, protocol.VERSION, self.credits, protocol.ERROR, protocol.ERR_VERS, *self._range))
        return False


class AnswersOtherwise(Behaviour2):
    """Answers the first message with something that no server sends, of each kind in turn, and says nothing more."""

    def __init__(self, kind: int) -> None:
        self._kind = kind

    def meets(self, proxy, message: bytes) -> bool:
        xid = Prefix.decode(message).xid
        reply = reply_payload(xid)
        answers = (words(xid, protocol.VERSION),
                   # A Reply of version 1, and of a version that nobody speaks.
                   words(xid, 1, self.credits, 0, 0, 0, 0) + reply,
                   words(xid, 3, self.credits, protocol.REPLY_INLINE, 0) + reply)
        proxy.send_as_is(answers[self._kind])
        return False


class AnswersOddly(Behaviour2):
    """Has something in front of its properties that is of version 2, and no answer."""

    def __init__(self, kind: int) -> None:
        self._kind = kind

    def meets(self, proxy, message: bytes) -> bool:
        xid = Prefix.decode(message).xid
        prefix = Prefix(xid, protocol.VERSION, 0, UNKNOWN_TYPE)
        (reply,) = Reply(OTHER_XID, reply_payload(OTHER_XID)).messages(SIZE)
        grant = replace(prefix, xid=0, kind=protocol.GRANT)
        if self._kind == 0:
            proxy.expect(xid, "odd")
        proxy.send_now((Message(prefix), reply, Message(grant))[self._kind])
        return True


class PromisesNothing(Behaviour2):
    """Promises with a Reply that it takes what has come by then and no more, a few times, and more with a GRANT after a while."""

    EVERY, TIMES, SECONDS = 40, 2, 2
    # What was sent on what was promised before has come by then.
    SENT_SECONDS = 0.5

    def __init__(self) -> None:
        self._replies = 0

    def reply_2(self, proxy, asked: Asked, message: bytes) -> None:
        self._replies += 1
        due = self._replies % self.EVERY == 0 and self._replies <= self.EVERY * self.TIMES
        if due:
            proxy.end.advertises = 0
        proxy.reply_2(asked, message)
        if due:
            proxy.flush()
            proxy.wait(self.SENT_SECONDS)
            before = proxy.end.received
            proxy.wait(self.SECONDS)
            # One GRANT needs no credit.
            require(proxy.end.received <= before + 1, "messages without a promise")
            print("promised nothing", flush=True)
            proxy.end.advertises = CREDITS
            proxy.grant()


class Small(Behaviour2):
    """Has these properties beside the usual ones: pairs of which and the value."""

    def __init__(self, *told: int) -> None:
        self.properties = PROPERTIES | dict(zip(told[::2], told[1::2]))


class PromisesFew(Small):
    """Promises to take so few messages at a time, and has other properties."""

    def __init__(self, count: int, *told: int) -> None:
        super().__init__(*told)
        self._count = count

    def meets(self, proxy, message: bytes) -> bool:
        proxy.end.advertises = self._count
        return True


BY_NAME = {"honest-2": Behaviour2, "ignores-2": Ignores, "hangs-up-2": HangsUp, "errs-version-2": ErrsVersion,
           "answers-otherwise": AnswersOtherwise, "answers-oddly": AnswersOddly, "promises-nothing": PromisesNothing,
           "small": Small, "promises-few": PromisesFew}
