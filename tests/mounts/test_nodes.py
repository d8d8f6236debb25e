"""Where memory is on a machine of two nodes."""

import re

import progress
from guests.cell import FEW_SIZES, Cell
from guests.machine import Machine

# The slabs note who has allocated what, and where.
NOTED = "slab_debug=U"
# Of objects with the size of a message's buffer: how many somebody has allocated, and on which nodes. An adapter of the tests is on
# the last one.
TRACES = "cat /sys/kernel/debug/slab/kmalloc*8k/alloc_traces"
BUFFERS = re.compile(r"^ *(\d+) \S*MappedBuffer\S* \[rpcrdma\] .*nodes=(\S+)$", re.MULTILINE)
NEAR = "1"
# A connection has more buffers than these.
LEAST = 40


def test_buffers_near_the_adapter(cell: Cell) -> None:
    """The buffers of a connection are on the node of its adapter, though the processor is on the other one. As the
    kernel's slabs note it (slab_debug=U)."""
    cell.load_modules()
    with cell.mounted():
        cell.written("some", FEW_SIZES)
        for machine in cell.guests.machines:
            machine.must("grep -qx 0 /sys/devices/system/node/has_cpu && grep -qx 0-1 /sys/devices/system/node/has_memory")
            _must_be_near(machine)


def _must_be_near(machine: Machine) -> None:
    traces = machine.must(TRACES)
    found = BUFFERS.findall(traces)
    buffers, nodes = sum(int(count) for count, _ in found), {nodes for _, nodes in found}
    progress.line(f"  {machine.role.name}: {buffers} buffers on node {', '.join(sorted(nodes))}")
    if buffers < LEAST or nodes != {NEAR}:
        raise progress.Failure(f"the {machine.role.name} has {buffers} buffers, on node {', '.join(sorted(nodes))}:\n{traces}")
