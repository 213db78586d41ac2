"""Prints the plan in the terminal, within 80 columns."""

from typing import Any, Final

from rich import box
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from caret.capacity.inputs import CapacityInputs
from caret.capacity.plan import CapacityLoad, CapacityPlan, HitRateRow
from caret.capacity.time_to_first_token import FirstTokenLatency

_TITLE: Final[dict[str, Any]] = {"title_justify": "left", "title_style": "bold"}


def print_plan(plan: CapacityPlan, console: Console) -> None:
    console.print(
        Group(
            _build_input_table(plan.figures),
            "",
            _build_load_table(plan),
            _build_hit_rate_table(plan),
            _write_summary(plan),
        )
    )


def _build_input_table(figures: CapacityInputs) -> Table:
    table = Table(title="Computed from", box=None, show_header=False, **_TITLE)
    for _ in range(2):
        table.add_column(style="dim")
        table.add_column(justify="right")
    pairs = [
        ("load", f"{figures.requests_per_s:,.5g} requests/s"),
        ("peak", f"{figures.burst:g} x"),
        ("prompt", f"{figures.context_tokens:,.0f} tokens"),
        ("completion", f"{figures.output_tokens:,.3g} tokens"),
        ("cached", f"{figures.hit_rate:.1%}"),
        ("prefilled when warm", f"{figures.warm_tokens:,.0f} tokens"),
        ("prefill of a GPU", f"{figures.prefill_tokens_per_s:,.0f} tokens/s"),
        ("decode of a GPU", f"{figures.decode_tokens_per_s:,.0f} tokens/s"),
        ("decode of a stream", f"{figures.stream_tokens_per_s:,.0f} tokens/s"),
        ("utilisation", f"{figures.utilisation:.0%}"),
        ("accepted", f"{figures.acceptance:.0%}"),
        ("price", f"${figures.dollars_per_gpu_hour:g} per GPU hour"),
    ]
    # Two pairs a row.
    for left, right in zip(pairs[::2], pairs[1::2], strict=True):
        table.add_row(*left, *right)
    return table


def _build_load_table(plan: CapacityPlan) -> Table:
    table = _make_table("Required capacity")
    table.add_column("")
    for name in ("sustained", "peak"):
        table.add_column(name, justify="right")
    loads = (plan.sustained, plan.burst)
    table.add_row("requests/s", *(f"{load.requests_per_s:,.5g}" for load in loads))
    table.add_row(
        f"requests in flight, {_format_gpus(plan.num_gpus)}",
        *(_format_num_in_flight(load) for load in loads),
    )
    table.add_row("GPUs busy on average", *(f"{load.busy_gpus:,.1f}" for load in loads))
    utilisation = f"GPUs at a utilisation of {plan.figures.utilisation:.0%}"
    table.add_row(utilisation, *(Text(f"{load.gpus:,}", style="bold") for load in loads))
    target = f"GPUs for a p99 of {plan.figures.target_ms:g} ms"
    table.add_row(target, *(_format_gpus_for_target(load) for load in loads))
    return table


def _build_hit_rate_table(plan: CapacityPlan) -> Table:
    table = _make_table(f"First token over the hit rate, {_format_gpus(plan.num_gpus)} (ms)")
    table.add_column("cached", justify="right")
    for name in ("p50", "p95", "p99", "peak p99", "GPUs needed"):
        table.add_column(name, justify="right")
    for row in plan.hit_rates:
        style = "bold" if row.hit_rate == plan.figures.hit_rate else ""
        table.add_row(*_build_row(row, plan.figures.target_ms), style=style)
    return table


def _build_row(row: HitRateRow, target_ms: float) -> list[Text]:
    cells = [Text(f"{row.hit_rate * 100:.4g}%")]
    if row.sustained is None:
        cells += [Text("overloaded", style="red"), Text(""), Text("")]
    else:
        sustained = row.sustained
        cells += [
            _format_ms(value, target_ms)
            for value in (sustained.p50_ms, sustained.p95_ms, sustained.p99_ms)
        ]
    cells.append(_format_peak(row.burst, target_ms))
    cells.append(Text(f"{row.gpus:,}"))
    return cells


def _format_peak(latency: FirstTokenLatency | None, target_ms: float) -> Text:
    return _format_ms(latency.p99_ms, target_ms) if latency else Text("overloaded", style="red")


def _format_ms(value_ms: float, target_ms: float) -> Text:
    digits = f"{value_ms:,.1f}" if value_ms < 100 else f"{value_ms:,.0f}"
    return Text(digits, style="green" if value_ms <= target_ms else "yellow")


def _write_summary(plan: CapacityPlan) -> Text:
    figures = plan.figures
    if plan.dollars_per_1000_accepted is None:
        accepted = ", and nothing is accepted."
    else:
        accepted = f": ${plan.dollars_per_1000_accepted:.4f} per thousand accepted tokens."
    lines = [
        f"A prompt takes {plan.cold_ms:,.1f} ms to prefill cold and {plan.warm_ms:,.1f} ms warm.",
        _describe_cliff(plan),
        f"{_format_gpus(plan.num_gpus)} {'costs' if plan.num_gpus == 1 else 'cost'}"
        f" ${plan.dollars_per_hour:,.2f} an hour{accepted}",
        f"Waiting: {_QUEUES[figures.queue]}, Poisson arrivals.",
    ]
    return Text("\n".join(lines))


# Descriptions of the values of Queue.
_QUEUES = {
    "pinned": "each GPU has its own queue, M/G/1 (Pollaczek-Khinchine)",
    "shared": "one queue before all GPUs, M/G/k (Allen-Cunneen)",
}


def _describe_cliff(plan: CapacityPlan) -> str:
    """Name the hit rate below which the p99 exceeds the target (the cliff)."""
    target = f"{plan.figures.target_ms:g} ms"
    if plan.min_hit_rate is None:
        return f"With {_format_gpus(plan.num_gpus)}, the p99 exceeds {target} at every hit rate."
    if plan.min_hit_rate == 0:
        return f"With {_format_gpus(plan.num_gpus)}, the p99 is within {target} at every hit rate."
    return f"The cliff: with less than {plan.min_hit_rate:.1%} cached, the p99 exceeds {target}."


def _format_num_in_flight(load: CapacityLoad) -> str:
    return "overloaded" if load.num_in_flight is None else f"{load.num_in_flight:,.0f}"


def _format_gpus_for_target(load: CapacityLoad) -> str:
    return "no number" if load.gpus_for_target is None else f"{load.gpus_for_target:,}"


def _format_gpus(number: int) -> str:
    return "1 GPU" if number == 1 else f"{number:,} GPUs"


def _make_table(title: str) -> Table:
    return Table(title=title, box=box.SIMPLE_HEAD, **_TITLE)
