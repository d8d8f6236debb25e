"""The packages, as they are built; lintian has nothing to say."""

import re
import subprocess
from pathlib import Path

import pytest

import progress
import repository
from guests import kernels, roots
from upgrades import RUN, named

pytestmark = pytest.mark.xdist_group("packages")


def test_module_is_the_same_wherever_it_is_built() -> None:
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


def test_documents_lead_to_each_other_as_pages(built: list[Path]) -> None:
    """Each link in the pages of the documentation is to a page that is there. Machines of the lab have no documents."""
    subprocess.run(["dpkg-deb", "-x", named(built, "rpcrdma-doc"), RUN / "documents"], check=True)
    pages = RUN / "documents/usr/share/doc/rpcrdma-doc/html"
    wrong = {f"{page.name}: {link}" for page in pages.glob("*.html") for link in re.findall(r'href="([^":#]+)', page.read_text())
             if not (pages / link).exists()}
    if wrong or not (pages / "index.html").exists():
        raise progress.Failure(f"links to nothing: {', '.join(sorted(wrong))}")


def test_nothing_is_left_of_programs_and_documents(built: list[Path]) -> None:
    """piuparts installs and purges those that need no kernel; the others have machines (test_module_package, test_dkms)."""
    log = repository.fresh_log("piuparts")
    packages = [str(named(built, name)) for name in ("rpcrdma-tools_", "rpcrdma-doc_")]
    with progress.step("piuparts", log):
        roots.made("piuparts", ["piuparts", "debootstrap"], []).run(
            ["piuparts", f"--distribution={roots.SUITE}", "--no-eatmydata", *packages], log, "piuparts found something")
