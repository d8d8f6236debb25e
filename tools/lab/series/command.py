"""`make series`: the module as patches for a kernel's tree, and corrections of the kernel as mails."""

import shlex
import shutil
from pathlib import Path

import progress
import repository
from guests import kernels, roots
from series import cover, fixes, patches, tree
from series.overlay import write

DIRECTORY = repository.BUILD / "series"
# A repository with those files of the kernel alone that the series changes.
SCRATCH = repository.BUILD / "series-git"


def run() -> int:
    """Make it, and say where it is."""
    for mail in (*make(), *fixes.make(author())):
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


def author() -> dict[str, str]:
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
    roots.tool_root().run(["git", *arguments], log, "the series could not be made", author(), SCRATCH)


def identity() -> str:
    """The same for a shell."""
    return " ".join(f"{name}={shlex.quote(value)}" for name, value in author().items())
