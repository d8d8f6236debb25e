"""A kernel's tree with files laid over it; the tree itself stays as it is."""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import progress
import repository
from guests import kernels, roots
from guests.kernels import Kernel

WARNING = re.compile(r"\bwarning\b", re.IGNORECASE)


@dataclass(frozen=True)
class Overlay:
    """The tree of a kernel, and the directory with what is over it."""

    kernel: Kernel
    path: Path

    def begin(self) -> None:
        """Nothing is laid over it yet."""
        shutil.rmtree(self.path, ignore_errors=True)
        for name in ("upper", "work"):
            (self.path / name).mkdir(parents=True)

    def lay(self, files: dict[str, str]) -> None:
        """Put these files into the tree."""
        write(files, self.path / "upper")

    def run(self, name: str, how: str, script: str) -> Path:
        """Run a script in the tree; its log."""
        log, kdir = repository.fresh_log(name), self.kernel.kdir
        options = f"lowerdir={kdir},upperdir={self.path}/upper,workdir={self.path}/work"
        lay = f"mount -t overlay overlay -o {options} {kdir} && cd {kdir}"
        with progress.step(how, log):
            roots.tool_root().run(["sh", "-ec", f"{lay}\n{script}"], log, f"{how}: something failed", kernels.IDENTITY)
        return log


def write(files: dict[str, str], directory: Path) -> None:
    """Files of these names and texts below a directory."""
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def no_warning(log: Path) -> None:
    """Fail if the log has any."""
    found = [line for line in log.read_text(errors="replace").splitlines() if WARNING.search(line)]
    if found:
        raise progress.Failure(f"{len(found)} warnings, such as {found[0].strip()}", log=log)
