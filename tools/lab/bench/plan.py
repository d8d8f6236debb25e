"""What is measured: operations, how often, on which mounts, and the goals of ours against the in-tree module."""

from dataclasses import dataclass, replace

from bench.costs import AT_ONE_END

KIB, MIB = 1024, 1024 * 1024
# Of the operations of a repetition, so many come before, so that credits, Receives and caches are as they stay.
WARMUP_PART = 4
# How much the same build may differ from itself, in total instructions; and how much two guests may, for a verdict.
LIMIT, SMALL_LIMIT, MIXED_LIMIT = 0.005, 0.01, 0.01
SMALL = 4 * KIB
# How many operations make some 300 million instructions, a second or two of emulation.
OPERATIONS = {4 * KIB: 3000, 8 * KIB: 2500, 16 * KIB: 2000, 64 * KIB: 1000, 65533: 1000, 256 * KIB: 300, MIB: 100}
FILE_MEGABYTES = 16
MANY_ENTRIES, FEW_ENTRIES = 1000, 4

DATA, SMALL_FILE = "{0}/bench/data", "{0}/bench/small"
IN_FLIGHT_COUNTS, GOAL_DEPTH = (1, 16, 128), 32
CONNECTIONS = (1, 8, 64)
NFS42, NFS3, CONNECTED = "NFS 4.2", "NFS 3", "connections"
NCONNECT = 16


@dataclass(frozen=True)
class Goal:
    """Ours against the in-tree module at both ends; None where there is no goal."""

    total: float | None = None
    rpcrdma: float | None = None
    # The most of each, for one operation.
    most: tuple[tuple[str, float], ...] = ()
    # Exactly so many.
    just: tuple[tuple[str, float], ...] = ()
    # Of the in-tree module's.
    parts: tuple[tuple[str, float], ...] = ()


ALL_INLINE = Goal(0.98, 0.85)
# A GETATTR is one RPC.
INLINE = replace(ALL_INLINE, most=tuple((AT_ONE_END.format(name), most) for name, most in (
    ("ib_post_send", 1), ("ib_post_recv", 1 / 16), ("completions", 1.2))))
UNREGISTERED = (("RegMR", 0), ("LocalInv", 0))
PAGE = Goal(0.90, 0.85, just=UNREGISTERED)
PAGE_4096 = Goal(0.98, 0.85)
ONE_REGION = (("RegMR", 1), ("LocalInv", 0), ("Send With Invalidate", 1))
MIDDLE = Goal(0.98, 0.70, just=ONE_REGION)
LARGE = Goal(0.985, 0.35, just=ONE_REGION)
ODD = Goal(0.95, 0.70, just=ONE_REGION)
LONG_REPLY = Goal(0.95, 0.80)
SHORT_LONG_REPLY = replace(LONG_REPLY, just=(("RDMA Write", 0),))
# The client registers nothing for Replies that are short as a rule.
PULLED = replace(SHORT_LONG_REPLY, total=0.80, just=(*SHORT_LONG_REPLY.just, *UNREGISTERED))
MANY_AT_ONCE = replace(PAGE, parts=(("CQ wakeups", 0.70),))
GOALS = {4 * KIB: PAGE, 64 * KIB: MIDDLE, 256 * KIB: MIDDLE, MIB: LARGE, 65533: ODD}
# Ours with the in-tree module at the other end, against that one at both.
MIXED_MOST = 1.03
# An idle connection's memory, against the in-tree module's; and against what it was before it had much to do.
MEMORY_MOST, SHRUNK_MOST = 0.60, 1.10


@dataclass(frozen=True)
class Workload:
    """One operation of tools/bench/workload."""

    name: str
    # Of the program; `{0}` is where the file system is mounted, `{1}` what it wants to be told to mount by itself.
    arguments: str
    operations: int
    goal: Goal = Goal()
    limit: float = LIMIT
    # Each is counted for itself, since something comes between two that is not counted; and it may have to wait.
    apart: bool = False

    @property
    def warmup(self) -> int:
        return max(self.operations // WARMUP_PART, 1)


@dataclass(frozen=True)
class Part:
    """Workloads on one kind of mount."""

    name: str
    version: str
    workloads: tuple[Workload, ...]
    options: str = ""
    # The inline size of both ends, where it is not each one's own.
    inline: int | None = None
    # The version of RPC-over-RDMA that both ends come to speak.
    protocol: int = 1
    # What the in-tree module is measured with instead, where only ours is set up so.
    reference: str = ""


def said(size: int) -> str:
    """A size as people say it."""
    if size % MIB == 0:
        return f"{size // MIB} MiB"
    return f"{size // KIB} KiB" if size % KIB == 0 else f"{size} bytes"


def transfers(size: int, depth: int = 1) -> tuple[Workload, ...]:
    """A read and a write of a size, so many at once."""
    name = said(size) + (f", {depth} at once" if depth > 1 else "")
    goal = GOALS.get(size, Goal()) if depth == 1 else Goal()
    if (size, depth) == (4 * KIB, GOAL_DEPTH):
        goal = MANY_AT_ONCE
    # With few at once as many operations; with many, each at least some times.
    operations = max(OPERATIONS[size], 25 * depth)
    limit = SMALL_LIMIT if size <= SMALL else LIMIT
    return tuple(Workload(f"{way} {name}", f"{way} {size} {depth} {DATA}", operations, goal, limit)
                 for way in ("read", "write"))


def sizes(*wanted: int) -> tuple[Workload, ...]:
    return tuple(workload for size in wanted for workload in transfers(size))


GETATTR = Workload("GETATTR", f"getattr {SMALL_FILE}", 4000, INLINE)
CREATE = Workload("CREATE+REMOVE", "create {0}/bench/made", 5000)
READDIR = Workload(f"READDIR, {MANY_ENTRIES} entries", f"list {{0}}/bench/many {MANY_ENTRIES}", 60,
                   replace(LONG_REPLY, total=0.985))
READDIR_SHORT = Workload(f"READDIR, {FEW_ENTRIES} entries", f"list {{0}}/bench/few {FEW_ENTRIES}", 1500,
                         PULLED)
# Each is another symbolic link, of as many as there are other entries.
READLINK = Workload("READLINK", "readlink {0}/bench/links", 800, SHORT_LONG_REPLY)
# The same of other files.
GETACL = Workload("GETACL", "getacl {0}/bench/many", 800, PULLED)
LISTXATTR = Workload("LISTXATTR", f"listxattr {SMALL_FILE}", 1500, PULLED)
LOOKUP = Workload("LOOKUP", f"lookup {SMALL_FILE}", 4000)
OPEN = Workload("OPEN+CLOSE", f"open {SMALL_FILE}", 1500)

QUICK_SIZES = sizes(4 * KIB, MIB)
IN_FLIGHT = tuple(transfers(4 * KIB, depth)[0] for depth in IN_FLIGHT_COUNTS[1:])
INLINE_4096 = Part("NFS 4.2, inline size 4096", "4.2",
                   tuple(replace(workload, goal=PAGE_4096) for workload in transfers(4 * KIB)), inline=4096,
                   reference=NFS42)
# Continued messages take the place of Replies that are pulled.
CONTINUED = replace(PULLED, total=0.75)
VERSION_2 = Part("NFS 4.2, RPC-over-RDMA version 2", "4.2",
                 (GETATTR, replace(READDIR, goal=replace(READDIR.goal, total=0.98)),
                  *(replace(workload, goal=CONTINUED) for workload in (READDIR_SHORT, LISTXATTR, GETACL)), *QUICK_SIZES),
                 protocol=2, reference=NFS42)

QUICK = (Part(NFS42, "4.2", QUICK_SIZES),)
DEFAULT = (
    Part(NFS42, "4.2", (GETATTR, CREATE, READDIR, READDIR_SHORT, READLINK, LISTXATTR, GETACL,
                        *sizes(4 * KIB, 64 * KIB, 256 * KIB, MIB, 65533), *transfers(4 * KIB, GOAL_DEPTH))),
    INLINE_4096,
    VERSION_2,
    # A session of NFS 4.2 has 64 slots, and so no more at once.
    Part(NFS3, "3", (*QUICK_SIZES, *IN_FLIGHT)),
)
FULL = (
    *DEFAULT,
    Part("NFS 4.2, more sizes", "4.2", (*sizes(8 * KIB, 16 * KIB), OPEN)),
    Part("NFS 4.2, lookupcache=none", "4.2", (LOOKUP,), ",lookupcache=none"),
    Part("NFS 4.2, nconnect=4", "4.2",
         (replace(GETATTR, goal=ALL_INLINE), *QUICK_SIZES, *transfers(4 * KIB, GOAL_DEPTH)), ",nconnect=4"),
)
CONNECTS = (Workload("mount", "connect {1}", 30, apart=True), Workload("unmount", "disconnect {1}", 30, apart=True))
SETS = {"default": DEFAULT, "quick": QUICK, "full": FULL}
