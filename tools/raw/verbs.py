"""The C interface of librdmacm and libibverbs, as far as it is used here.

Debian's own binding for Python, pyverbs, can neither send nor show the private data of a connection (RFC 8797).
"""

import ctypes
import os
from ctypes import POINTER, Structure, byref, c_char_p, c_int, c_size_t, c_uint8, c_uint32, c_uint64, c_void_p

ADDRESS_RESOLVED, ROUTE_RESOLVED, CONNECT_REQUEST, ESTABLISHED, DISCONNECTED = 0, 2, 4, 9, 10
PORT_SPACE_TCP = 0x0106
QUEUE_PAIR_RC = 2
RDMA_WRITE, SEND, RDMA_READ, BIND_WINDOW, SEND_INVALIDATING = 0, 2, 4, 8, 9
SEND_SIGNALED = 2
LOCAL_WRITE, REMOTE_WRITE, REMOTE_READ, BIND = 1, 2, 4, 16
WINDOW_TYPE_2 = 2
# IBV_WC_WITH_INV, and the kernel's own number for it, which rxe puts into a completion of a process.
COMPLETED_INVALIDATED = 8 | 4


class Segment(Structure):
    """struct ibv_sge"""

    _fields_ = [("address", c_uint64), ("length", c_uint32), ("key", c_uint32)]


class BindInfo(Structure):
    """struct ibv_mw_bind_info"""

    _fields_ = [("region", c_void_p), ("address", c_uint64), ("length", c_uint64), ("access", c_uint32)]


class SendRequest(Structure):
    """struct ibv_send_wr"""

    _fields_ = [("id", c_uint64), ("next", c_void_p), ("segments", POINTER(Segment)), ("segment_count", c_int),
                ("opcode", c_int), ("flags", c_uint32), ("immediate", c_uint32), ("remote", c_uint64 * 4),
                ("shared", c_uint64), ("window", c_void_p), ("window_key", c_uint32), ("bind", BindInfo)]


class ReceiveRequest(Structure):
    """struct ibv_recv_wr"""

    _fields_ = [("id", c_uint64), ("next", c_void_p), ("segments", POINTER(Segment)), ("segment_count", c_int)]


class Completion(Structure):
    """struct ibv_wc"""

    _fields_ = [("id", c_uint64), ("status", c_int), ("opcode", c_int), ("vendor_error", c_uint32),
                ("length", c_uint32), ("invalidated", c_uint32), ("queue_pair", c_uint32), ("source", c_uint32),
                ("flags", c_uint32), ("index", c_uint32), ("lids", c_uint32)]


class QueuePairAttributes(Structure):
    """struct ibv_qp_init_attr"""

    _fields_ = [("context", c_void_p), ("send_queue", c_void_p), ("receive_queue", c_void_p), ("shared", c_void_p),
                ("sends", c_uint32), ("receives", c_uint32), ("send_segments", c_uint32),
                ("receive_segments", c_uint32), ("inline", c_uint32), ("type", c_int), ("all_signaled", c_int)]


class Operations(Structure):
    """struct ibv_context_ops: what the header calls through pointers"""

    _fields_ = [("old_1", c_void_p * 7), ("alloc_window", c_void_p), ("bind_window", c_void_p),
                ("dealloc_window", c_void_p), ("old_2", c_void_p), ("poll", c_void_p), ("notify", c_void_p),
                ("old_3", c_void_p * 12), ("post_send", c_void_p), ("post_receive", c_void_p)]


class Context(Structure):
    """The beginning of struct ibv_context"""

    _fields_ = [("device", c_void_p), ("operations", Operations)]


class Region(Structure):
    """struct ibv_mr"""

    _fields_ = [("context", c_void_p), ("domain", c_void_p), ("address", c_void_p), ("length", c_size_t),
                ("handle", c_uint32), ("local_key", c_uint32), ("remote_key", c_uint32)]


class Window(Structure):
    """struct ibv_mw"""

    _fields_ = [("context", c_void_p), ("domain", c_void_p), ("remote_key", c_uint32)]


class Channel(Structure):
    """struct ibv_comp_channel"""

    _fields_ = [("context", c_void_p), ("descriptor", c_int)]


class EventChannel(Structure):
    """struct rdma_event_channel"""

    _fields_ = [("descriptor", c_int)]


class Id(Structure):
    """The beginning of struct rdma_cm_id"""

    _fields_ = [("context", POINTER(Context)), ("channel", c_void_p), ("user", c_void_p), ("queue_pair", c_void_p)]


class ConnectionParameters(Structure):
    """struct rdma_conn_param"""

    _fields_ = [("private", c_void_p), ("private_length", c_uint8), ("responder_resources", c_uint8),
                ("initiator_depth", c_uint8), ("flow_control", c_uint8), ("retries", c_uint8),
                ("not_ready_retries", c_uint8), ("shared", c_uint8), ("number", c_uint32)]


class Event(Structure):
    """The beginning of struct rdma_cm_event"""

    _fields_ = [("id", c_void_p), ("listener", c_void_p), ("kind", c_int), ("status", c_int),
                ("parameters", ConnectionParameters)]


IdPointer = POINTER(Id)

_ibverbs = ctypes.CDLL("libibverbs.so.1", use_errno=True)
_rdmacm = ctypes.CDLL("librdmacm.so.1", use_errno=True)


def _function(library: ctypes.CDLL, name: str, result: type | None, *arguments: type):
    """A function of a library; one that returns no pointer, or a number other than 0, has failed."""
    function = library[name]
    function.restype, function.argtypes = result, arguments

    def call(*values):
        value = function(*values)
        if (not value) if result is not c_int else value:
            number = ctypes.get_errno()
            raise OSError(number, f"{name}: {os.strerror(number)}")
        return value

    return call


def _procedure(library: ctypes.CDLL, name: str, *arguments: type):
    """A function of a library that returns nothing."""
    function = library[name]
    function.restype, function.argtypes = None, arguments
    return function


alloc_domain = _function(_ibverbs, "ibv_alloc_pd", c_void_p, POINTER(Context))
register = _function(_ibverbs, "ibv_reg_mr", POINTER(Region), c_void_p, c_void_p, c_size_t, c_int)
deregister = _function(_ibverbs, "ibv_dereg_mr", c_int, POINTER(Region))
create_channel = _function(_ibverbs, "ibv_create_comp_channel", POINTER(Channel), POINTER(Context))
destroy_channel = _function(_ibverbs, "ibv_destroy_comp_channel", c_int, POINTER(Channel))
create_queue = _function(_ibverbs, "ibv_create_cq", c_void_p, POINTER(Context), c_int, c_void_p, POINTER(Channel),
                         c_int)
destroy_queue = _function(_ibverbs, "ibv_destroy_cq", c_int, c_void_p)
get_notice = _function(_ibverbs, "ibv_get_cq_event", c_int, POINTER(Channel), POINTER(c_void_p), POINTER(c_void_p))
create_event_channel = _function(_rdmacm, "rdma_create_event_channel", POINTER(EventChannel))
create_id = _function(_rdmacm, "rdma_create_id", c_int, POINTER(EventChannel), POINTER(POINTER(Id)), c_void_p, c_int)
resolve_address = _function(_rdmacm, "rdma_resolve_addr", c_int, POINTER(Id), c_void_p, c_char_p, c_int)
resolve_route = _function(_rdmacm, "rdma_resolve_route", c_int, POINTER(Id), c_int)
create_queue_pair = _function(_rdmacm, "rdma_create_qp", c_int, POINTER(Id), c_void_p, POINTER(QueuePairAttributes))
connect = _function(_rdmacm, "rdma_connect", c_int, POINTER(Id), POINTER(ConnectionParameters))
bind_address = _function(_rdmacm, "rdma_bind_addr", c_int, POINTER(Id), c_char_p)
listen = _function(_rdmacm, "rdma_listen", c_int, POINTER(Id), c_int)
migrate_id = _function(_rdmacm, "rdma_migrate_id", c_int, POINTER(Id), POINTER(EventChannel))
accept = _function(_rdmacm, "rdma_accept", c_int, POINTER(Id), POINTER(ConnectionParameters))
reject = _function(_rdmacm, "rdma_reject", c_int, POINTER(Id), c_void_p, c_uint8)
get_event = _function(_rdmacm, "rdma_get_cm_event", c_int, POINTER(EventChannel), POINTER(POINTER(Event)))
ack_event = _function(_rdmacm, "rdma_ack_cm_event", c_int, POINTER(Event))
disconnect = _function(_rdmacm, "rdma_disconnect", c_int, POINTER(Id))
destroy_id = _function(_rdmacm, "rdma_destroy_id", c_int, POINTER(Id))
destroy_queue_pair = _procedure(_rdmacm, "rdma_destroy_qp", POINTER(Id))
destroy_event_channel = _procedure(_rdmacm, "rdma_destroy_event_channel", POINTER(EventChannel))
ack_notices = _procedure(_ibverbs, "ibv_ack_cq_events", c_void_p, ctypes.c_uint)

_POST = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, POINTER(c_void_p))
_POLL = ctypes.CFUNCTYPE(c_int, c_void_p, c_int, POINTER(Completion))
_NOTIFY = ctypes.CFUNCTYPE(c_int, c_void_p, c_int)
_ALLOC_WINDOW = ctypes.CFUNCTYPE(c_void_p, c_void_p, c_int)
_DEALLOC_WINDOW = ctypes.CFUNCTYPE(c_int, c_void_p)


class Calls:
    """What libibverbs has only as inline functions of its header."""

    def __init__(self, context) -> None:
        operations = context.contents.operations
        self._post_send, self._post_receive = _POST(operations.post_send), _POST(operations.post_receive)
        self._poll, self._notify = _POLL(operations.poll), _NOTIFY(operations.notify)
        self._alloc_window = _ALLOC_WINDOW(operations.alloc_window)
        self._dealloc_window = _DEALLOC_WINDOW(operations.dealloc_window)

    def post_send(self, queue_pair: int, request: SendRequest) -> None:
        self._check("post_send", self._post_send(queue_pair, ctypes.addressof(request), byref(c_void_p())))

    def post_receive(self, queue_pair: int, request: ReceiveRequest) -> None:
        self._check("post_recv", self._post_receive(queue_pair, ctypes.addressof(request), byref(c_void_p())))

    def poll(self, queue: int) -> Completion | None:
        completion = Completion()
        return completion if self._poll(queue, 1, byref(completion)) else None

    def notify(self, queue: int) -> None:
        self._check("req_notify_cq", self._notify(queue, 0))

    def alloc_window(self, domain: int) -> Window:
        window = self._alloc_window(domain, WINDOW_TYPE_2)
        if not window:
            raise OSError("alloc_mw failed")
        return Window.from_address(window)

    def dealloc_window(self, window: Window) -> None:
        self._check("dealloc_mw", self._dealloc_window(ctypes.addressof(window)))

    @staticmethod
    def _check(name: str, status: int) -> None:
        if status:
            raise OSError(status, f"{name}: {os.strerror(abs(status))}")
