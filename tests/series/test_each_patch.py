"""The module as patches: each applies, builds, and pleases the kernel's own tools."""

import posixpath
from pathlib import Path

import pytest

import progress
import repository
from guests import kernels
from guests.kernels import JOBS
from judges.kernel_tools import DECLARATIONS, DECLARING
from series import command, fixes, patches, tree
from series.overlay import Overlay, no_warning
from series.patches import Patch

pytestmark = pytest.mark.xdist_group("series")
in_turn = pytest.mark.one_after_the_other
EACH = pytest.mark.parametrize("patch", patches.read(), ids=lambda patch: patch.name)
HERE = repository.BUILD / "series-check"
# The entry in MAINTAINERS is for a directory and comes with the first patch, and get_maintainer.pl is asked about each.
IGNORED = "FILE_PATH_CHANGES"
# A tree has no history here; so git knows of the files that are changed, and of nothing else.
GIT = f"git --git-dir={HERE / 'git'} --work-tree=."
BUILD = f"""scripts/config -e SUNRPC_XPRT_RDMA_RUST -d SUNRPC_XPRT_RDMA_C -e RPCRDMA_KUNIT_TEST
make LLVM=1 olddefconfig
grep -qx CONFIG_SUNRPC_XPRT_RDMA_RUST=y .config
! grep -q RPCRDMA_KUNIT_TEST {tree.HOME}/Kconfig || grep -qx CONFIG_RPCRDMA_KUNIT_TEST=y .config
make LLVM=1 -j{JOBS} {tree.HOME}/rpcrdma.ko
"""


@pytest.fixture(scope="module")
def mails() -> dict[Patch, Path]:
    return dict(zip(patches.read(), command.make()[1:], strict=True))


@pytest.fixture(scope="module")
def overlay() -> Overlay:
    """A tree without any of them."""
    made = Overlay(kernels.light(), HERE)
    made.begin()
    made.run("series-begin", "series: a tree without it", f"""{GIT} init -q
{GIT} add --force {" ".join(tree.CHANGED)}
{command.identity()} {GIT} commit -q -m plain
""")
    return made


@in_turn
@EACH
def test_builds(overlay: Overlay, mails: dict[Patch, Path], patch: Patch) -> None:
    """It applies on those before, and builds without a warning. With KUnit suites once they are there; each source file is
    compiled, and the kernel's rustfmt changes no line."""
    mail = mails[patch]
    apply = f"{command.identity()} {GIT} am -q --whitespace=error {mail}\n"
    log = overlay.run(f"series-{patch.name}", f"series: {patch.subject}", apply + BUILD + tree.RUSTFMT)
    no_warning(log)
    left_out = {name for name in fixes.files(mail) if name.endswith((".rs", ".c", ".h"))} - _compiled(overlay)
    if left_out:
        raise progress.Failure(f"not compiled: {', '.join(sorted(left_out))}", log=log)


def _compiled(overlay: Overlay) -> set[str]:
    """What the compilers have read of the module, as Kbuild has written it down."""
    return {posixpath.normpath(word) for path in (overlay.path / "upper" / tree.HOME).rglob(".*.cmd")
            for word in path.read_text().split()}


@in_turn
def test_get_maintainer_finds_the_entry(overlay: Overlay, mails: dict[Patch, Path]) -> None:
    """For each patch it names whom the entry names."""
    _, address = repository.author()
    ask = "perl scripts/get_maintainer.pl --nogit --nogit-fallback --norolestats"
    overlay.run("series-get-maintainer", "series: get_maintainer.pl",
                "".join(f"{ask} {mail} | grep -F '<{address}>'\n" for mail in mails.values()))


@EACH
def test_checkpatch_has_nothing_to_say(overlay: Overlay, mails: dict[Patch, Path], patch: Patch) -> None:
    mail = mails[patch]
    declaring = any(DECLARING.fullmatch(posixpath.basename(name)) for name in fixes.files(mail))
    ignored = [IGNORED, *([DECLARATIONS] if declaring else [])]
    # Its exit status also counts matters of taste, which it looks for below net/.
    overlay.run(f"series-checkpatch-{patch.name}", f"series: checkpatch.pl, {patch.name}",
                f"""said=$(perl scripts/checkpatch.pl --terse --show-types --ignore={",".join(ignored)} {mail}) || {{
echo "$said" | grep -v CHECK:
echo "$said" | grep -q '^total: 0 errors, 0 warnings'
}}
""")
