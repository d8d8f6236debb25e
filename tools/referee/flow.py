"""The credits of one direction, as the wire shows them (the draft, section 4.2.1).

A capture is taken at one place. A message is judged against the last credit value that came there from the other end
before it. At the sender's own wire that is what the sender can have known at most; elsewhere the order of the capture is
taken for the truth all the same.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from rules import Finding

WORD = 1 << 32
# "credit limit values MUST be less than 2^31 - 1" (section 4.2.1).
LIMIT = (1 << 31) - 1
# Two ends that each give so many for one RDMA2_GRANT of the other come to rest (interpretation 13).
LEAST_IN_ANSWER = 2


@dataclass
class Flow:
    """What one end has sent, and what it has told the other end."""

    sent: int = 0
    credits: int = 1
    # What came from the other end since this one sent something last.
    heard_grants: int = 0
    heard_others: int = 0

    def send(self, other: "Flow", is_grant: bool, value: int) -> Iterator[Finding]:
        """Account for a message of this end to the other end."""
        yield from self._use(other, is_grant)
        more = _signed(value - self.credits)
        if is_grant and self.heard_grants and not self.heard_others and more < LEAST_IN_ANSWER:
            yield Finding("grant-answer", f"nothing but {self.heard_grants} RDMA2_GRANT came, and {more} more are given")
        self.heard_grants = self.heard_others = 0
        other.heard_grants += is_grant
        other.heard_others += not is_grant
        self.sent += 1
        yield from self._tell(other, value)

    def send_uncounted(self) -> None:
        """Account for a message whose credit value is not known to be one."""
        self.heard_grants = self.heard_others = 0
        self.sent += 1

    def _use(self, other: "Flow", is_grant: bool) -> Iterator[Finding]:
        left = _signed(other.credits - self.sent)
        if left + is_grant <= 0:
            yield Finding("grant-credit" if is_grant else "credit", f"{self.sent} sent on {other.credits}")

    def _tell(self, other: "Flow", value: int) -> Iterator[Finding]:
        step = _signed(value - self.credits)
        unused = max(0, _signed(self.credits - other.sent))
        if -step > unused:
            yield Finding("credit-backward", f"from {self.credits} to {value} with {unused} not used")
        elif step > 0 and (value - other.sent) % WORD >= LIMIT:
            yield Finding("credit-advance", f"to {value} with {other.sent} sent")
        else:
            self.credits = value


def _signed(difference: int) -> int:
    """A difference of counters of 32 bits."""
    return (difference + WORD // 2) % WORD - WORD // 2
