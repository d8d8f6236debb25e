"""The order of lanes over the processes of a run, where pytest-xdist's own would not do."""

from typing import Any

from xdist.scheduler import LoadGroupScheduling


class Lanes(LoadGroupScheduling):
    """Groups in the order in which they were collected, each begun when a process is free for it: xdist 3.6 begins with the
    largest, and gives a process its next group before the one is over. What a process that died had done is not done again, nor
    is the test that it died in; xdist would give that to each of the others in turn, and wait for ever where all was done."""

    def remove_node(self, node: Any) -> str | None:
        """Give what is left of a process's groups to others. Returns the test that it died in."""
        assigned = self.assigned_work.pop(node)
        left = [(scope, name) for scope, unit in assigned.items() for name, done in unit.items() if not done]
        if not left:
            return None
        scope, crashed = left[0]
        assigned[scope][crashed] = True
        self.workqueue.update((scope, unit) for scope, unit in assigned.items() if not all(unit.values()))
        for other in self.nodes:
            self._reschedule(other)
        return crashed

    def _assign_work_unit(self, node: Any) -> None:
        assert self.collection is not None
        place = {name: number for number, name in enumerate(self.collection)}
        first = min(self.workqueue, key=lambda scope: place[next(iter(self.workqueue[scope]))])
        self.workqueue.move_to_end(first, last=False)
        super()._assign_work_unit(node)

    def _reschedule(self, node: Any) -> None:
        # One that takes the place of another has not said yet what it has collected.
        if node not in self.registered_collections:
            return
        # One that has two tests left begins them both before it says so; its last one it begins when it knows what comes next.
        while self.workqueue and not node.shutting_down and self._pending_of(self.assigned_work[node]) < 2:
            super()._reschedule(node)
        if not self.workqueue:
            super()._reschedule(node)
