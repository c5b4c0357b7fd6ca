"""The plot of a measurement: responses per second against requests in flight, with the latency in the legend."""

from __future__ import annotations

from ..report.drawing import DASHES, MARKERS, SERIES, SIZE, Drawing, finish_drawing, open_figure
from .measure import Speed


def draw_speed(speed: Speed) -> Drawing:
    """Draw a line for each group of metrics; one response at a time is one in flight."""
    with open_figure(SIZE) as (figure, axes):
        for index, latency in enumerate(speed.latency):
            rates = [entry.rate for entry in speed.rates if entry.group == latency.group]
            timing = latency.timing
            axes.plot(
                [rate.in_flight for rate in rates],
                [rate.per_second for rate in rates],
                color=SERIES[index % len(SERIES)],
                linestyle=DASHES[index % len(DASHES)],
                marker=MARKERS[index % len(MARKERS)],
                label=f"{latency.group}: alone {timing.p50_ms:.0f} ms p50, {timing.p99_ms:.0f} ms p99",
            )
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.set_ylim(bottom=0)
        axes.set(xlabel="requests in flight", ylabel="responses per second")
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14))
        return finish_drawing(figure, "speed", "Responses per second against requests in flight")
