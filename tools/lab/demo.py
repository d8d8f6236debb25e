"""`make demo`: a mount over RDMA, shown from the build to rmmod."""

import sys

import progress
import repository
import settings
from guests import devices, kernels, module
from guests.machine import Build
from guests.pair import IN_TREE, OURS, End, Pair, Setup, alone, running

sys.path.append(str(repository.ROOT / "tools/on-device"))
import statistics_line  # noqa: E402

WHOSE = {OURS: "our", IN_TREE: "the in-tree"}
MOUNT = "mount -t nfs -o vers=4.2,proto=rdma,port=20049 192.0.2.1:/ /mnt"
# A real tree from the guest's own disk, with one large file beside it.
SOURCES = ("/usr/lib/x86_64-linux-gnu", "/usr/bin", "/usr/sbin", "/usr/share/perl5", "/usr/share/zoneinfo",
           "/usr/share/bash-completion")
LARGE_MEGABYTES = 64
LEAST_FILES, LEAST_BYTES = 2000, 200_000_000
# Whole lists of sums are compared by their sum; a name is part of its line.
SUMS = "cd {} && find . -type f -print0 | sort -z | xargs -0 sha256sum"
# Directories first, then several files at a time, so that both guests have work.
COPY = ("mkdir {1} && cd {0} && find . -mindepth 1 -type d -printf '{1}/%P\\0' | xargs -0 mkdir && "
        "find . -type f -print0 | xargs -0 -n 50 -P 6 cp --parents -t {1}")
COPY_SECONDS = 600


def run() -> int:
    """Every step with its time; PASS, or what failed."""
    server, client = (settings.choice(end, (OURS, IN_TREE)) for end in ("SERVER", "CLIENT"))
    end = End(kernels.stock(), module.build(kernels.stock()), Build("2G"))
    with alone(), running(Setup("demo", end, end)) as guests:
        with progress.step(f"server: rxe, {WHOSE[server]} rpcrdma and nfsd; client: rxe and {WHOSE[client]} rpcrdma"):
            guests.load(devices.named("rxe"), server, client)
        with progress.step(MOUNT):
            guests.client.must(f"mkdir -p /mnt && {MOUNT}")
            progress.line(f"  {guests.client.must('grep /mnt /proc/mounts').strip()}")
        _copy(guests)
        with progress.step("what the transport counted (mountstats)"):
            line = guests.client.must("grep -A100 'mounted on /mnt ' /proc/self/mountstats | grep -m 1 xprt:")
            for text in statistics_line.in_words(line):
                progress.line(f"  {text}")
        with progress.step("umount and rmmod"):
            guests.client.must("umount /mnt")
            guests.unload()
        guests.must_be_quiet()
    progress.line("PASS")
    return 0


def _copy(guests: Pair) -> None:
    """Copy the tree out and in again, and compare the checksums of all four copies."""
    with progress.step("collecting a tree of real files on the client"):
        guests.client.must(f"mkdir /tmp/tree && cp -a --parents {' '.join(SOURCES)} /tmp/tree && find /tmp/tree -type l "
                           f"-delete && dd if=/dev/urandom of=/tmp/tree/large bs=1M count={LARGE_MEGABYTES}", 300)
        files, size = (int(word) for word in guests.client.must(
            "find /tmp/tree -type f -printf '%s\\n' | awk '{ n += $1 } END { print NR, n }'").split())
        progress.line(f"  {files} files, {size / 1e6:.0f} MB")
        if files < LEAST_FILES or size < LEAST_BYTES:
            raise progress.Failure("the tree is smaller than the demonstration promises")
    with progress.step("copying the tree to the server over RDMA"):
        guests.client.must(COPY.format("/tmp/tree", "/mnt/tree") + " && sync -f /mnt", COPY_SECONDS)
    with progress.step("copying it back, past the client's cache"):
        guests.client.must("echo 3 > /proc/sys/vm/drop_caches; " + COPY.format("/mnt/tree", "/tmp/back"), COPY_SECONDS)
    with progress.step("comparing SHA-256 sums: what was sent, what the server has, what came back"):
        on_server = guests.server.start(SUMS.format("/export/tree"))
        sent = guests.client.must(SUMS.format("/tmp/tree"), COPY_SECONDS)
        back = guests.client.must(SUMS.format("/tmp/back"), COPY_SECONDS)
        there = guests.server.wait(on_server, COPY_SECONDS, "sha256sum").out
        for who, sums in (("the server has", there), ("came back", back)):
            if sums != sent:
                wrong = set(sums.splitlines()) ^ set(sent.splitlines())
                raise progress.Failure(f"what {who} differs from what was sent, in {len(wrong)} lines, such as "
                                  f"{sorted(wrong)[0]}")
        progress.line(f"  {len(sent.splitlines())} files, the same in all three places")
