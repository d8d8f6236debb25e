"""`make series`: the module as patches for a kernel's tree, and corrections of the kernel as mails. `make check-series`: each applies,
builds and pleases the kernel's own tools."""

import functools
import posixpath
import shlex
import shutil
from pathlib import Path

import progress
import repository
from guests import kernels, roots
from guests.kernels import JOBS
from judges.kernel_tools import DECLARATIONS, DECLARING
from results import Results
from series import cover, fixes, patches, tree
from series.overlay import Overlay, no_warning, write
from series.patches import Patch

DIRECTORY = repository.BUILD / "series"
# A repository with those files of the kernel alone that the series changes.
SCRATCH = repository.BUILD / "series-git"
CHECKED = repository.BUILD / "series-check"
# The entry in MAINTAINERS is for a directory and comes with the first patch, and get_maintainer.pl is asked about each.
IGNORED = "FILE_PATH_CHANGES"
# Which commit a correction is of, only the history of the kernel says.
HISTORY = "MISSING_FIXES_TAG"
# A tree has no history here; so git knows of the files that are changed, and of nothing else.
GIT = "git --git-dir={} --work-tree=."
BUILD = """scripts/config -e SUNRPC_XPRT_RDMA_RUST -d SUNRPC_XPRT_RDMA_C -e RPCRDMA_KUNIT_TEST
make LLVM=1 olddefconfig
grep -qx CONFIG_SUNRPC_XPRT_RDMA_RUST=y .config
! grep -q RPCRDMA_KUNIT_TEST {home}/Kconfig || grep -qx CONFIG_RPCRDMA_KUNIT_TEST=y .config
make LLVM=1 -j{jobs} {home}/rpcrdma.ko
"""


def run() -> int:
    """Make it, and say where it is."""
    for mail in (*make(), *fixes.make(_author())):
        progress.line(str(mail))
    return 0


def make() -> list[Path]:
    """The mails, the letter first."""
    plain, series = kernels.stock().kdir, patches.read()
    shutil.rmtree(SCRATCH, ignore_errors=True)
    shutil.rmtree(DIRECTORY, ignore_errors=True)
    SCRATCH.mkdir(parents=True)
    log = repository.fresh_log("series")
    with progress.step(f"making {len(series)} patches", log):
        _git(log, ["init", "-q", "-b", "series"])
        _commit(log, tree.after(series, 0, plain), "plain", "")
        for count, patch in enumerate(series, 1):
            _commit(log, tree.after(series, count, plain), patch.subject, patch.body)
        letter = cover.subject_and_body(series, kernels.stock_version().partition("-")[0])
        _git(log, ["config", "branch.series.description", letter])
        _git(log, ["format-patch", "-q", "--cover-letter", "--cover-from-description=subject", "-o", str(DIRECTORY),
                   f"-{len(series)}"])
    return sorted(DIRECTORY.glob("*.patch"))


def _author() -> dict[str, str]:
    """Who has made this repository, as git takes it from the environment; the time is that of its last commit, so that
    the same files make the same mails."""
    name, address = repository.author()
    said = {"NAME": name, "EMAIL": address, "DATE": repository.git("log", "-1", "--format=%cI")}
    return {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in said.items()}


def _commit(log: Path, files: dict[str, str], subject: str, body: str) -> None:
    write(files, SCRATCH)
    _git(log, ["add", "--force", "."])
    _git(log, ["commit", "-q", "--signoff", "-m", f"{subject}\n\n{body}"])


def _git(log: Path, arguments: list[str]) -> None:
    roots.tool_root().run(["git", *arguments], log, "the series could not be made", _author(), SCRATCH)


def check() -> int:
    """One after the other, on the tree of a kernel."""
    results = Results()
    mails = make()[1:]
    overlay = Overlay(kernels.light(), CHECKED)
    overlay.begin()
    git = GIT.format(CHECKED / "git")
    overlay.run("series-begin", "series: a tree without it", f"""{git} init -q
{git} add --force {" ".join(tree.CHANGED)}
{_identity()} {git} commit -q -m plain
""")
    for mail, patch in zip(mails, patches.read(), strict=True):
        if not results.test(f"series: {patch.name} applies, and builds without a warning",
                            functools.partial(_build, overlay, mail, patch)):
            break
        results.test(f"series: checkpatch.pl on {patch.name}", functools.partial(_checkpatch, overlay, mail, patch))
    else:
        results.test("series: get_maintainer.pl finds the entry", functools.partial(_get_maintainer, overlay, mails))
    overlay.begin()
    for mail in fixes.make(_author()):
        results.test(f"fixes: {mail.stem} applies, builds, pleases checkpatch.pl, and has a list to go to",
                     functools.partial(_fixes, overlay, mail))
    return results.finish()


def _fixes(overlay: Overlay, mail: Path) -> None:
    """One correction alone, on the tree of a kernel."""
    objects = " ".join(str(Path(name).with_suffix(".o")) for name in fixes.files(mail) if name.endswith(".c"))
    # A kernel of ours may have it already.
    log = overlay.run(f"fixes-{mail.stem}", f"fixes: {mail.stem}", f"""perl scripts/checkpatch.pl --strict --ignore={HISTORY} {mail}
grep -q '^Cc: .*@vger.kernel.org' {mail}
patch -p1 -R --dry-run -s -f < {mail} > /dev/null || {{ patch -p1 -s < {mail} && new=1; }}
make LLVM=1 -j{JOBS} {objects}
test -z "$new" || patch -p1 -R -s < {mail}
""")
    no_warning(log)


def _identity() -> str:
    return " ".join(f"{name}={shlex.quote(value)}" for name, value in _author().items())


def _build(overlay: Overlay, mail: Path, patch: Patch) -> None:
    apply = f"{_identity()} {GIT.format(CHECKED / 'git')} am -q --whitespace=error {mail}\n"
    build = BUILD.format(home=tree.HOME, jobs=JOBS)
    log = overlay.run(f"series-{patch.name}", f"series: {patch.subject}", apply + build + tree.RUSTFMT)
    no_warning(log)
    left_out = {name for name in fixes.files(mail) if name.endswith((".rs", ".c", ".h"))} - _compiled(overlay)
    if left_out:
        raise progress.Failure(f"not compiled: {', '.join(sorted(left_out))}", log=log)


def _compiled(overlay: Overlay) -> set[str]:
    """What the compilers have read of the module, as Kbuild has written it down."""
    return {posixpath.normpath(word) for path in (overlay.path / "upper" / tree.HOME).rglob(".*.cmd")
            for word in path.read_text().split()}


def _checkpatch(overlay: Overlay, mail: Path, patch: Patch) -> None:
    declaring = any(DECLARING.fullmatch(posixpath.basename(name)) for name in fixes.files(mail))
    ignored = [IGNORED, *([DECLARATIONS] if declaring else [])]
    # Its exit status also counts matters of taste, which it looks for below net/.
    overlay.run(f"series-checkpatch-{patch.name}", f"series: checkpatch.pl, {patch.name}",
                f"""said=$(perl scripts/checkpatch.pl --terse --show-types --ignore={",".join(ignored)} {mail}) || {{
echo "$said" | grep -v CHECK:
echo "$said" | grep -q '^total: 0 errors, 0 warnings'
}}
""")


def _get_maintainer(overlay: Overlay, mails: list[Path]) -> None:
    """For each patch it names whom the entry names."""
    _, address = repository.author()
    ask = "perl scripts/get_maintainer.pl --nogit --nogit-fallback --norolestats"
    overlay.run("series-get-maintainer", "series: get_maintainer.pl",
                "".join(f"{ask} {mail} | grep -F '<{address}>'\n" for mail in mails))
