"""The numbers of RPC-over-RDMA version 2, and the type of each header (the draft, table 2)."""

from pathlib import Path

from xdr import Schema

# What "extract" has found in the draft.
DESCRIPTION = Path(__file__).with_name("rpcrdma-v2.x")
# The draft uses rpcrdma2_errcode (section 6.3.1) and never defines it.
SCHEMA = Schema(DESCRIPTION.read_text(encoding="ascii"), {"rpcrdma2_errcode": "uint32"})
NUMBER = SCHEMA.constants

VERSION = 2
# Four words. Section 7 says 20 octets, which contradicts section 6.4.
PREFIX = 16
# What the first message of a connection may be long (section 4.3), and what any message before the other end has told
# its properties (section 4.2.2).
FIRST_SIZE = 1024
DEFAULT_SIZE = 4096

ERROR = NUMBER["RDMA2_ERROR"]
GRANT = NUMBER["RDMA2_GRANT"]
CONNPROP_MIDDLE = NUMBER["RDMA2_CONNPROP_MIDDLE"]
CONNPROP_FINAL = NUMBER["RDMA2_CONNPROP_FINAL"]
CALL_EXTERNAL = NUMBER["RDMA2_CALL_EXTERNAL"]
CALL_MIDDLE = NUMBER["RDMA2_CALL_MIDDLE"]
CALL_INLINE = NUMBER["RDMA2_CALL_INLINE"]
REPLY_EXTERNAL = NUMBER["RDMA2_REPLY_EXTERNAL"]
REPLY_MIDDLE = NUMBER["RDMA2_REPLY_MIDDLE"]
REPLY_INLINE = NUMBER["RDMA2_REPLY_INLINE"]

CALLS = frozenset((CALL_EXTERNAL, CALL_MIDDLE, CALL_INLINE))
REPLIES = frozenset((REPLY_EXTERNAL, REPLY_MIDDLE, REPLY_INLINE))
MIDDLES = frozenset((CALL_MIDDLE, REPLY_MIDDLE))
# The types that carry a part of a message, or all of it.
FRAGMENTS = MIDDLES | {CALL_INLINE, REPLY_INLINE}
PROPERTIES = frozenset((CONNPROP_MIDDLE, CONNPROP_FINAL))
# What may come at any time, also between fragments.
ASIDE = frozenset((ERROR, GRANT))

# The type of what follows the prefix; none has nothing.
HEADERS: dict[int, str | None] = {
    ERROR: "rpcrdma2_hdr_error",
    GRANT: None,
    CONNPROP_MIDDLE: "rpcrdma2_hdr_connprop",
    CONNPROP_FINAL: "rpcrdma2_hdr_connprop",
    CALL_EXTERNAL: "rpcrdma2_hdr_call_external",
    CALL_MIDDLE: "rpcrdma2_hdr_call_middle",
    CALL_INLINE: "rpcrdma2_hdr_call_inline",
    REPLY_EXTERNAL: "rpcrdma2_hdr_reply_external",
    REPLY_MIDDLE: "rpcrdma2_hdr_reply_middle",
    REPLY_INLINE: "rpcrdma2_hdr_reply_inline",
}
NAMES = {NUMBER[name]: name for name in ("RDMA2_ERROR", "RDMA2_GRANT", "RDMA2_CONNPROP_MIDDLE", "RDMA2_CONNPROP_FINAL",
                                         "RDMA2_CALL_EXTERNAL", "RDMA2_CALL_MIDDLE", "RDMA2_CALL_INLINE",
                                         "RDMA2_REPLY_EXTERNAL", "RDMA2_REPLY_MIDDLE", "RDMA2_REPLY_INLINE")}

ERRORS = {number: name for name, number in NUMBER.items() if name.startswith("RDMA2_ERR_")}
ERR_VERS = NUMBER["RDMA2_ERR_VERS"]
BAD_XDR = NUMBER["RDMA2_ERR_BAD_XDR"]
BAD_PROPVAL = NUMBER["RDMA2_ERR_BAD_PROPVAL"]
INVAL_HTYPE = NUMBER["RDMA2_ERR_INVAL_HTYPE"]
INVAL_CONT = NUMBER["RDMA2_ERR_INVAL_CONT"]
READ_CHUNKS = NUMBER["RDMA2_ERR_READ_CHUNKS"]
WRITE_CHUNKS = NUMBER["RDMA2_ERR_WRITE_CHUNKS"]
SEGMENTS = NUMBER["RDMA2_ERR_SEGMENTS"]
WRITE_RESOURCE = NUMBER["RDMA2_ERR_WRITE_RESOURCE"]
REPLY_RESOURCE = NUMBER["RDMA2_ERR_REPLY_RESOURCE"]
VERS_MISMATCH = NUMBER["RDMA2_ERR_VERS_MISMATCH"]
SYSTEM = NUMBER["RDMA2_ERR_SYSTEM"]

SBSIZ = NUMBER["RDMA2_PROPID_SBSIZ"]
RBSIZ = NUMBER["RDMA2_PROPID_RBSIZ"]
RSSIZ = NUMBER["RDMA2_PROPID_RSSIZ"]
RCSIZ = NUMBER["RDMA2_PROPID_RCSIZ"]
BRS = NUMBER["RDMA2_PROPID_BRS"]
# The properties whose value is one word (table 1). HOSTAUTH is not looked at.
WORD_PROPERTIES = frozenset((SBSIZ, RBSIZ, RSSIZ, RCSIZ, BRS))
REVERSE_NONE = NUMBER["RDMA2_RVRSDIR_NONE"]
REVERSE_CONT = NUMBER["RDMA2_RVRSDIR_CONT"]
REVERSE_GENL = NUMBER["RDMA2_RVRSDIR_GENL"]
