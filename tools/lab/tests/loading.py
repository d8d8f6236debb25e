"""The tests of how the module comes into a kernel and goes, and of what the kernel knows of it."""

import progress
from guests.cell import Cell, Test
from tests.version import LIST

# Who has the list open keeps the module; the in-tree one has none.
KEPT = f"! test -e {LIST} || {{ exec 3< {LIST} && ! rmmod rpcrdma 2> /tmp/rmmod && grep -q 'in use' /tmp/rmmod; }}"


def described(cell: Cell) -> None:
    """The kernel knows the types of the module's trace events (BTF), where it knows its own."""
    cell.load_modules()
    for machine in cell.guests.machines:
        machine.must("! test -e /sys/kernel/btf/vmlinux || grep -qa btf_trace_svcrdma_post_recv /sys/kernel/btf/rpcrdma")


def removed(cell: Cell) -> None:
    """rmmod succeeds at both ends after the last umount, if nobody reads what the module says of its connections, and no object of
    the RDMA devices stays behind."""
    for machine in cell.guests.machines:
        machine.must(KEPT)
    cell.guests.unload()
    for machine in cell.guests.machines:
        left, before = cell.guests.resources(machine), cell.guests.resources_before[machine.role.name]
        if left != before:
            raise progress.Failure(f"RDMA objects on the {machine.role.name}: {left} after, {before} before")


def loaded_by_mount(cell: Cell) -> None:
    """`mount -o rdma` has modprobe load the module where `make install` and depmod have put it."""
    cell.load_modules()
    cell.guests.unload_client()
    # With what the module depends on, and without the thousands of others, which take depmod a minute.
    cell.client("release=$(uname -r) && tree=/tmp/modules/$release && mkdir -p $tree && cd /lib/modules/$release && "
                "cp -a --parents modules.order modules.builtin $(find kernel -path '*/net/sunrpc/*' -o "
                "-path '*/infiniband/core/*') $tree && "
                f"install -D -m 644 -t $tree/updates /lab/{cell.client_module}/rpcrdma.ko && "
                "mount --bind /tmp/modules /lib/modules && depmod")
    with progress.undoing(lambda: cell.client("umount /lib/modules && rm -r /tmp/modules")):
        cell.guests.expect_module(cell.guests.client, cell.client_module)
        with cell.mounted(cell.mount_command(option="rdma")):
            cell.written("some", "100000")
        cell.guests.unload()


LOADED = Test("loaded by mount", loaded_by_mount)
DESCRIBED = Test("types for BPF", described)
REMOVED = Test("module removed, nothing left", removed)
