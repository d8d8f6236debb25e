"""The guests of a lane, as its tests have them in turn: a hang costs the rest of its cell, and the next one gets new guests."""

import contextlib
from collections.abc import Callable, Sequence

import progress
import room
from guests import devices, pair
from guests.cell import NO_SECURITY, Cell
from guests.pair import Pair
from judges.messages import Expected
from plan import Lane, Plan


class TimeOver(Exception):
    """A lane does not begin any more."""


class Guests:
    """Those of the lane whose turn it is."""

    def __init__(self) -> None:
        self.lane: Lane | None = None
        self._plan: Plan | None = None
        self._pair: Pair | None = None
        self._kept, self._room = contextlib.ExitStack(), contextlib.ExitStack()
        # Why they are of no more use in this cell, and why there can be none in this lane.
        self._lost = self._unmade = ""

    def cell(self, lane: Lane, plan: Plan) -> Cell:
        """Those guests, set up for a cell."""
        if lane is not self.lane:
            self._turn(lane)
        if plan is not self._plan:
            self._plan, self._lost = plan, self._unmade
            if not self._lost:
                self._try(lane, plan)
        if self._pair is None:
            raise progress.Failure(f"could not run: {self._lost}")
        return Cell(self._pair, devices.named(plan.device), plan.version, plan.server, plan.client, plan.security, plan.protocol)

    def judge(self, test: Callable[[], object], cell: Cell, plan: Plan, name: str, provoked: Sequence[Expected],
              note: Callable[[str], None]) -> None:
        """Run a test, which fails, too, if a kernel says what it should not; where that is no failure, it is noted. After
        a failure the guests are made of use again, or are given up."""
        try:
            with progress.heartbeat(name):
                self._run(test, cell, provoked, plan.quiet, note)
        except Exception as failure:
            cell.guests.keep_records(name)
            if isinstance(failure, progress.TimedOut) or not cell.clear():
                self._give_up(f"`{name}` left the guests unusable")
            raise

    @staticmethod
    def _run(test: Callable[[], object], cell: Cell, provoked: Sequence[Expected], quiet: bool, note: Callable[[str], None]) -> None:
        try:
            test()
        except progress.TimedOut:
            raise
        except progress.Failure as failure:
            failure.what = "\n".join([failure.what + cell.guests.strayed(), *cell.guests.troubles(provoked)])
            raise
        except Exception:
            # A fault of the test itself shows where it is; the next test is not to fail with these.
            for trouble in cell.guests.troubles(provoked):
                note(trouble)
            raise
        if quiet:
            cell.guests.must_be_quiet(provoked)
        else:
            for trouble in cell.guests.troubles(provoked):
                note(trouble)

    def stop(self) -> None:
        """End the guests, if there are any."""
        self._give_up("")
        self._room.close()
        self.lane = self._plan = None
        self._unmade = ""

    def _turn(self, lane: Lane) -> None:
        """It is that lane's turn, when there is a place for it."""
        self.stop()
        progress.speak_as(lane.name)
        self._room.enter_context(room.place(lane.places))
        if room.seconds() > lane.until:
            self._room.close()
            raise TimeOver
        self.lane = lane

    def _try(self, lane: Lane, plan: Plan) -> None:
        try:
            self._begin(lane, plan)
        except BaseException as failure:
            self._give_up(str(failure) or type(failure).__name__)
            raise

    def _begin(self, lane: Lane, plan: Plan) -> None:
        if self._pair is None:
            self._pair = self._kept.enter_context(pair.running(self._setup(lane)))
        self._pair.load(devices.named(plan.device), plan.server, plan.client)
        self._pair.speak(plan.protocol, plan.protocol)
        if plan.security != NO_SECURITY:
            self._pair.begin_kerberos()

    def _setup(self, lane: Lane) -> pair.Setup:
        try:
            return lane.needed_setup()
        except progress.Failure as failure:
            # It would fail for the next cell, too, with the same build.
            self._unmade = failure.what
            raise

    def _give_up(self, why: str) -> None:
        self._lost = why
        self._pair = None
        self._kept.close()
