"""The pairs of guests that tests want: which kernel at which end, on what machine."""

from collections.abc import Callable
from functools import partial

import test_adapter as adapter
import test_nodes as nodes
from guests import arch, kernels, module
from guests.arch import AMD64, ARM64
from guests.kernels import Kernel
from guests.machine import CLIENT, SERVER, Build
from guests.pair import End, Setup

MEMORY = "1500M"
SLOW_MEMORY = "600M"
PLAIN = Build(MEMORY)
STRESSED = Build(MEMORY, processors=2)


def _end(kernel: Kernel, build: Build = PLAIN) -> End:
    return End(kernel, module.build(kernel), build)


def client_debugged(kernel: Callable[[], Kernel] = kernels.debug) -> Setup:
    """The debugging kernel, or another of our own, at the client."""
    return Setup("client", _end(kernels.stock()), _end(kernel()))


def server_debugged(kernel: Callable[[], Kernel] = kernels.debug) -> Setup:
    """The same at the server."""
    return Setup("server", _end(kernel()), _end(kernels.stock()))


# With all debugging options it would take twice as long; those are what `make check` is for.
CLIENT_LIGHT, SERVER_LIGHT = partial(client_debugged, kernels.light), partial(server_debugged, kernels.light)


def server_forced() -> Setup:
    """Where the server's core is told to register memory for all RDMA."""
    return Setup("forced", _end(kernels.debug(), Build(MEMORY, arguments=(adapter.FORCED,))), _end(kernels.stock()))


def server_stressed() -> Setup:
    """With a second processor at the server, so that what may happen at the same time does."""
    return Setup("life", _end(kernels.debug(), STRESSED), _end(kernels.stock()))


def client_stressed() -> Setup:
    """The same at the client."""
    return Setup("client-life", _end(kernels.stock()), _end(kernels.debug(), STRESSED))


def client_accounted() -> Setup:
    """With accounts of memory at the client."""
    return Setup("memory", _end(kernels.stock()), _end(kernels.debug(), Build(MEMORY, accounts=True)))


def server_rebooting() -> Setup:
    """With a server that may lose its power, and a second processor at the client."""
    return Setup("storm", _end(kernels.stock(), Build(MEMORY, disk=True)),
                 _end(kernels.debug(), Build(MEMORY, processors=2, reconnects=True)))


def server_with_disk() -> Setup:
    """With a server whose files are on a disk, which can be written and read past the cache."""
    return Setup("disk", _end(kernels.light(), Build(MEMORY, disk=True)), _end(kernels.stock()))


def near_wrap() -> Setup:
    """Where the counts of version 2 wrap soon."""
    server, client = (End(each, module.build(each, module.NEAR_WRAP), PLAIN) for each in (kernels.stock(), kernels.light()))
    return Setup("near-wrap", server, client, counted_before=module.COUNTED_BEFORE)


def two_nodes() -> Setup:
    """With the adapter on another node than the processor. The kernels of our own know of one node alone."""
    end = _end(kernels.stock(), Build(MEMORY, nodes=2, arguments=(nodes.NOTED,)))
    return Setup("nodes", end, end)


def nothing_debugged() -> Setup:
    return Setup("load", _end(kernels.stock()), _end(kernels.stock()))


def slow() -> Setup:
    """With little memory, for guests that have nothing to do but wait."""
    end = _end(kernels.stock(), Build(SLOW_MEMORY))
    return Setup("slow-server", end, end)


def arm64(ends: tuple[str, ...]) -> Setup:
    """With arm64 machines at these ends."""
    server, client = (_end(kernels.stock(ARM64 if role.name in ends else AMD64)) for role in (SERVER, CLIENT))
    return Setup("arm64", server, client)


def chosen(flavour: str, end: str, ours: bool) -> Setup:
    """A kernel at one end, with our module or the in-tree one alone, and the stock kernel of its architecture at the other."""
    kernel = kernels.by_name(flavour, arch.chosen())
    stock = _end(kernels.stock(kernel.arch))
    other = End(kernel, module.build(kernel) if ours else None, PLAIN)
    return Setup(end, other, stock) if end == SERVER.name else Setup(end, stock, other)
