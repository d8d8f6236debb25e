"""Where memory is on a machine of two nodes."""

import re

import progress
from guests.cell import FEW_SIZES, Cell, Test
from guests.machine import CLIENT, Machine

# What an adapter of the tests is near: the last one.
NEAR, FAR = "N1", "N0"
# The slabs of what has the size of a message's buffer, and how many objects of them each node has.
OBJECTS = "cat /sys/kernel/slab/kmalloc*8k/objects"
# A connection of a mount has more buffers than these; others may come and go meanwhile.
LEAST, MOST_OTHERS = 40, 20


def near(cell: Cell) -> None:
    """The buffers of a connection are on the node of its adapter, though the processor is on the other one."""
    cell.load_modules()
    for machine in cell.guests.machines:
        machine.must("grep -qx 0 /sys/devices/system/node/has_cpu && grep -qx 0-1 /sys/devices/system/node/has_memory")
    before = [_objects(machine) for machine in cell.guests.machines]
    with cell.mounted():
        cell.written("some", FEW_SIZES)
        for machine, earlier in zip(cell.guests.machines, before):
            now = _objects(machine)
            grown = {node: now[node] - earlier[node] for node in (NEAR, FAR)}
            progress.line(f"  {machine.role.name}: {grown[NEAR]} buffers near the adapter, {grown[FAR]} on the other node")
            if grown[NEAR] < LEAST or grown[FAR] > MOST_OTHERS:
                raise progress.Failure(f"of the buffers of the {machine.role.name} {grown[NEAR]} are near the adapter, and "
                                       f"{grown[FAR]} are not", log=cell.guests.client.console if machine.role == CLIENT else None)


def _objects(machine: Machine) -> dict[str, int]:
    """How many each node has."""
    said = machine.must(OBJECTS)
    return {node: sum(map(int, re.findall(rf"\b{node}=(\d+)", said))) for node in (NEAR, FAR)}


TESTS = [Test("buffers near the adapter", near)]
