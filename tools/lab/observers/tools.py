"""The tools, and what their outputs have to have in common with both modules."""

import difflib
import functools
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import progress

# A number with its unit, not one that is part of a name.
NUMBER = re.compile(r"(?<![\w.])-?(?:0x[0-9a-f]+|\d+(?:\.\d+)?(?:e[-+]?\d+)?)%?(?!\w)", re.IGNORECASE)
# The name of an event as perf and trace-cmd show it.
EVENT = re.compile(r"rpcrdma:(\w+)\(|\d+\.\d+: (\w+):")
# perf was seen to miss the last one of an event.
LATE = 1
# Events of which there is one for each RPC, and those of the chunks of READs and WRITEs. How many RPCs a load takes depends on
# what NFS has cached. A Send of ours is reported with one that comes after it, so the last ones are not.
EACH = """svcrdma_decode_rqst svcrdma_post_send svcrdma_wc_recv xprtrdma_marshal xprtrdma_post_send xprtrdma_reply
    xprtrdma_wc_receive""".split()
CHUNKS = """svcrdma_decode_rseg svcrdma_post_read_chunk svcrdma_post_write_chunk svcrdma_read_finished svcrdma_wc_read
    xprtrdma_chunk_read xprtrdma_chunk_write""".split()


@dataclass(frozen=True)
class Apart:
    """Lines in which the two may differ, and why."""

    pattern: str
    reason: str


@dataclass(frozen=True)
class Tool:
    """One that is run in the same way with both modules."""

    # In Documentation/tools.rst, too.
    name: str
    command: str
    # Lines whose numbers have to be the same, too, if there are any such lines.
    exact: str = ""
    apart: tuple[Apart, ...] = ()
    # What has to be the same of an output, before numbers are masked.
    shape: Callable[[str], list[str]] = str.splitlines
    # The lines of the document.
    shown: str = ""

    def differences(self, ours: str, theirs: str) -> list[str]:
        """Where two outputs are not as they are to be: lines that only one has, and what the tool is told of in vain."""
        vain = [f"no line is as {pattern}" for pattern in (self.exact, *(apart.pattern for apart in self.apart))
                if not any(re.search(pattern, line) for line in (*self.shape(ours), *self.shape(theirs)))]
        lines = difflib.unified_diff(self._masked(theirs), self._masked(ours), n=0)
        return vain + [line for line in lines if not line.startswith(("---", "+++", "@@"))]

    def _masked(self, output: str) -> list[str]:
        """What has to be the same."""
        wanted = [line for line in self.shape(output) if not any(re.search(apart.pattern, line) for apart in self.apart)]
        return [" ".join(self._value(line).split()) for line in wanted]

    def _value(self, line: str) -> str:
        return line if self.exact and re.search(self.exact, line) else NUMBER.sub("N", line)


def file_of(directory: Path, name: str) -> Path:
    """Where an output is."""
    return directory / re.sub(r"[^\w-]+", "-", name)


def kinds(output: str) -> list[str]:
    """Lines of which there may be any number, once each."""
    return sorted({" ".join(NUMBER.sub("N", line).split()) for line in output.splitlines()})


def blocks(output: str) -> list[str]:
    """Each block of lines as one line: a metric or an event, and what belongs to it."""
    return [" ".join(block.split()) for block in re.split(r"\n(?=\S)", output) if block.strip()]


def counted(output: str, late: int = 0) -> list[str]:
    """How many there were of the events that are counted, of which so many may have been missed."""
    found = Counter(perf or trace for perf, trace in EVENT.findall(output))
    if missing := [name for name in (*EACH, *CHUNKS) if not found[name]]:
        raise progress.Failure(f"not one of {', '.join(missing)}")
    each = [found[name] for name in EACH]
    of_each = EACH if max(each) - min(each) <= late else [f"{name}: {found[name]}" for name in EACH]
    return [*of_each, *(f"{name}: {found[name]}" for name in CHUNKS)]


def alike(lines: list[str]) -> list[str]:
    """Lines that end with a number, which is left out if all have the same."""
    parts = [line.rpartition(" ") for line in lines]
    return [part[0] for part in parts] if len({part[2] for part in parts}) == 1 else lines


def sorted_alike(output: str) -> list[str]:
    """The same of an output whose lines are in no order."""
    return alike(counts(output))


def counts(output: str) -> list[str]:
    """Lines in no order."""
    return sorted(line for line in output.splitlines() if line)


def headings(output: str) -> list[str]:
    """What there are histograms of."""
    return [line for line in output.splitlines() if line.startswith("@")]


NO_CLIENT = Apart(r"rpcrdma_client_", "the module is no client of ib_core")
NOT_MAPPED = Apart(r"svcrdma_dma_(un)?map_(page|err)", "Sends go out from buffers that are mapped once")
NO_FABRIC = Apart(r"svcrdma_fabric_err", "no fabric is refused")
PULLED = Apart(r"svcrdma_(provide|pull)|xprtrdma_(done|pull|reply_mechanism)", "only here are Replies pulled")
SECOND = Apart(r"(svc|xprt)rdma_(continued|fragment|grant|properties|version)", "only here is version 2 spoken")
EVENTS = (NO_CLIENT, NOT_MAPPED, NO_FABRIC, PULLED, SECOND)
FIRST_CALL = Apart(r"nfs v4 server +(total|null):", "each connection of ours begins with NULL")
# bpftrace starts no scripts.
PROGRAM = "'sh /usr/local/bin/load'"
RDMA = "rdma resource show"
# Each fires once for an RPC.
COUNT = "tracepoint:rpcrdma:xprtrdma_post_send, tracepoint:rpcrdma:svcrdma_decode_rqst { @[probe] = count(); }"
LATENCY = ("tracepoint:rpcrdma:xprtrdma_marshal { @sent[args.xid] = nsecs; } "
           "tracepoint:rpcrdma:xprtrdma_reply /@sent[args.xid]/ "
           "{ @microseconds = hist((nsecs - @sent[args.xid]) / 1000); delete(@sent, args.xid); } END { clear(@sent); }")
TOOLS = (
    Tool("mountstats", "mountstats mountstats /mnt", exact="^(?!.*(mount age|backlog wait):)",
         shown="requests sent|^(READ|WRITE):|ops|avg bytes|backlog wait:"),
    Tool("mountstats --xprt", "mountstats mountstats --xprt /mnt",
         exact="RPC|XIDs|Connect count|(Read|Write) segments|Bad replies"),
    Tool("nfsiostat", "nfsiostat /mnt"),
    Tool("nfsstat", "nfsstat -l && nfsstat -m", exact=".", apart=(FIRST_CALL,), shown="total|read|write|open"),
    Tool("prometheus-node-exporter", "curl -s localhost:9100/metrics | grep node_mountstats",
         exact="operations_requests_total|read_bytes|write_bytes", shown=r"transport_\w+\{"),
    Tool("pminfo", "pminfo -f nfsclient", shape=blocks,
         exact=r"\.ops\.\w+\.ops |xprt\.(sends|recvs|bad_xids|(read|write)_chunks) ", shown=r"xprt"),
    Tool("rdma resource", f"{RDMA} && {RDMA} qp && {RDMA} cm_id && {RDMA} cq && {RDMA} pd && {RDMA} mr", shape=kinds,
         shown="^0|RTS|cqn|LISTEN"),
    Tool("rdma statistic", "rdma statistic show link rxe0/1"),
    Tool("perf list", "perf list --no-desc 'rpcrdma:*'", apart=EVENTS, shown="xprtrdma_[a-c]"),
    Tool("perf trace", "perf trace -a -e 'rpcrdma:*' -o /dev/stdout load", shape=functools.partial(counted, late=LATE), exact="."),
    Tool("trace-cmd", "trace-cmd record -q -e rpcrdma -o /tmp/trace load && trace-cmd report -q -i /tmp/trace",
         shape=counted, exact="."),
    Tool("bpftrace -l", "bpftrace -lv 'tracepoint:rpcrdma:*'", shape=blocks, apart=EVENTS,
         shown="xprtrdma_(marshal|post_send|reply|wc_receive) "),
    Tool("bpftrace, RPCs", f"bpftrace -q -e '{COUNT}' -c {PROGRAM}", shape=sorted_alike, exact="."),
    Tool("bpftrace, latency", f"bpftrace -q -e '{LATENCY}' -c {PROGRAM}", shape=headings),
)
