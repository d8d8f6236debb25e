"""One end of a connection as the judge sees it: what it has sent that later messages depend on."""

from dataclasses import dataclass, field

import protocol
from flow import Flow
from message import Message
from receiver import Stream

DEFAULTS = {protocol.SBSIZ: protocol.DEFAULT_SIZE, protocol.RBSIZ: protocol.DEFAULT_SIZE, protocol.RSSIZ: 1 << 20,
            protocol.RCSIZ: 16, protocol.BRS: protocol.REVERSE_NONE}


@dataclass
class Unfinished:
    """A message of which fragments are still to come."""

    stream: Stream
    remaining: int
    # Octets of the fragments so far.
    received: int
    # Whether an error has answered it already.
    is_answered: bool = False


@dataclass
class Side:
    """One end."""

    is_client: bool
    flow: Flow
    unfinished: Unfinished | None = None
    # The Calls that are not answered: the message that ended each.
    calls: dict[int, Message] = field(default_factory=dict)
    # The XIDs of what is no Call and may be answered with an error.
    requests: set[int] = field(default_factory=set)
    # XID and version of messages of another version.
    foreign: set[tuple[int, int]] = field(default_factory=set)
    # Octets of the messages with properties; None outside of their sequence.
    property_octets: int | None = None
    has_final: bool = False
    # Those of the sequence, and those that hold.
    told: dict[int, int] = field(default_factory=dict)
    properties: dict[int, int] = field(default_factory=lambda: dict(DEFAULTS))

    @property
    def name(self) -> str:
        """Which end this is."""
        return "client" if self.is_client else "server"

    def forget_properties(self) -> None:
        """The other end has refused the properties: the defaults hold."""
        self.has_final, self.property_octets = False, None
        self.told.clear()
        self.properties = dict(DEFAULTS)
