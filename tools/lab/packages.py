"""`make deb`: Debian packages of the module, for the stock kernel and to be built by DKMS, of its tools, and of its documentation."""

import re
import shutil
from pathlib import Path

import progress
import repository
from guests import kernels, roots
from guests.kernels import Kernel

DIRECTORY = repository.BUILD / "deb"
# What does not depend on a kernel, and the module for one.
TREE, MODULES = DIRECTORY / "rpcrdma", DIRECTORY / "rpcrdma-modules"
# Of the other source package's directory, what the module's has, too.
SHARED = ("60-rpcrdma.rules", "copyright", "source/format")
LOG = repository.BUILD / "logs/deb.log"
# lintian's tags that fail the build, and one that no medium of today makes a mistake: names have the versions of module and kernel.
FAILING, SUPPRESSED = "error,warning", "package-has-long-file-name"


def run() -> int:
    """Build the packages, have lintian look at them, and print where they are."""
    for package in build():
        progress.line(str(package))
    progress.line(f"for apt: deb [trusted=yes] file:{DIRECTORY} ./")
    return 0


def build() -> list[Path]:
    """The packages of the tree as it is, in a directory that apt can use as a repository."""
    LOG.parent.mkdir(parents=True, exist_ok=True)
    LOG.unlink(missing_ok=True)
    shutil.rmtree(DIRECTORY, ignore_errors=True)
    kernel, tools = kernels.stock(), roots.tool_root()
    repository.copy(TREE)
    _name_version(TREE / "debian/changelog", repository.version())
    repository.copy(MODULES)
    _fill_in(MODULES / "debian", kernel)
    with progress.step("building the packages", LOG):
        _build(roots.packager(), TREE, "source,binary")
        _build(tools, MODULES, "binary")
    with progress.step("lintian", LOG):
        changes = [str(path) for path in DIRECTORY.glob("*.changes")]
        tools.run(["lintian", "--allow-root", "--info", f"--fail-on={FAILING}", f"--suppress-tags={SUPPRESSED}", *changes], LOG,
                  "lintian found something")
    tools.run(["sh", "-c", "dpkg-scanpackages --multiversion . > Packages"], LOG, "no index of the packages", directory=DIRECTORY)
    return sorted(DIRECTORY.glob("*.deb"))


def _build(root: roots.Root, tree: Path, what: str) -> None:
    root.run(["dpkg-buildpackage", "-us", "-uc", f"--build={what}", f"-j{kernels.JOBS}"], LOG, "the packages could not be built",
             kernels.IDENTITY, tree)


def _name_version(changelog: Path, version: str, suite: str = "unstable") -> None:
    """Give the newest entry of a changelog the version of the tree, and the time of its commit."""
    text = re.sub(r"^(\S+) \(.*?\) \S+;", rf"\1 ({version}) {suite};", changelog.read_text(), count=1)
    date = repository.git("log", "-1", "--format=%cD")
    changelog.write_text(re.sub(r"(?m)^( -- .*>  ).*$", rf"\g<1>{date}", text, count=1))


def _fill_in(debian: Path, kernel: Kernel) -> None:
    """Make the source package of the module for one kernel of what is in `modules`."""
    given, named = repository.ROOT / "debian", repository.version()
    shutil.rmtree(debian)
    for name in SHARED:
        (debian / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(given / name, debian / name)
    said = {"OWN_STACK": (repository.ROOT / "tools/own-stack").read_text().rstrip(), "RELEASE": kernel.release,
            "KERNEL_VERSION": kernels.stock_version()}
    for template in sorted((given / "modules").iterdir()):
        text = template.read_text()
        for name, value in said.items():
            text = text.replace(f"@{name}@", value)
        script = template.name.startswith(("pre", "post"))
        target = debian / (f"rpcrdma-modules-{kernel.release}.{template.stem}" if script else template.name.removesuffix(".in"))
        target.write_text(text)
        target.chmod(template.stat().st_mode)
    # Of the same source there may be several, each for another build of the kernel.
    (debian / "changelog").write_text((given / "changelog").read_text().replace("rpcrdma ", "rpcrdma-modules ", 1))
    _name_version(debian / "changelog", f"{named}+{kernels.stock_version().replace('-', '.')}", f"{kernel.suite}-backports")
    (debian / "kernel.mk").write_text(f"KDIR = {kernel.kdir}\nRELEASE = {kernel.release}\nMODULE_VERSION = {named}\n")
