"""What a run of the benchmark says: tables on the terminal, JSON, and charts."""

import json
from pathlib import Path

import progress
import repository
from bench import charts
from bench.charts import Chart
from bench.goals import WORDS, ratio
from bench.measured import COLUMNS, TCP, Measured, Row
from bench.plan import CONNECTED, CONNECTIONS, IN_FLIGHT_COUNTS, KIB, NFS3, said
from guests.pair import IN_TREE, OURS

DIRECTORY = repository.BUILD / "bench"
RESULT = DIRECTORY / "result.json"
NAME_WIDTH = 34


def tell(measured: Measured) -> None:
    """Print the tables."""
    heads: list[tuple[str, str]] = list(dict.fromkeys((row.device, row.part) for row in measured.workloads))
    for device, part in heads:
        rows = [row for row in measured.workloads if (row.device, row.part) == (device, part)]
        for line in [*_instructions(measured, rows, f"{device}, {part}"), *_counts(measured, rows)]:
            progress.line(line)
    for line in [*_memory(measured), *_mixed(measured)]:
        progress.line(line)
    verdicts = measured.verdicts()
    for kind in WORDS:
        for verdict in verdicts:
            if verdict.met is kind:
                progress.line(str(verdict))
    if verdicts:
        progress.line(f"{sum(verdict.met is True for verdict in verdicts)} of {len(verdicts)} goals are met")


def _instructions(measured: Measured, rows: list[Row], title: str) -> list[str]:
    lines = ["", f"{title}: instructions of an operation, both ends together",
             f"{'':<{NAME_WIDTH}}{'ours':>12}{'C':>12}{'TCP':>12}{'ours/C':>8}  "
             f"{'rpcrdma: ours':>14}{'C':>10}{'ours/C':>8}"]
    for row in rows:
        ours, in_tree, tcp = measured.mean(row, OURS), measured.reference(row), measured.mean(row, TCP)
        totals = [costs.total if costs else None for costs in (ours, in_tree, tcp)]
        inside = [costs.rpcrdma if costs else None for costs in (ours, in_tree)]
        lines.append(f"{row.workload:<{NAME_WIDTH}}{''.join(map(_number, totals))}{_ratio(*totals[:2])}  "
                     f"{_number(inside[0], 14)}{_number(inside[1], 10)}{_ratio(*inside)}")
    return lines


def _counts(measured: Measured, rows: list[Row]) -> list[str]:
    lines = ["", "of the same operations, ours / C:"]
    for row in rows:
        ours, in_tree = measured.mean(row, OURS), measured.reference(row)
        if ours is not None and in_tree is not None:
            lines.append(f"{row.workload}:")
            lines += _wrapped(_both(ours.counts, in_tree.counts)) + _wrapped(_both(ours.modules, in_tree.modules))
    return lines


def _both(ours: dict[str, float], in_tree: dict[str, float]) -> list[str]:
    """All that either has."""
    return [f"{name} {_short(ours.get(name, 0))} / {_short(in_tree.get(name, 0))}"
            for name in dict.fromkeys((*ours, *in_tree))]


def _short(value: float) -> str:
    return f"{value:.4g}" if value < 1000 else f"{value:,.0f}"


def _wrapped(words: list[str], width: int = 120) -> list[str]:
    """Words with commas between them, in indented lines."""
    lines, line = [], "  "
    for word in words:
        if len(line) + len(word) + 2 > width:
            lines.append(line.rstrip())
            line = "  "
        line += f"{word}, "
    return [*lines, line.rstrip(", ")]


def _memory(measured: Measured) -> list[str]:
    if not measured.memory:
        return []
    lines = ["", "bytes of a connection, both ends together: idle, right after many messages at once, idle again",
             f"{'':<{NAME_WIDTH}}{'idle':>12}{'busy':>12}{'again':>12}{'left':>12}"]
    for device, column in dict.fromkeys((*measured.memory, *measured.nconnect)):
        alone = measured.nconnect.get((device, column))
        rows = [(f"with its mount, {memory.connections}", memory) for memory in measured.memory.get((device, column), [])]
        rows += [(f"without, of {alone.connections}", alone)] if alone is not None else []
        lines += [f"{f'{device}, {column}, {name}':<{NAME_WIDTH}}{memory.idle:>12,.0f}{memory.busy:>12,.0f}"
                  f"{memory.again:>12,.0f}{memory.left:>12,}" for name, memory in rows]
    return lines


def _mixed(measured: Measured) -> list[str]:
    lines = ["", "two guests: instructions of an operation at both ends"] if measured.mixed else []
    for mixed in measured.mixed:
        name = f"{mixed.device}, {mixed.client} with {mixed.server}, {mixed.workload}"
        lines.append(f"{name:<{NAME_WIDTH + 10}}{mixed.total:>14,.0f}  "
                     f"from {min(mixed.totals):,.0f} to {max(mixed.totals):,.0f}, spread {mixed.spread:.2%}")
        lines += _wrapped([f"{name} {_short(value)}" for name, value in mixed.counts.items()])
    return lines


def _number(value: float | None, width: int = 12) -> str:
    return f"{'-':>{width}}" if value is None else f"{value:>{width},.0f}"


def _ratio(ours: float | None, other: float | None) -> str:
    return f"{'-':>8}" if ours is None or other is None else f"{ratio(ours, other):>8.3f}"


def write(measured: Measured, versions: dict[str, str]) -> Path:
    """JSON and charts; the directory."""
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    for old in DIRECTORY.glob("*.svg"):
        old.unlink()
    RESULT.write_text(json.dumps({"versions": versions, **measured.json()}, indent=1) + "\n")
    charts.draw(_charts(measured), DIRECTORY)
    return DIRECTORY


def _charts(measured: Measured) -> list[Chart]:
    """What is to be drawn."""
    found = []
    for device, part in dict.fromkeys((row.device, row.part) for row in measured.workloads):
        rows = [row for row in measured.workloads if (row.device, row.part) == (device, part)
                and measured.mean(row, OURS) and measured.reference(row)]
        if rows:
            found += [_bars(measured, rows, device, part, "total"), _bars(measured, rows, device, part, "rpcrdma")]
    for device in dict.fromkeys(row.device for row in measured.workloads):
        found += _growth(measured, device)
    return found


def _bars(measured: Measured, rows: list[Row], device: str, part: str, what: str) -> Chart:
    """Each column as a part of the in-tree module's."""
    def values(column: str) -> list[float | None]:
        found = []
        for row in rows:
            costs, reference = measured.mean(row, column), measured.reference(row)
            if column == IN_TREE:
                costs = reference
            known = costs is not None and reference is not None
            found.append(ratio(getattr(costs, what), getattr(reference, what)) if known else None)
        return found

    columns = COLUMNS if what == "total" else COLUMNS[:2]
    name = f"{device}-{part}-{what}".lower().replace(" ", "-").replace(",", "").replace("=", "-")
    where = "all" if what == "total" else "in rpcrdma"
    return Chart(name, f"{device}, {part}: instructions of an operation, {where}", "part of the in-tree module's",
                 _known({column: values(column) for column in columns}), groups=[row.workload for row in rows],
                 goals=[getattr(measured.workloads[row].goal, what) for row in rows])


def _known(series: dict[str, list[float | None]]) -> dict[str, list[float | None]]:
    """The series of which anything was measured."""
    return {name: values for name, values in series.items() if any(value is not None for value in values)}


def _growth(measured: Measured, device: str) -> list[Chart]:
    """What more connections, and more at once, make of an operation, and of memory."""
    def line(part: str, names: list[str], column: str) -> list[float | None]:
        found = [measured.mean(Row(device, part, name), column) for name in names]
        return [costs.total if costs else None for costs in found]

    def chart(name: str, title: str, unit: str, along: str, positions: tuple[int, ...],
              values: dict[str, list[float | None]]) -> Chart:
        return Chart(f"{device}-{name}", f"{device}: {title}", unit, _known(values), along=along, positions=positions)

    at_once = [f"read {said(4 * KIB)}" + (f", {depth} at once" if depth > 1 else "") for depth in IN_FLIGHT_COUNTS]
    connected = [f"read {said(4 * KIB)}, {count} connection{'s' if count > 1 else ''}" for count in CONNECTIONS]
    memory = {column: [found.idle for found in measured.memory.get((device, column), [])] for column in COLUMNS}
    made = [
        chart("in-flight", "a read of 4 KiB, so many at once", "instructions", "at once", IN_FLIGHT_COUNTS,
              {column: line(NFS3, at_once, column) for column in COLUMNS}),
        chart("connections", "a read of 4 KiB, so many connections", "instructions", "connections", CONNECTIONS,
              {column: line(CONNECTED, connected, column) for column in COLUMNS}),
        chart("memory", "an idle connection with its mount, both ends", "bytes", "connections", CONNECTIONS,
              {column: list(values) for column, values in memory.items()}),
    ]
    return [one for one in made if one.series]
