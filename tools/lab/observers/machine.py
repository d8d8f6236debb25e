"""A machine of Debian that mounts from itself over RDMA, with our module or the kernel's own, and the tools that people run."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import repository
from guests import kernels, module, pair, system
from guests.pair import OURS
from guests.system import SERVES_ITSELF, Installed, System

STATUS_DIRECTORY = repository.ROOT / "tools/status"
INSTALLED = Installed("observers", (
    "bpftrace", "curl", "e2fsprogs", "linux-perf/trixie-backports", "pcp", "prometheus", "prometheus-node-exporter",
    "python3-drgn", "trace-cmd"))
RUN = repository.BUILD / "run/observers"
FILES = ("rpcrdma_status.py", "rpcrdma-alerts.yml", "selftests/alerts.yml")
SCRIPT = repository.ROOT / "tools/drgn/rpcrdma.py"
INSERT = "install -D /lab/rpcrdma.ko /lib/modules/$(uname -r)/updates/rpcrdma.ko && depmod"
# What our client asks by itself would be counted, too.
KEEP_ALIVE = "/proc/sys/sunrpc/rdma_keepalive_time"
QUIET = f"modprobe rpcrdma && {{ test ! -e {KEEP_ALIVE} || echo 0 > {KEEP_ALIVE}; }}"
# What is exported is a file system of its own, so that it can be frozen.
EXPORT = "truncate -s 256M /export.img && mkfs.ext4 -q /export.img && mount /export.img /srv && chmod 777 /srv"
# Nor does it ask anything of NFS while its lease lasts, and what it has cached is good.
LEASE = ("sed -i 's/^lease-time=.*/lease-time=3600/' /etc/nfs.conf.d/rdma.conf && "
         "sed -i 's/_netdev,/_netdev,actimeo=3600,/' /etc/fstab")
MOUNT = "systemctl daemon-reload && systemctl restart rxe nfs-server && mount /mnt"
EXPORTERS = """echo 'ARGS="--collector.mountstats"' > /etc/default/prometheus-node-exporter &&
systemctl disable -q --now prometheus && systemctl restart prometheus-node-exporter && systemctl start pmcd &&
 cd /var/lib/pcp/pmdas/nfsclient && ./Install < /dev/null"""
# A program, which tools can start: a little of everything, and of as much each time that counts are the same.
LOAD = """cat > /usr/local/bin/load <<'E'
#!/bin/sh -e
cd /mnt
dd if=/dev/zero of=file bs=64k count=16 oflag=direct status=none
dd if=file of=/dev/null bs=64k iflag=direct status=none
mkdir many
touch many/1 many/2 many/3
ls many > /dev/null
echo short > many/1
cat many/1 > /dev/null
rm -r many file
E
chmod 755 /usr/local/bin/load"""


@contextmanager
def machine(whose: str) -> Iterator[System]:
    """A machine with a mount, on which nothing was done yet; the script for drgn, and what that reads, are in /lab."""
    directory = RUN / whose
    shutil.rmtree(directory, ignore_errors=True)
    ours = module.build(kernels.stock())
    with system.just_installed(directory, INSTALLED) as made:
        made.offer(ours, SCRIPT, *(STATUS_DIRECTORY / name for name in FILES))
        if whose == OURS:
            made.must(INSERT)
        for command in (QUIET, EXPORT, SERVES_ITSELF, LEASE, EXPORTERS, LOAD, MOUNT):
            made.must(command)
        pair.prove(whose, whose, made.must(pair.SAY_TAINT))
        yield made
