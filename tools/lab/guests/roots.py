"""Debian trixie root file systems: one with the tools, one that the guests run.

mkosi is not for these: what it adds to mmdebstrap are disks, which mke2fs makes of a directory in one command; boot loaders,
which QEMU needs none of; and containers, for which it wants systemd on the host.
"""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import cache
import progress
import repository
from guests.arch import AMD64, ARM64, Arch

SUITE = "trixie"

TOOLS = (
    # What a 7.3 kernel with Rust is built with.
    "build-essential bc bison flex libelf-dev libdw-dev libssl-dev rustc rust-src rustfmt rust-clippy bindgen "
    "clang lld llvm libclang-dev pahole kmod cpio rsync python3 xz-utils zstd "
    # The host tests, the machines, and what reads their traffic.
    "cargo qemu-system-x86 e2fsprogs tshark ca-certificates git mypy "
    # The other architecture.
    "gcc-aarch64-linux-gnu qemu-system-arm "
    # Packages of the module.
    "debhelper dh-dkms lintian"
).split()

# Of those, what a kernel of another suite is prepared with for modules, and they are built with.
BUILDER = ("build-essential bc bison flex libelf-dev libdw-dev libssl-dev rustc rust-src bindgen libclang-dev pahole kmod cpio "
           "rsync python3 xz-utils zstd").split()

GUEST = (
    "qemu-guest-agent iproute2 kmod nfs-common nfs-kernel-server rpcbind rdma-core ibverbs-utils python3 procps "
    "util-linux mount attr acl nfs4-acl-tools fio strace python3-pyverbs krb5-kdc krb5-admin-server krb5-user "
    "busybox-static"
).split()

# The kernel packages are in trixie-backports; the line for it is the one mmdebstrap chose for trixie.
BACKPORTS = (
    r"""sed -n 's/^\(deb .*\) trixie main$/\1 trixie-backports main/p' "$1/etc/apt/sources.list" """
    r"""> "$1/etc/apt/sources.list.d/backports.list" """
)

# What is not even in unstable.
EXPERIMENTAL = BACKPORTS.replace(f"{SUITE}-backports", "experimental").replace(SUITE, "unstable").replace("backports", "experimental")

# What maintainer scripts would have done, as far as a guest needs it: in a root of another architecture none has run.
UNCONFIGURED = r"""set -e
cd "$1"
cp usr/share/base-passwd/passwd.master etc/passwd
cp usr/share/base-passwd/group.master etc/group
cp usr/share/libc-bin/nsswitch.conf usr/share/nfs-common/conffiles/*.conf etc/
echo '_rpc:x:100:65534::/run/rpcbind:/usr/sbin/nologin
statd:x:101:65534::/var/lib/nfs:/usr/sbin/nologin' >> etc/passwd
: > etc/exports
ln -s ../proc/self/mounts etc/mtab
ln -s mawk usr/bin/awk
"""

TRUST = "/etc/ssl/certs/ca-certificates.crt"

# The variables of the caller that mean something in the root, too; others would change what is built.
KEPT = ("TERM", "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")


@dataclass(frozen=True)
class Root:
    """A root file system in the cache."""

    path: Path

    def command(self, argv: list[str], environment: dict[str, str] | None = None,
                directory: Path | None = None) -> list[str]:
        """The host command that runs `argv` in this root, with the repository and the cache at their own paths.

        The processes live in a PID namespace of their own that ends with the host command.
        """
        binds = [repository.ROOT, cache.directory()]
        for bind in binds:
            (self.path / bind.relative_to("/")).mkdir(parents=True, exist_ok=True)
        (self.path / "etc/resolv.conf").touch()
        script = ["set -e", 'r="$1"; shift', 'mount -t proc proc "$r/proc"', 'mount --rbind /dev "$r/dev"',
                  'mount --bind /sys "$r/sys"', 'mount -t tmpfs tmpfs "$r/tmp"', 'mount -t tmpfs tmpfs "$r/run"',
                  'mount --bind /etc/resolv.conf "$r/etc/resolv.conf"']
        # The host's idea of whom to trust, which may include a network's own authority.
        script.append(f'if [ -s {TRUST} ] && [ -e "$r{TRUST}" ]; then mount --bind {TRUST} "$r{TRUST}"; fi')
        for bind in binds:
            script += [f'mkdir -p "$r{bind}"', f'mount --bind "{bind}" "$r{bind}"']
        variables = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root",
                     "LC_ALL": "C.UTF-8", **(environment or {})}
        settings = [f"{name}={value}" for name, value in variables.items()]
        settings += [f"{name}={os.environ[name]}" for name in KEPT if name in os.environ]
        enter = ["/usr/bin/env", "-i", *settings, "/bin/sh", "-c", 'cd "$1"; shift; exec "$@"', "sh",
                 str(directory or repository.ROOT), *argv]
        script.append('exec chroot "$r" "$@"')
        # Nothing of it outlives this process, however that ends: the next run begins anew.
        return ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c",
                "\n".join(script), "sh", str(self.path), *enter]

    def run(self, argv: list[str], log: Path, what: str, environment: dict[str, str] | None = None,
            directory: Path | None = None, todo: str = "") -> None:
        """Run `argv` in this root with its output in `log`; a status other than 0 is a Failure."""
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            output.write(f"$ {' '.join(argv)}\n".encode())
            output.flush()
            status = subprocess.run(self.command(argv, environment, directory), stdin=subprocess.DEVNULL,
                                    stdout=output, stderr=subprocess.STDOUT, check=False).returncode
        if status != 0:
            raise progress.Failure(f"{what} (status {status})", todo, log)

    def output(self, argv: list[str], directory: Path | None = None) -> str:
        """What `argv` prints in this root."""
        done = subprocess.run(self.command(argv, directory=directory), stdin=subprocess.DEVNULL, check=False,
                              capture_output=True, text=True)
        if done.returncode != 0:
            raise progress.Failure(f"`{' '.join(argv[:3])}` failed in the tool root (status {done.returncode}): "
                              f"{done.stderr.strip()[-500:]}")
        return done.stdout


def tool_root() -> Root:
    """The root with the compilers, QEMU and tshark: the same versions on every host."""
    _require_root_user()
    # The package lists stay, because the kernel packages are looked up in them.
    options = [f"--architectures={AMD64.debian},{ARM64.debian}", "--skip=cleanup/apt/lists",
               f"--setup-hook={BACKPORTS}"]
    return made("tools", TOOLS, options)


def builder(suite: str) -> Root:
    """The root with the compilers and the package lists of a suite; unstable's has those of experimental, too."""
    if suite == SUITE:
        return tool_root()
    _require_root_user()
    more = [f"--setup-hook={EXPERIMENTAL}"] if suite == "unstable" else []
    # A mirror that is late is good enough to see which kernels there are.
    late = '--aptopt=Acquire::Check-Valid-Until "false"'
    return made(f"builder-{suite}", BUILDER, ["--skip=cleanup/apt/lists", late, *more], suite)


def packager() -> Root:
    """The root with what the source package says that its build needs, and no more."""
    _require_root_user()
    control = (repository.ROOT / "debian/control").read_text().split("\n\n")[0]
    wanted = "".join(line for line in control.splitlines(keepends=True) if line.startswith(("Source", "Maintainer", "Build-Depends")))
    hook = (f"mkdir -p $1/tmp/source/debian; cat > $1/tmp/source/debian/control <<'E'\n{wanted}\nPackage: any\nArchitecture: any\nE\n"
            "chroot $1 apt-get build-dep -y --no-install-recommends /tmp/source")
    return made("packager", ["build-essential"], [f"--customize-hook={hook}"])


def guest_root(arch: Arch) -> Root:
    """The root that the guests' disk image is made from."""
    if arch == AMD64:
        return made("guest", GUEST, [])
    # The host cannot run its programs, so they are only unpacked.
    options = [f"--architectures={arch.debian}", "--include=?essential", f"--extract-hook={UNCONFIGURED}"]
    return made(f"guest{arch.suffix}", GUEST, options, variant="extract")


def made(name: str, packages: list[str], options: list[str], suite: str = SUITE, variant: str = "minbase") -> Root:
    """A root with these packages."""
    lean = [f"--dpkgopt=path-exclude=/usr/share/{part}/*" for part in ("doc", "man", "locale", "info")]
    options = [f"--variant={variant}", *lean, *options, f"--include={','.join(packages)}", suite]

    def make(path: Path) -> None:
        _host_package("mmdebstrap")
        log = cache.logs() / f"root-{name}.log"
        with progress.step(f"making the {name} root file system from Debian {suite} ({len(packages)} packages)", log):
            with log.open("wb") as output:
                argv = ["setpriv", "--pdeathsig", "KILL", "mmdebstrap", *options, str(path)]
                status = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=output,
                                        stderr=subprocess.STDOUT, check=False).returncode
            if status != 0:
                raise progress.Failure(f"mmdebstrap could not make the {name} root", "see that Debian's archive is in "
                                  "reach (apt-get update) and that debian-archive-keyring is current", log)

    return Root(cache.entry(f"root-{name}", "\n".join(options), make))


def _require_root_user() -> None:
    if os.geteuid() != 0:
        raise progress.Failure("the test machines need root (for chroot and mount namespaces)", "run the same as root")


def _host_package(name: str) -> None:
    """Install a package of the host that is missing; its program has the package's name."""
    with cache.lock("host-packages", "installs packages of the host"):
        if shutil.which(name):
            return
        log = cache.logs() / "host-packages.log"
        with progress.step(f"installing {name}", log), log.open("wb") as output:
            for argv in (["apt-get", "update"], ["apt-get", "install", "-y", "--no-install-recommends", name]):
                status = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                                        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"}, check=False).returncode
                if status != 0:
                    raise progress.Failure(f"{' '.join(argv)} failed", f"install the package {name} by hand", log)
