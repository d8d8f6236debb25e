"""Each device that plays an adapter, or the one that DEVICE names: what a mount makes of its limits, and that all is well
within them."""

import os

import progress
import room
import settings
import setups
import suites
import test_adapter as adapter
import test_client_life as client_life
import test_limits as limits
import test_mount as mount
from guests import devices
from plan import Lane, Plan, Test

VERSION = "4.2"
# The one of no limits, whose kernel follows what is mapped.
ACCOUNTED = "dma"
AMOUNTS = client_life.Amounts(disconnects=200, removals=3)


def lanes() -> list[Lane]:
    """As many as there is room for, each with a part of the devices."""
    names = [name for name, device in devices.ALL.items() if device.plays]
    if wanted := os.environ.get("DEVICE"):
        if wanted not in names:
            raise progress.Failure(f"DEVICE={wanted} plays no adapter", f"use one of: {', '.join(names)}")
        names = [wanted]
    plans = [Plan(name, VERSION, _tests(name), protocol=settings.protocol(),
                  provokes=(adapter.UNFENCED,) if name == adapter.INVALIDATES_NOTHING else ()) for name in names]
    count = min(len(plans), room.places())
    found = [Lane(f"adapters-{number}", setups.client_debugged, plans[number::count]) for number in range(count)]
    # What the core has of all devices.
    forced = Lane("forced", setups.server_forced, [Plan("rxe", VERSION, [adapter.test_core_registers_memory_for_all_rdma])])
    return found if wanted else [*found, forced]


def _tests(name: str) -> list[Test]:
    of_one = [adapter.test_tests_for_real_machines, *suites.played(adapter.FAULTS)] if name == ACCOUNTED else []
    return [mount.test_small_files, limits.test_what_it_makes_of_the_limits, limits.test_files_of_all_sizes, mount.test_large_directory,
            *client_life.lives(AMOUNTS), *of_one, adapter.test_nothing_stays_mapped]
