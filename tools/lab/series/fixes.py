"""The corrections of the kernel in Documentation/patches as mails, addressed to whom its own script names."""

import re
import shutil
from pathlib import Path

import progress
import repository
from guests import kernels, roots

DIRECTORY = repository.BUILD / "fixes"
SCRATCH = repository.BUILD / "fixes-git"
ASK = "perl scripts/get_maintainer.pl --nogit --nogit-fallback --norolestats {}"


def listed() -> list[Path]:
    """Those that the repository has."""
    return sorted(kernels.PATCHES.rglob("*.patch"))


def make(author: dict[str, str]) -> list[Path]:
    """The mails, each against the plain source of the stock kernel."""
    shutil.rmtree(DIRECTORY, ignore_errors=True)
    log = repository.fresh_log("fixes")
    with progress.step(f"making mails of {len(listed())} corrections of the kernel", log):
        return [_mail(patch, author, log) for patch in listed()]


def files(patch: Path) -> list[str]:
    """The files of the kernel that it changes."""
    return re.findall(r"^\+\+\+ b/(\S+)", patch.read_text(), re.MULTILINE)


def _mail(patch: Path, author: dict[str, str], log: Path) -> Path:
    """One, which git has made of a commit."""
    plain, root = kernels.stock().kdir, roots.tool_root()
    shutil.rmtree(SCRATCH, ignore_errors=True)
    for name in files(patch):
        (SCRATCH / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(plain / name, SCRATCH / name)
    subject, _, rest = patch.read_text().partition("\n\n")
    message = f"{subject.removeprefix('Subject: [PATCH] ')}\n\n{rest.partition(chr(10) + '---' + chr(10))[0]}\n"
    (SCRATCH / ".message").write_text(message)
    addressed = {field: root.output(["sh", "-c", f"{ASK.format(choice)} {' '.join(f'-f {name}' for name in files(patch))}"], plain)
                 for field, choice in (("to", "--no-l"), ("cc", "--no-m --no-r"))}
    options = [f"--{field}={line}" for field, lines in addressed.items() for line in lines.splitlines()]
    for argv in (["init", "-q", "-b", "fix"], ["add", *files(patch)], ["commit", "-q", "-m", "plain"],
                 ["apply", "--index", "--whitespace=error", str(patch)], ["commit", "-q", "-F", ".message"]):
        root.run(["git", *argv], log, f"{patch.name} could not be made a mail", author, SCRATCH)
    place = DIRECTORY / patch.parent.relative_to(kernels.PATCHES)
    return Path(root.output(["git", "format-patch", "-1", f"--output-directory={place}", *options], SCRATCH).strip())
