"""The corrections of the kernel as mails: each applies alone, builds, pleases checkpatch.pl, and has a list to go to."""

from pathlib import Path

import pytest

import repository
from guests import kernels
from guests.kernels import JOBS
from series import command, fixes
from series.overlay import Overlay, no_warning

pytestmark = pytest.mark.xdist_group("series")
# Which commit a correction is of, only the history of the kernel says.
HISTORY = "MISSING_FIXES_TAG"
LISTED = fixes.listed()


@pytest.fixture(scope="module")
def mails() -> dict[Path, Path]:
    return dict(zip(LISTED, fixes.make(command.author()), strict=True))


@pytest.fixture(scope="module")
def overlay() -> Overlay:
    made = Overlay(kernels.light(), repository.BUILD / "fixes-check")
    made.begin()
    return made


@pytest.mark.parametrize("patch", LISTED, ids=lambda patch: patch.stem)
def test_mail(overlay: Overlay, mails: dict[Path, Path], patch: Path) -> None:
    mail = mails[patch]
    objects = " ".join(str(Path(name).with_suffix(".o")) for name in fixes.files(mail) if name.endswith(".c"))
    # A kernel of ours may have it already.
    log = overlay.run(f"fixes-{mail.stem}", f"fixes: {mail.stem}", f"""perl scripts/checkpatch.pl --strict --ignore={HISTORY} {mail}
grep -q '^Cc: .*@vger.kernel.org' {mail}
if ! patch -p1 -R --dry-run -s -f < {mail} > /dev/null; then
patch -p1 -s < {mail}
new=1
fi
make LLVM=1 -j{JOBS} {objects}
test -z "$new" || patch -p1 -R -s < {mail}
""")
    no_warning(log)
