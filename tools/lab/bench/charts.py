"""The charts of a run, as SVG files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Told apart by people who see colours differently, too.
COLOURS = ("#0072b2", "#e69f00", "#999999", "#009e73")
GOAL = "#d55e00"
INCHES = (10.0, 5.2)
# How much of a group's room its bars take, and levels of the groups' names, which are longer than a group is wide.
TAKEN, LEVELS = 0.8, 3
# So that the same values make the same file.
SAME: dict[str, Any] = {"svg.hashsalt": "rpcrdma", "svg.fonttype": "none", "font.family": "sans-serif"}


@dataclass(frozen=True)
class Chart:
    """Several series of values of one unit, in the order of the groups or positions; none where nothing was measured."""

    name: str
    title: str
    unit: str
    series: Mapping[str, Sequence[float | None]]
    # Of bars beside each other, with their goals, if they have any.
    groups: Sequence[str] = ()
    goals: Sequence[float | None] = ()
    # What positions, which grow by factors, are of.
    along: str = ""
    positions: Sequence[int] = ()


def draw(charts: Sequence[Chart], directory: Path) -> None:
    """Each as a file of its name."""
    # Not everybody who runs tests has it.
    import matplotlib.pyplot as plots

    with plots.rc_context(SAME):
        for chart in charts:
            figure, axes = plots.subplots(figsize=INCHES, layout="constrained")
            axes.set(title=chart.title, ylabel=chart.unit)
            if chart.groups:
                _bars(axes, chart)
            else:
                _lines(axes, chart)
            # With room for the names of the series.
            axes.set_ylim(0, 1.2 * axes.get_ylim()[1])
            axes.legend(loc="upper right", ncols=len(chart.series) + 1)
            figure.savefig(directory / f"{chart.name}.svg", metadata={"Date": None})
            plots.close(figure)


def _bars(axes: Any, chart: Chart) -> None:
    width = TAKEN / len(chart.series)
    for index, (name, values) in enumerate(chart.series.items()):
        left = [group + (1 - TAKEN) / 2 + index * width for group in range(len(chart.groups))]
        axes.bar(left, [value or 0 for value in values], width, align="edge", label=name, color=COLOURS[index % len(COLOURS)])
    wanted = [(goal, group) for group, goal in enumerate(chart.goals) if goal is not None]
    if wanted:
        axes.hlines([goal for goal, _ in wanted], [group + 0.05 for _, group in wanted], [group + 0.95 for _, group in wanted],
                    colors=GOAL, label="goal")
    names = ["\n" * (group % LEVELS) + name for group, name in enumerate(chart.groups)]
    axes.set_xticks([group + 0.5 for group in range(len(names))], names, fontsize="small")
    axes.tick_params(axis="x", length=0)


def _lines(axes: Any, chart: Chart) -> None:
    # Factors are steps of equal size, so each position is its place in the list.
    for index, (name, values) in enumerate(chart.series.items()):
        known = [(place, value) for place, value in enumerate(values) if value is not None]
        axes.plot(*zip(*known), marker="o", label=name, color=COLOURS[index % len(COLOURS)])
    axes.set_xticks(range(len(chart.positions)), map(str, chart.positions))
    axes.set_xlabel(chart.along)
