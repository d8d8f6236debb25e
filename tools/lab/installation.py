"""`make check-deb`: what an administrator does with the packages, on a machine of Debian with systemd."""

import functools
import re
import shutil
import subprocess
from pathlib import Path

import packages
import progress
import repository
from guests import kernels, roots, system
from guests.system import SERVES_ITSELF, Installed, System
from results import Results

RUN = repository.BUILD / "run/packages"
APT, APT_SECONDS = "DEBIAN_FRONTEND=noninteractive apt-get {}", 900
# RPCs under way that sysctl.d allows; another number than the module's own.
SLOTS = 64
SETTING = f"echo sunrpc.rdma_slot_table_entries={SLOTS} > /etc/sysctl.d/rpcrdma.conf"
# Writes until it is stopped, and ends with the first error.
WRITER = ("systemd-run --unit=writer sh -ec 'exec 3> /mnt/written; while :; do head -c 1000000 /dev/urandom >&3; "
          "sync /mnt/written; touch /run/writes; done'")
WRITES = "for try in $(seq 300); do test -e /run/writes && exit 0; sleep 0.2; done; systemctl status writer >&2; exit 1"
STOP_WRITER = "systemctl is-active writer && systemctl stop writer && rm /mnt/written"
# That of the package of the module is not signed.
REFUSES_UNSIGNED = ("dpkg-deb --fsys-tarfile /srv/rpcrdma-modules-*.deb | tar -xOf - --wildcards '*/rpcrdma.ko' > /run/rpcrdma.ko && "
                    "! insmod /run/rpcrdma.ko && dmesg | grep 'Loading of unsigned module is rejected'")
# With what rpcrdma-tools suggests.
MACHINE = Installed("administrator", ("python3-drgn",))
DRGN = ("drgn -q --no-default-symbols /usr/share/rpcrdma/rpcrdma.py "
        "/usr/lib/debug/lib/modules/$(uname -r)/updates/rpcrdma.ko | grep '^client to .192.0.2.1'")
# The directory of the packages, as one that apt knows.
LIST = "/etc/apt/sources.list.d/rpcrdma.list"
KNOWN = (f"echo 'deb [trusted=yes] file:/lab ./' > {LIST} && "
         f"apt-get update -o Dir::Etc::sourcelist={LIST} -o Dir::Etc::sourceparts=-")
# As node_exporter would have it.
COLLECTED = "/var/lib/prometheus/node-exporter"
STATUS = ("rpcrdma-status | grep -A9 '^client *192.0.2.1:20049 *rdma *1 *rxe0/1' | grep 'continuation: off' && "
          f"mkdir -p {COLLECTED} && systemctl start rpcrdma-status && grep '^rpcrdma_connected.* 1$' {COLLECTED}/rpcrdma.prom && "
          "! systemctl is-enabled rpcrdma-status.timer")
# An ELF note: lengths of name and content, NT_GNU_BUILD_ID, "GNU".
BUILD_ID = "/sys/module/rpcrdma/notes/.note.gnu.build-id"
NEXT_BUILD_ID = bytes.fromhex("04000000 14000000 03000000 474e5500") + b"of the next version!"


def check() -> int:
    """Build the packages, and try on machines what people do with them."""
    results = Results()
    built: list[Path] = []
    results.test("packages built, and nothing for lintian", lambda: built.extend(packages.build()))
    if built:
        shutil.rmtree(RUN, ignore_errors=True)
        RUN.mkdir(parents=True)
        results.test("the module is the same wherever it is built", _same_everywhere)
        results.test("the documents lead to each other as pages", functools.partial(_leads_to_pages, _named(built, "rpcrdma-doc")))
        _try_dkms(results, built)
        _try_modules(results, built)
    return results.finish()


def _same_everywhere() -> None:
    """Two builds of the module in different directories are the same file."""
    kernel, found = kernels.stock(), set[bytes]()
    for place in (RUN / "here", RUN / "somewhere/else"):
        repository.copy(place)
        log = repository.fresh_log(f"module-{place.name}")
        with progress.step(f"building the module in {place.name}", log):
            argv = ["make", f"-j{kernels.JOBS}", "module", f"KDIR={kernel.kdir}", f"RPCRDMA_VERSION={repository.version()}",
                    f"OUT={place}/build/module"]
            roots.builder(kernel.suite).run(argv, log, "rpcrdma.ko does not build", kernels.IDENTITY, place)
        found.add((place / "build/module/rpcrdma.ko").read_bytes())
    if len(found) != 1:
        raise progress.Failure("two builds of the same source differ")


def _leads_to_pages(package: Path) -> None:
    """Each link in the pages of the documentation is to a page that is there. Machines of the lab have no documents."""
    subprocess.run(["dpkg-deb", "-x", package, RUN / "documents"], check=True)
    pages = RUN / "documents/usr/share/doc/rpcrdma-doc/html"
    wrong = {f"{page.name}: {link}" for page in pages.glob("*.html") for link in re.findall(r'href="([^":#]+)', page.read_text())
             if not (pages / link).exists()}
    if wrong or not (pages / "index.html").exists():
        raise progress.Failure(f"links to nothing: {', '.join(sorted(wrong))}")


def _try_modules(results: Results, built: list[Path]) -> None:
    """The package of the module, and those for people beside it, on one machine."""
    tests = {"the module: installed, and the machine started again": installed, "the tools: installed and used": tools,
             "an outage: the status, and the log": outage, "the module: beside that of another kernel": beside,
             "the module: upgraded under a mount": upgraded,
             "the module: removed": removed}
    try:
        with system.just_installed(RUN / "machine", MACHINE) as machine:
            machine.offer(*built, packages.DIRECTORY / "Packages", packages.TREE / "debian/tests/tools")
            for name, test in tests.items():
                results.test(name, functools.partial(test, machine))
    except progress.Failure as failure:
        results.fail("a machine of Debian", failure.what)
        failure.tell_log()


def installed(machine: System) -> None:
    """apt finds the module in the directory that was built and installs it, nfsd listens and /etc/fstab is mounted when the machine
    starts, and it is this module."""
    machine.must(KNOWN, APT_SECONDS)
    machine.must(APT.format(f"install -y rpcrdma-modules-{machine.kernel}"), APT_SECONDS)
    machine.must(f"{SETTING} && {SERVES_ITSELF}")
    machine.restart()
    works(machine, ours=True)


def tools(machine: System) -> None:
    """apt installs the programs and the documentation; one knows a message, two the mount's connection, and one tests the mount,
    as if its ends were two machines."""
    machine.must(APT.format(f"install -y rpcrdma-tools rpcrdma-dbg-{machine.kernel} rpcrdma-doc"), APT_SECONDS)
    machine.must("sh -e /lab/tools")
    # The same that the module has said.
    machine.must("test $(rpcrdma-decode --version) = $(cat /sys/module/rpcrdma/version) && "
                 "dmesg | grep \"rpcrdma: version $(cat /sys/module/rpcrdma/version), \"")
    machine.must(DRGN)
    machine.must(STATUS)
    machine.must("cd /root && echo 'shift; exec sh -c \"$*\"' > /run/here && "
                 "SSH='sh /run/here' rpcrdma-on-device root@client root@server /mnt /srv", APT_SECONDS)
    report = machine.must("cat /root/rpcrdma-on-device.txt")
    if "FAILED" in report or "READ of 1 MiB" not in report:
        raise progress.Failure(f"the report on the mount says: {report}", log=machine.console)


def outage(machine: System) -> None:
    """While nfsd has no threads the status says so, with the reason, and afterwards the log has how long it was."""
    server = "192.0.2.1:20049"
    # The unit would take the mount along.
    machine.must("rpc.nfsd 0 && { setsid stat -f /mnt > /dev/null 2>&1 < /dev/null & }")
    for said in (f"rpcrdma-status | grep -A1 '^client *{server}' | grep 'no connection for .* s, it is refused'",
                 f"rpc.nfsd --rdma=20049 8 && dmesg | grep 'connection to {server} is up again after .* on rxe0/1'"):
        machine.must(f"for try in $(seq 300); do {said} && exit 0; sleep 0.5; done; rpcrdma-status >&2; exit 1", APT_SECONDS)


def beside(machine: System) -> None:
    """The package for another kernel is installed and purged, and takes nothing of this one along."""
    this, other = machine.kernel, f"{machine.kernel}-other"
    package = next(machine.share.glob("rpcrdma-modules-*"))
    _next(package, f"grep -rlF {this} next | grep -v '[.]ko$' | xargs sed -i '/^Depends:/d; s/{this}/{other}/g'; "
                   f"find next -depth -name '*{this}*' | while read -r path; do mv $path ${{path%{this}*}}{other}${{path##*{this}}}; done")
    machine.must(APT.format("install -y /lab/next.deb"), APT_SECONDS)
    machine.must(f"test -e /usr/lib/modules/{other}/updates/rpcrdma.ko")
    machine.must(APT.format(f"purge -y rpcrdma-modules-{other}"), APT_SECONDS)
    machine.must(f"test ! -e /usr/lib/modules/{other}/updates && dpkg --verify rpcrdma-modules-{this}")


def upgraded(machine: System) -> None:
    """apt brings the next version under a mount that is written to, which goes on; it is used from the next start on."""
    before = machine.must(f"od -An -tx1 {BUILD_ID}")
    _next_module(next(machine.share.glob("rpcrdma-modules-*")))
    machine.must(f"{WRITER} && {{ {WRITES}; }}")
    machine.must(APT.format("install -y /lab/next.deb"), APT_SECONDS)
    machine.must(f"rm /run/writes && ({WRITES}) && {STOP_WRITER}")
    works(machine, ours=True)
    if machine.must(f"od -An -tx1 {BUILD_ID}") != before:
        raise progress.Failure("the next version has come into a running machine", log=machine.console)
    machine.restart()
    works(machine, ours=True)
    found = bytes.fromhex(machine.must(f"od -An -v -tx1 {BUILD_ID}"))
    if found != NEXT_BUILD_ID:
        raise progress.Failure(f"the next version does not run: {found!r}", log=machine.console)


def removed(machine: System) -> None:
    """apt removes it, nothing of it is left, and the kernel's own module does the same at the next start."""
    machine.must("dpkg -L $(dpkg-query -W -f '${Package}' 'rpcrdma-modules-*') > /root/files")
    machine.must(APT.format("purge -y 'rpcrdma-modules-*'"), APT_SECONDS)
    machine.must("while read -r file; do test -d $file || ! test -e $file || { echo $file >&2; exit 1; }; done < /root/files")
    works(machine, ours=True)
    machine.must(f"test ! -e /usr/lib/modules/{machine.kernel}/updates && modinfo -n rpcrdma | grep -q /xprtrdma/")
    machine.restart()
    works(machine, ours=False)


def works(machine: System, ours: bool) -> None:
    """Fail unless files cross RDMA, by our module or by the kernel's own."""
    machine.must(f"test $(uname -r) = {machine.kernel} && systemctl is-active mnt.mount nfs-server && "
                 "dd if=/dev/urandom of=/mnt/file bs=1M count=4 conv=fsync status=none && "
                 "echo 3 > /proc/sys/vm/drop_caches && dd if=/mnt/file iflag=direct bs=1M status=none | cmp - /srv/file && "
                 "rm /mnt/file")
    mounted, listens, taint = (machine.must(command).strip() for command in (
        "grep ' /mnt ' /proc/mounts", "cat /proc/fs/nfsd/portlist", "cat /sys/module/rpcrdma/taint"))
    if ours:
        machine.must(f"test $(cat /proc/sys/sunrpc/rdma_slot_table_entries) = {SLOTS}")
    progress.line(f"  {machine.kernel}: {mounted.split(' ')[3]}")
    if "proto=rdma" not in mounted or "rdma 20049" not in listens or ("O" in taint) != ours:
        raise progress.Failure(f"mounted: {mounted}; nfsd listens to: {listens}; the module's taint is \"{taint}\"",
                               log=machine.console)


class Dkms:
    """A root in which apt works at the host's own speed, and what it has made as a machine."""

    def __init__(self, built: list[Path]) -> None:
        self.release = kernels.stock().release
        # Another one that the archive has headers of.
        self.other = self.release.replace("-amd64", "-rt-amd64")
        place = RUN / "dkms"
        subprocess.run(["cp", "-a", system.root().path, place], check=True)
        self.root = roots.Root(place)
        for package in built:
            shutil.copy(package, place / "srv")
        self.package = _named(built, "rpcrdma-dkms").name

    def built(self) -> None:
        """apt installs the source beside the kernel's headers, and DKMS builds the module of it and signs it."""
        self._apt(f"install -y --no-install-recommends ./{self.package} linux-headers-{self.release}")
        self._must_have(self.release)
        # Of the kernel's packages nothing has gone.
        self._output(f"dpkg --verify linux-modules-{self.release}")

    def built_for_another(self) -> None:
        """Another kernel comes with its headers, and has the module at once."""
        self._apt(f"install -y linux-image-{self.other} linux-headers-{self.other}")
        self._must_have(self.release)
        self._must_have(self.other)
        self._output(f"dpkg --verify linux-modules-{self.other}")

    def works(self) -> None:
        """Both kernels start, serve and mount with it; so does one with Secure Boot once DKMS's key is enrolled."""
        with system.from_root(RUN / "dkms-machine", self.root) as machine:
            machine.must(f"{SETTING} && {SERVES_ITSELF}")
            machine.restart()
            works(machine, ours=True)
            machine.restart(self.other)
            works(machine, ours=True)
            machine.restart(self.release, trusted=self.root.path / "var/lib/dkms/mok.pub")
            works(machine, ours=True)
            machine.must(REFUSES_UNSIGNED)

    def refuses(self) -> None:
        """Neither package comes to a kernel whose ib_core is another one, as MLNX_OFED puts it there; each says so in one line."""
        place = f"/lib/modules/{self.release}/updates/dkms"
        said = self._output(f"mkdir -p {place} && cp $(modinfo -k {self.release} -n ib_core) {place} && depmod {self.release}; "
                            f"/usr/src/rpcrdma-*/tools/prepare-tree --check {self.release} /var/tmp/none 2>&1 || true; "
                            "dpkg-deb --ctrl-tarfile rpcrdma-modules-*.deb | tar -xOf - ./preinst > /root/preinst && "
                            f"! sh /root/preinst install 2>&1 && rm {place}/ib_core.* && depmod {self.release}")
        lines = [line for line in said.splitlines() if f"{place}/ib_core" in line and "not the kernel's own ib_core" in line]
        if len(lines) != 2:
            raise progress.Failure(f"with another ib_core the packages say: {said}")

    def headers_alone(self) -> None:
        """Where a kernel's headers have the metadata of Rust, as those of Arch and Ubuntu, none of its source is used."""
        kernel = f"{kernels.SERIES}.99-headers"
        place, source = f"/usr/lib/modules/{kernel}", f"/usr/src/linux-source-{kernels.SERIES}.tar.xz"
        ours = "rpcrdma/$(dpkg-query -W -f '${Version}' rpcrdma-dkms)"
        found = self._output(f"mkdir {place} && cp -a /var/cache/rpcrdma-dkms/{self.release} {place}/build && cd {place}/build && "
                             f"sed -i s/{self.release}/{kernel}/ include/config/kernel.release include/generated/utsrelease.h && "
                             "find rust -name '*.rs' -delete && rm vmlinux && "
                             f"mv {source} /var/tmp && dkms build {ours} -k {kernel} > /dev/null && "
                             f"test ! -e /var/cache/rpcrdma-dkms/{kernel} && modinfo -F vermagic /var/lib/dkms/{ours}/{kernel}/*/module/*; "
                             f"dkms remove {ours} -k {kernel} > /dev/null; mv /var/tmp/linux-source-* /usr/src; rm -r {place}")
        if not found.startswith(f"{kernel} "):
            raise progress.Failure(f"what DKMS has built of headers alone is for {found}")

    def upgraded(self) -> None:
        """The next version takes the place of the one before, for both kernels."""
        version = self._output("dpkg-query -W -f '${Version}' rpcrdma-dkms")
        _next_source(self.root.path / "srv" / self.package, version)
        self._apt("install -y --no-install-recommends ./next.deb")
        status = self._output("dkms status rpcrdma")
        if f"/{version}," in status or any(f"/{version}+1, {kernel}, x86_64: installed" not in status
                                           for kernel in (self.release, self.other)):
            raise progress.Failure(f"DKMS has: {status}")

    def gives_way(self) -> None:
        """The package of the module takes its place, and the other kernel has its own module again, with which it mounts."""
        self._apt("install -y --no-install-recommends ./rpcrdma-modules-*.deb")
        in_tree = "/kernel/net/sunrpc/xprtrdma/rpcrdma.ko.xz"
        for kernel, place in ((self.release, "/updates/rpcrdma.ko"), (self.other, in_tree)):
            found = self._filename(kernel)
            if not found.endswith(place):
                raise progress.Failure(f"modprobe would take {found} for {kernel}")
        self._apt("purge -y rpcrdma-dkms")
        self._output(f"test -e /usr/lib/modules/{self.release}{in_tree}; test ! -e /var/lib/dkms/rpcrdma; "
                     "test ! -e /var/cache/rpcrdma-dkms; test ! -e /usr/lib/modules/*/updates/dkms")
        with system.from_root(RUN / "dkms-gone", self.root) as machine:
            machine.must(SERVES_ITSELF)
            machine.restart(self.other)
            works(machine, ours=False)

    def says_what_is_missing(self) -> None:
        """Where the kernel's source is missing, one line says so, and the package is installed all the same; once it comes, the
        module is built."""
        source = f"linux-source-{kernels.SERIES}"
        said = self._output(f"dpkg --purge rpcrdma-modules-{self.release} {source} > /dev/null; "
                            f"dpkg --force-depends --install ./{self.package} > /root/said 2>&1; grep -o 'cannot be built.*' /root/said; "
                            "dpkg-query -W -f '${db:Status-Status}' rpcrdma-dkms")
        *missing, status = said.splitlines()
        # For each kernel, once when it is registered, and once when it would be built.
        wanted = {f"cannot be built for {kernel}: install {source}={kernels.stock_version()}" for kernel in (self.release, self.other)}
        if set(missing) != wanted or status != "installed":
            raise progress.Failure(f"without the kernel's source DKMS says: {said}")
        progress.line(f"  {missing[0]}")
        self._apt(f"install -y {source}={kernels.stock_version()}")
        self._must_have(self.release)
        self._must_have(self.other)

    def _must_have(self, kernel: str) -> None:
        """Fail unless modprobe takes what DKMS has built and signed."""
        found, signer = self._filename(kernel), self._output(f"modinfo -k {kernel} -F signer rpcrdma")
        if "/updates/dkms/" not in found or "DKMS" not in signer:
            raise progress.Failure(f"modprobe would take {found} for {kernel}, signed by \"{signer}\"")

    def _filename(self, kernel: str) -> str:
        return self._output(f"modinfo -k {kernel} -F filename rpcrdma")

    def _apt(self, command: str) -> None:
        log = repository.fresh_log("dkms")
        with progress.step(f"apt-get {command}", log):
            self.root.run(["sh", "-c", APT.format(command)], log, "apt failed", directory=Path("/srv"))

    def _output(self, script: str) -> str:
        return self.root.output(["sh", "-ec", script], Path("/srv")).strip()


def _try_dkms(results: Results, built: list[Path]) -> None:
    """The package for DKMS; each test goes on from where the one before ended."""
    dkms = Dkms(built)
    tests = {"built for the kernel that is there": dkms.built, "built for a kernel that comes": dkms.built_for_another,
             "refuses the modules of another stack": dkms.refuses, "built of headers with the metadata of Rust": dkms.headers_alone,
             "both kernels started, and with Secure Boot": dkms.works, "upgraded": dkms.upgraded,
             "gives way to the package of the module": dkms.gives_way,
             "says what is missing": dkms.says_what_is_missing}
    for name, test in tests.items():
        if not results.test(f"DKMS: {name}", test):
            return


def _next_module(package: Path) -> None:
    """The package of the module as if it were of a later version, built otherwise."""
    note = package.parent / "note"
    note.write_bytes(NEXT_BUILD_ID)
    _next(package, "find next -name rpcrdma.ko -exec objcopy --update-section .note.gnu.build-id=note {} ';'; "
                   "sed -i 's/^Version: .*/&+1/' next/DEBIAN/control")


def _next_source(package: Path, version: str) -> None:
    """The package for DKMS as if it were of a later version."""
    _next(package, f"grep -rlF {version} next | xargs sed -i 's/{version}/&+1/g'; "
                   f"mv next/usr/src/rpcrdma-{version} next/usr/src/rpcrdma-{version}+1")


def _next(package: Path, change: str) -> None:
    """Put the package as next.deb beside itself, changed a little."""
    script = f"set -e; dpkg-deb -R {package.name} next; {change}; rm next/DEBIAN/md5sums; " \
             "dpkg-deb --root-owner-group -b next next.deb; rm -r next"
    roots.tool_root().run(["sh", "-c", script], packages.LOG, "no package of a later version", directory=package.parent)


def _named(built: list[Path], prefix: str) -> Path:
    return next(path for path in built if path.name.startswith(prefix))
