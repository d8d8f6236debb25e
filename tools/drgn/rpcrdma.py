# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Connections of NFS over RDMA, and what each request waits for: of the running kernel, or of the dump of one.

    drgn -q --no-default-symbols [-c DUMP] rpcrdma.py RPCRDMA.KO

RPCRDMA.KO is the module as it was built, with its debug information. Types of the kernel are taken from that, too, so that
the kernel's own is not needed.
"""

import functools
import ipaddress
import re
import struct
import sys
from collections.abc import Iterator

import drgn
from drgn import Language, Object, Program, Type, TypeMember
from drgn.helpers.linux.list import list_for_each_entry
from drgn.helpers.linux.xarray import xa_for_each

# The kernel whose structures are known here, as far as this module does not have their types.
KNOWN = "7.3"
# Types of this module.
CLIENT, SERVER = "rpcrdma_main::client::connection::Requester", "rpcrdma_main::server::connection::Responder"
XPRT = "rpcrdma_main::kapi::sunrpc::xprt_ops::Data<rpcrdma_main::client::xprt::ClientXprt>"
PREFIX = "rpcrdma_main::kapi::sunrpc::buffer::Prefix<rpcrdma_main::client::call::Call>"
OFFER = "rpcrdma_main::client::offer::Offer"
# XPRT_TRANSPORT_RDMA.
RDMA = 256
# Bits of rpc_xprt.state: XPRT_CONNECTED, XPRT_CWND_WAIT, XPRT_WRITE_SPACE.
CONNECTED, CREDIT_WAIT, SPACE_WAIT = 1, 10, 11
# A bit of rpc_task.tk_runstate: RPC_TASK_NEED_XMIT.
TO_SEND = 3
# drgn knows no enums with variants. The first word of one says which it is; of a Call's Phase (rust/client/call.rs) these:
SENT, FENCING = 1, 2
WORD, BYTE = 8, 8


class Missing(Exception):
    """What is not there, in words for the user."""


class Kernel:
    """A kernel, seen with the types that this module has of it."""

    def __init__(self, prog: Program, debug_info: str) -> None:
        self.prog = prog
        self.release = vmcoreinfo(prog)["OSRELEASE"]
        # Before there are types of Rust, whose char may be taken for that of C.
        self.symbols = kernel_symbols(prog, {"modules", "net_namespace_list"})
        module = prog.extra_module("rpcrdma", create=True)
        module.try_file(debug_info, force=True)
        if module.wants_debug_file():
            raise Missing(f"{debug_info} has no debug information")
        prog.register_type_finder("rpcrdma", find_type, enable_index=-1)
        self._modules = {loaded.name.string_().decode(): loaded
                         for loaded in self.entries("struct module", self.symbols["modules"], "list")}
        if "rpcrdma" not in self._modules:
            raise Missing("rpcrdma is not loaded")
        # What is loaded has the number of its build in a note.
        parts = [part for part in self._modules["rpcrdma"].mem if part.size]
        if not any(module.build_id in prog.read(part.base.value_(), part.size.value_()) for part in parts):
            raise Missing(f"the rpcrdma that is loaded is not that of {debug_info}")

    def at(self, type_name: str, address: int) -> Object:
        """What is at an address."""
        return Object(self.prog, type_name, address=address)

    @functools.cache
    def rust_type(self, name: str) -> Type:
        """A type of Rust: its name is found as those of C++ are, which in turn has none of C that are pointers."""
        self.prog.language = Language.CPP
        try:
            return self.prog.type(f"struct {name}")
        finally:
            self.prog.language = Language.C

    def rust(self, name: str, address: int) -> Object:
        """What is at an address, of a type of Rust."""
        return Object(self.prog, self.rust_type(name), address=address)

    def entries(self, type_name: str, head: int, member: str) -> Iterator[Object]:
        """The entries of a list."""
        return list_for_each_entry(type_name, self.at("struct list_head", head).address_of_(), member)

    def xarray(self, type_name: str, address: int) -> Iterator[Object]:
        """What an XArray points to."""
        for _, entry in xa_for_each(self.at("struct xarray", address).address_of_()):
            yield self.at(type_name, entry.value_())

    @functools.cache
    def module_symbols(self, module: str) -> dict[str, int]:
        """Names in a loaded module, and their addresses."""
        if module not in self._modules:
            return {}
        table = self._modules[module].kallsyms
        entries = self.prog.array_type(table.symtab.type_.type, table.num_symtab.value_())
        # Read at once, since one by one would be slow.
        return {table.strtab[entry.st_name].address_of_().string_().decode(): entry.st_value.value_()
                for entry in Object(self.prog, entries, address=table.symtab.value_()).read_()}


def find_type(prog: Program, kinds: object, name: str, filename: str | None) -> Type | None:
    """Types of the kernel that its modules have no need of, with the members that matter here."""
    pointer, size = prog.pointer_type(prog.void_type()), WORD

    def member(kind: Type, its_name: str, offset: int) -> TypeMember:
        return TypeMember(kind, its_name, offset * BYTE)

    match name:
        case "xa_node":
            shift = member(prog.type("unsigned char"), "shift", 0)
            slots = member(prog.array_type(pointer, 64), "slots", 5 * size)
            return prog.struct_type(name, 72 * size, [shift, slots])
        case "rdma_restrack_root":
            return prog.struct_type(name, 3 * size, [member(prog.type("struct xarray"), "xa", 0)])
        case "sunrpc_net":
            # Behind seven pointers and a mutex.
            offset = 7 * size + prog.type("struct mutex").size
            clients = member(prog.type("struct list_head"), "all_clients", offset)
            return prog.struct_type(name, offset + 2 * size, [clients])
    return None


def vmcoreinfo(prog: Program) -> dict[str, str]:
    """What the kernel says to readers of its dumps."""
    said = bytes(prog["VMCOREINFO"].to_bytes_()).decode()
    return dict(line.split("=", 1) for line in said.splitlines() if "=" in line)


def kernel_symbols(prog: Program, wanted: set[str]) -> dict[str, int]:
    """Addresses of the kernel's own symbols, from the table that it has of them.

    drgn has that, too, but before 2026 it does not know the form that the table has had since Linux 7.0.
    """
    said = vmcoreinfo(prog)
    place = {name: int(said[f"SYMBOL(kallsyms_{name})"], 16)
             for name in ("token_table", "token_index", "names", "num_syms", "offsets")}
    table = prog.read(place["token_table"], place["token_index"] - place["token_table"])
    starts = struct.unpack("256H", prog.read(place["token_index"], 512))
    tokens = [table[start:table.index(0, start)].decode() for start in starts]
    names = prog.read(place["names"], place["token_table"] - place["names"])
    found, position = {}, 0
    for number in range(prog.read_u32(place["num_syms"])):
        length, position = names[position], position + 1
        if length & 0x80:
            length, position = length & 0x7f | names[position] << 7, position + 1
        # The first character is the kind of the symbol.
        name = "".join(tokens[token] for token in names[position:position + length])[1:]
        position += length
        if name in wanted:
            offset = place["offsets"] + 4 * number
            found[name] = offset + int.from_bytes(prog.read(offset, 4), "little", signed=True)
    return found


def locked(lock: Object) -> Object:
    """What is under a lock of Rust."""
    return lock.data.value


def shared(arc: Object) -> Object:
    """What an Arc refers to."""
    return arc.ptr.pointer.data


def bit(word: Object, number: int) -> bool:
    return bool(word.value_() >> number & 1)


def queue_pair(end: str) -> str:
    """The type of that end's."""
    return f"rpcrdma_main::kapi::ib::queue_pair::QueuePair<rpcrdma_main::transport::endpoint::Parts<{end}>>"


def first_word(thing: Object) -> int:
    """Of what has variants: which it is, or the pointer of an Option of one."""
    return thing.prog_.read_word(thing.address_)


def network_order(word: Object) -> int:
    return int.from_bytes(word.to_bytes_(), "big")


def address_of(sockaddr: Object) -> str:
    """The address and port in a sockaddr."""
    data = sockaddr.prog_.read(sockaddr.address_, 28)
    host = data[4:8] if int.from_bytes(data[:2], "little") == 2 else data[8:24]
    return f"[{ipaddress.ip_address(host)}]:{int.from_bytes(data[2:4], 'big')}"


class Connection:
    """One end of a connection: our part of a queue pair."""

    def __init__(self, qp: Object) -> None:
        self.handler = qp.consumer.handler
        send = locked(qp.send)
        self.ring, self.queue, self._regions = send.ring, send.queue, send.regions
        self.receives = locked(qp.recv.queue)

    def device(self) -> str:
        """Where it is, in the words of rdma(8)."""
        qp = self.ring.target.qp
        state = self.ring.state.format_(type_name=False).rpartition("::")[2].lower()
        return f"{qp.device.name.string_().decode()} lqpn {qp.qp_num.value_()}, {state}" if qp else "no queue pair"

    def resources(self) -> Iterator[str]:
        """What it has of those that both ends have."""
        entries, covering = self._regions.ptr.pointer, 0
        for number in range(self._regions.len):
            covering += locked(shared(entries[number]).core).mapped.value_() != 0
        yield f"regions: {covering} of {self._regions.len.value_()} cover memory"
        places, made = self.ring.slots.len.value_(), self.queue.made.value_()
        yield (f"send queue: {places - self.ring.avail.value_()} of {places} places in use, "
               f"{self.queue.pending.len.value_()} messages wait for some")
        yield (f"send buffers: {made - self.queue.buffers.len.value_()} of {made} in use, "
               f"{self.queue.limit.value_()} may be made")
        yield f"Receives: {self.receives.posted.value_()} posted, {self.receives.kept.value_()} messages kept"


class Client:
    """A transport of the client, with its connection if there is one."""

    def __init__(self, kernel: Kernel, xprt: Object) -> None:
        self._kernel, self._xprt = kernel, xprt
        private = kernel.rust(f"rpcrdma_main::kapi::sunrpc::private::Private<{XPRT}>", xprt.value_())
        arc = first_word(locked(shared(private.data.transport.slot).connection))
        inner = f"kernel::sync::arc::ArcInner<{queue_pair(CLIENT)}>"
        self._connection = Connection(kernel.rust(inner, arc).data) if arc else None

    def lines(self, tasks: list[Object]) -> Iterator[str]:
        """All that there is to say of it."""
        peer, connection = address_of(self._xprt.addr), self._connection
        yield f"client to {peer}: {connection.device() if connection else 'no connection'}"
        if connection:
            credits, pulls = connection.queue.flow.credits, locked(connection.handler.pulls)
            calls, nobody = credits.calls.value_(), credits.abandoned.len.value_() + credits.dropped.len.value_()
            yield (f"  credits: {credits.grant.value_()} granted of {credits.max.value_()} asked for, {calls + nobody} in use, "
                   f"{nobody} of them by nobody any more")
            yield f"  Replies to be pulled: {pulls.under_way.value_()} being pulled, {pulls.waiting.len.value_()} wait"
            yield from (f"  {line}" for line in connection.resources())
        yield f"  RPCs: {len(tasks)}"
        yield from sorted(f"    {self._request(task)}" for task in tasks)

    def _request(self, task: Object) -> str:
        """What an RPC is, and what it waits for."""
        rqst, procedure = task.tk_rqstp, task.tk_msg.rpc_proc
        xid = f"0x{network_order(rqst.rq_xid):08x}" if rqst else "-"
        name = procedure.p_name.string_().decode() if procedure and procedure.p_name else "?"
        return f"xid {xid:<10} {name:<12} waits for {self._awaited(task)}"

    def _awaited(self, task: Object) -> str:
        rqst = task.tk_rqstp
        if not rqst:
            return "a slot"
        if bit(task.tk_runstate, TO_SEND):
            return self._lacking()
        call = locked(self._prefix(rqst).call.state) if rqst.rq_buffer else None
        phase = first_word(call.phase) if call is not None else None
        if phase == FENCING:
            return "the invalidation of its regions"
        return f"the Reply{self._registered(call)}" if phase == SENT else "its turn to go on"

    def _registered(self, call: Object) -> str:
        """How many regions of it the server may reach."""
        offer = first_word(call.offer)
        count = self._kernel.rust(OFFER, offer).regions.registered.len.value_() if offer else 0
        return f", with {count} region{'' if count == 1 else 's'} registered" if count else ""

    def _prefix(self, rqst: Object) -> Object:
        """What stands in front of the memory for the messages of an RPC."""
        return self._kernel.rust(PREFIX, rqst.rq_buffer.value_() - self._kernel.rust_type(PREFIX).size)

    def _lacking(self) -> str:
        """What a Call needs to be sent."""
        connection, state = self._connection, self._xprt.state
        if connection is None or not bit(state, CONNECTED):
            return "a connection"
        if not bit(state, CREDIT_WAIT) and not bit(state, SPACE_WAIT):
            return "its turn to be sent"
        credits, queue = connection.queue.flow.credits, connection.queue
        # One is kept for the question whether the server is there.
        if credits.calls.value_() + credits.abandoned.len.value_() >= max(credits.grant.value_() - 1, 1):
            return "a credit"
        if not queue.idle.len:
            return "a region"
        return "a send buffer" if not queue.buffers.len and queue.made >= queue.limit else "places in the send queue"


def server_lines(kernel: Kernel, connection: Connection) -> Iterator[str]:
    """All that there is to say of a connection of a client of ours."""
    handler = connection.handler
    flow, waiting = connection.queue.flow, locked(handler.waiting)
    grant, back = flow.grant, flow.credits
    yield f"server of {address_of(handler.peer)}: {connection.device()}"
    yield f"  credits: {grant.told.value_()} granted of at most {grant.max.value_()}, {grant.dropped.value_()} Calls dropped"
    yield f"  credits for callbacks: {back.grant.value_()} granted, {back.calls.value_() + back.abandoned.len.value_()} in use"
    yield from (f"  {line}" for line in connection.resources())
    yield (f"  Calls: {waiting.arrivals.len.value_()} wait for a thread, {waiting.reading.value_()} for RDMA Reads, "
           f"{waiting.stalled.len.value_()} for regions")
    xprt = drgn.cast("struct svc_xprt *", shared(handler.handle.member_("__0")).xprt.pointer)
    for rqst in nfsd_threads(kernel, xprt.xpt_server):
        if rqst.rq_xprt == xprt:
            yield f"    xid 0x{network_order(rqst.rq_xid):08x} is being executed by task {rqst.rq_task.pid.value_()}"


def nfsd_threads(kernel: Kernel, server: Object) -> Iterator[Object]:
    """The threads of all pools, whose number is not with the server."""
    left, number = server.sv_nrthreads.value_(), 0
    while left > 0:
        pool = server.sv_pools[number]
        yield from kernel.entries("struct svc_rqst", pool.sp_all_threads.address_of_().value_(), "rq_all")
        left, number = left - pool.sp_nrthreads.value_(), number + 1


def clients(kernel: Kernel) -> Iterator[str]:
    """The transports of all mounts, and their RPCs."""
    number = kernel.at("unsigned int", kernel.module_symbols("sunrpc")["sunrpc_net_id"]).value_()
    transports: dict[int, Object] = {}
    tasks: list[Object] = []
    for net in kernel.entries("struct net", kernel.symbols["net_namespace_list"], "list"):
        # Of the pointers of all parts of the kernel (struct net_generic).
        ours = kernel.at("struct sunrpc_net", kernel.prog.read_word(net.gen.value_() + WORD * number))
        for client in kernel.entries("struct rpc_clnt", ours.all_clients.address_of_().value_(), "cl_clients"):
            tasks += kernel.entries("struct rpc_task", client.cl_tasks.address_of_().value_(), "tk_task")
            switch = client.cl_xpi.xpi_xpswitch
            for xprt in kernel.entries("struct rpc_xprt", switch.xps_xprt_list.address_of_().value_(), "xprt_switch"):
                if xprt.xprt_class.ident == RDMA:
                    transports[xprt.value_()] = xprt
    for address, xprt in sorted(transports.items()):
        yield from Client(kernel, xprt).lines([task for task in tasks if task.tk_xprt.value_() == address])


def servers(kernel: Kernel) -> Iterator[str]:
    """The connections of all clients of ours, found by their queue pairs."""
    handlers = {address for name, address in kernel.module_symbols("rpcrdma").items()
                if "9Responder" in name and "9QueuePair" in name and "12device_event" in name}
    table = kernel.prog.constant("RDMA_RESTRACK_QP").value_() * kernel.prog.type("struct rdma_restrack_root").size
    for device in kernel.xarray("struct ib_device", kernel.module_symbols("ib_core")["devices"]):
        for entry in kernel.xarray("struct rdma_restrack_entry", device.res.value_() + table):
            qp = drgn.container_of(entry.address_of_(), "struct ib_qp", "res")
            if qp.registered_event_handler.value_() in handlers:
                ours = kernel.rust(queue_pair(SERVER), qp.qp_context.value_())
                yield from server_lines(kernel, Connection(ours))


def main() -> int:
    """Print it all."""
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        kernel = Kernel(drgn.get_default_prog(), sys.argv[1])
        if not re.match(rf"{re.escape(KNOWN)}\b", kernel.release):
            print(f"rpcrdma.py: made for Linux {KNOWN}; what it says of {kernel.release} may be wrong", file=sys.stderr)
        for line in (*clients(kernel), *servers(kernel)):
            print(line)
    except (Missing, AttributeError, LookupError, OSError, drgn.FaultError) as error:
        print(f"rpcrdma.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
