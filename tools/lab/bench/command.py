"""`make bench`: what our module costs beside the in-tree one, counted in instructions, messages and bytes."""

import hashlib
import os
import platform
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import progress
import repository
import settings
from bench import (boot as bench_boot, mixed as bench_mixed, plan as bench_plan, report as bench_report,
                   tools as bench_tools)
from bench.boot import Boot
from bench.measured import Measured
from bench.tools import Programs
from guests import kernels, module, pair, roots
from guests.pair import IN_TREE, OURS
from results import Results

# Where pairs of two guests are measured, by set.
MIXED = {"default": ("rxe",), "quick": (), "full": ("rxe", "siw")}


def run() -> int:
    """Measure what BENCH chooses, print and write it, and the last line."""
    chosen = settings.choice("BENCH", tuple(bench_plan.SETS))
    began = time.monotonic()
    programs, ours = bench_tools.build(), module.build(kernels.stock())
    modules = {OURS: ours.read_bytes(), IN_TREE: kernels.stock().in_tree_module()}
    measured, results, used = Measured(), Results(), versions(chosen, modules, programs)
    with pair.alone():
        _boot_all(results, measured, bench_boot.boots(chosen), modules, programs)
        if MIXED[chosen]:
            # They take long: what is there stays when somebody ends the run.
            bench_report.write(measured, used)
        for device in MIXED[chosen]:
            results.test(f"{device}, two guests",
                         lambda: measured.mixed.extend(bench_mixed.measure(results, device, ours, programs)))
    bench_report.tell(measured)
    for name, wrongs in (("the same build costs the same", measured.differences()),
                         ("both modules are asked for the same", measured.unequal())):
        for wrong in wrongs:
            results.fail(name, wrong)
    directory = bench_report.write(measured, used)
    progress.line(f"numbers and charts are in {directory}; it took {progress.duration(time.monotonic() - began)}")
    return results.finish()


def _boot_all(results: Results, measured: Measured, wanted: list[Boot], modules: dict[str, bytes],
              programs: Programs) -> None:
    """Run the boots side by side: a clock of instructions does not mind what else the host does."""
    with ThreadPoolExecutor(max_workers=kernels.JOBS) as pool:
        for found, costs in pool.map(lambda boot: bench_boot.measure(boot, modules[boot.whose], programs), wanted):
            results.include(found)
            measured.include(costs)


def versions(chosen: str, modules: dict[str, bytes], programs: Programs) -> dict[str, str]:
    """What was measured with what."""
    root, kernel = roots.tool_root(), kernels.stock()
    found = {"BENCH": chosen, "tree": _commit(), "kernel": kernel.release, "kernel's cache entry": kernel.path.name,
             "tool root": root.path.name, "host": f"{platform.release()}, {os.cpu_count()} processors"}
    for program in ("qemu-system-x86_64", "rustc", "gcc", "clang"):
        found[program] = root.output([program, "--version"]).splitlines()[0]
    for whose, content in modules.items():
        found[f"rpcrdma.ko ({whose})"] = hashlib.sha256(content).hexdigest()
    drivers = [kernels.driver(kernel, device) for device in kernels.DRIVERS]
    for path in (programs.plugin, programs.workload, *drivers):
        found[path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def _commit() -> str:
    """The commit of the tree, and whether it was changed since."""
    argv = ["git", "-C", str(repository.ROOT), "describe", "--always", "--dirty", "--abbrev=40"]
    try:
        return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
