"""What the kernel's own tools say of the source, which has to be nothing."""

import re
import shlex
from pathlib import Path

import progress
import repository
from guests import kernels, module, roots

C = "rust/kapi/bindings"
# What is right for most macros, and impossible for those that stand for declarations: nothing can be put around these.
DECLARATIONS = "COMPLEX_MACRO,MULTISTATEMENT_MACRO_USE_DO_WHILE"
DECLARING = re.compile(r"trace\w*\.h|layout\.c")
# Objects of the two crates, the one that is used first.
CRATES = ("xdr/src/lib.o", "rust/rpcrdma_main.o")


def checkpatch() -> None:
    """Fail if scripts/checkpatch.pl has anything to say about a file of the module."""
    log = repository.fresh_log("checkpatch")
    sources = [path for directory in ("rust", "kunit", "xdr/src") for path in (repository.ROOT / directory).rglob("*")
               if path.suffix in (".c", ".h", ".rs")]
    sources += [repository.ROOT / "Kbuild", repository.ROOT / "Kconfig"]
    with progress.step("host: scripts/checkpatch.pl", log):
        declaring = [path for path in sources if DECLARING.fullmatch(path.name)]
        _checkpatch(log, [path for path in sources if path not in declaring])
        _checkpatch(log, declaring, f"--ignore={DECLARATIONS}")


def clippy() -> None:
    """Fail if clippy, called as the compiler was, warns of anything."""
    # Not the kernel's configuration, which lets functions be longer.
    _once_more("clippy-driver", ["--emit=metadata", "-Wclippy::too_many_lines"], {"CLIPPY_CONF_DIR": str(repository.ROOT)})


def rustdoc() -> None:
    """The same for rustdoc."""
    _once_more("rustdoc", ["--document-private-items"], {})


def _once_more(program: str, options: list[str], more: dict[str, str]) -> None:
    """Call a program as the compiler was called for both crates, with the suites and self-checks. A warning is an error."""
    out = module.build(kernels.debug(), module.KUNIT).parent
    log = repository.fresh_log(program)
    with progress.step(f"host: {program}", log):
        for crate in CRATES:
            variables, arguments = _compiled(out / crate)
            variables |= {"RUSTC_BOOTSTRAP": "1", "RPCRDMA_BINDINGS": str(out / C), **more}
            argv = [program, *arguments, *options, "-Dwarnings", "--out-dir", str(out / program)]
            roots.tool_root().run(argv, log, f"{program} found something", variables, out)


def _compiled(target: Path) -> tuple[dict[str, str], list[str]]:
    """How Kbuild called rustc for an object: the variables, and the arguments that others take as well."""
    saved = target.with_name(f".{target.name}.cmd").read_text().partition("\n")[0].partition(" := ")[2]
    before, found, after = saved.partition(" rustc ")
    if not found:
        raise progress.Failure(f"{target}: Kbuild did not call rustc", f"see {target.with_name(f'.{target.name}.cmd')}")
    variables = dict(word.split("=", 1) for word in shlex.split(before))
    arguments: list[str] = []
    words = iter(shlex.split(after))
    for word in words:
        if word == "--out-dir":
            next(words)
        # rustdoc ends with a fault of its own where it reads what was renamed.
        elif not word.startswith(("--emit=", "--remap-path-prefix=")):
            arguments.append(word)
    return variables, arguments


def _checkpatch(log: Path, paths: list[Path], *options: str) -> None:
    argv = ["perl", str(kernels.debug().kdir / "scripts/checkpatch.pl"), "--no-tree", "--terse", "--show-types",
            "--no-summary", *options, "-f", *map(str, sorted(paths))]
    roots.tool_root().run(argv, log, "checkpatch.pl found something")
