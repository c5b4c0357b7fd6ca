"""Plots of the report about traffic."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.ticker import MaxNLocator

from groundwire.monitor.records import Drift, ProbabilityCounts

from .drawing import CARD, CONSISTENT, FAINT, INCONSISTENT, INK, SMALL, Drawing, finish_drawing, open_figure


def draw_looks(drift: Drift, name: str) -> Drawing:
    """The share of inconsistent responses at each look with its interval, and the reference as a band.

    A look with an alert is a filled triangle, another one an open circle.
    """
    with open_figure(SMALL) as (figure, axes):
        axes.axhspan(drift.share.low, drift.share.high, color=CONSISTENT, alpha=0.18, linewidth=0)
        axes.axhline(drift.share.value, color=CONSISTENT, linewidth=1.1, linestyle=(0, (4, 2)))
        for look in drift.looks:
            value = look.share
            axes.plot((look.number, look.number), (value.low, value.high), color=INCONSISTENT, linewidth=1.2)
            axes.plot(
                look.number,
                value.value,
                "^" if look.alert else "o",
                color=INCONSISTENT,
                markerfacecolor=INCONSISTENT if look.alert else CARD,
                markersize=7 if look.alert else 5.5,
            )
        top = max(drift.share.high, *(look.share.high for look in drift.looks)) * 1.12
        numbers = [look.number for look in drift.looks]
        axes.set(xlim=(min(numbers) - 0.6, max(numbers) + 0.6), ylim=(0, top), xlabel="look")
        axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
        axes.yaxis.set_major_locator(MaxNLocator(4))
        axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
        axes.grid(axis="y")
        axes.tick_params(length=0)
        alternative = f"Share of inconsistent responses at {len(numbers)} looks, beside that of the reference"
        return finish_drawing(figure, name, alternative)


def draw_probabilities(counts: ProbabilityCounts, threshold: float | None, name: str) -> Drawing:
    """The probabilities of the traffic as bars, the reference as an outline, and the threshold as a line."""
    width = 1 / len(counts.now)
    lefts = [width * index for index in range(len(counts.now))]
    now, reference = _compute_shares(counts.now), _compute_shares(counts.reference)
    with open_figure(SMALL) as (figure, axes):
        axes.bar(lefts, now, width, align="edge", color=CONSISTENT, edgecolor=CARD, linewidth=0.7)
        if reference:
            axes.stairs(reference, [*lefts, 1.0], color=INK, linewidth=1.2)
        if threshold is not None:
            axes.axvline(threshold, color=INCONSISTENT, linewidth=1.2, linestyle=(0, (4, 2)))
        top = max((*now, *reference, 0.01)) * 1.15
        axes.set(xlim=(-0.01, 1.01), ylim=(0, top), xlabel="probability of being consistent")
        axes.yaxis.set_major_locator(MaxNLocator(4))
        axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
        axes.grid(axis="y", color=FAINT, alpha=0.3)
        axes.tick_params(length=0)
        return finish_drawing(figure, name, "Probabilities of the responses with a verdict")


def _compute_shares(counts: Sequence[int]) -> list[float]:
    total = sum(counts)
    return [count / total for count in counts] if total else []
