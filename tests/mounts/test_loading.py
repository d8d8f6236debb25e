"""The tests of how the module comes into a kernel and goes, and of what the kernel knows of it."""

import re

import progress
from guests.cell import LONG_SECONDS, Cell
from judges.messages import Expected
from plan import provokes
from test_versions import LIST

# Who has the list open keeps the module; the in-tree one has none.
KEPT = f"! test -e {LIST} || {{ exec 3< {LIST} && ! rmmod rpcrdma 2> /tmp/rmmod && grep -q 'in use' /tmp/rmmod; }}"
# iw_cm drops a request that comes to a listener which is just going (IWCM_F_DROP_EVENTS), forgets its private data, and
# tells siw nothing: that keeps its endpoint.
LEAK_OF_IW_CM = re.compile(r"kmemdup_noprof\S+\s+cm_event_handler\S+\s+siw_cm_upcall|"
                           r"(kmalloc\w*|siw_cep_alloc|siw_cm_alloc_work)\+\S+( \[siw\])?\s+siw_cm_work_handler")
# Which they are, the test itself has read.
LEAKS_FOUND = Expected(4, re.compile(r"kmemleak: \d+ new suspected memory leaks \(see /sys/kernel/debug/kmemleak\)"),
                       "leaks of others are passed over")


def test_types_for_bpf(cell: Cell) -> None:
    """The kernel knows the types of the module's trace events (BTF), where it knows its own."""
    cell.load_modules()
    for machine in cell.guests.machines:
        machine.must("! test -e /sys/kernel/btf/vmlinux || grep -qa btf_trace_svcrdma_post_recv /sys/kernel/btf/rpcrdma")


def test_module_removed(cell: Cell) -> None:
    """rmmod succeeds at both ends after the last umount, if nobody reads what the module says of its connections, and no object of
    the RDMA devices stays behind."""
    for machine in cell.guests.machines:
        machine.must(KEPT)
    cell.guests.unload()
    for machine in cell.guests.machines:
        left, before = cell.guests.resources(machine), cell.guests.resources_before[machine.role.name]
        if left != before:
            raise progress.Failure(f"RDMA objects on the {machine.role.name}: {left} after, {before} before")


def test_loaded_by_mount(cell: Cell) -> None:
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


@provokes(LEAKS_FOUND)
def test_no_leak(cell: Cell) -> None:
    """After rmmod nothing is left that nobody points to. Two looks, because a pointer can be in a register."""
    for machine in cell.debugged:
        leaks = machine.must("cd /sys/kernel/debug && echo scan > kmemleak && sleep 6 && echo scan > kmemleak && "
                             "cat kmemleak", LONG_SECONDS)
        ours = [leak for leak in re.split(r"(?=^unreferenced object)", leaks, flags=re.MULTILINE)
                if leak.strip() and not LEAK_OF_IW_CM.search(leak)]
        if ours:
            raise progress.Failure(f"kmemleak on the {machine.role.name}: {''.join(ours)[:3000]}")
