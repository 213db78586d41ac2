"""`manage.py capacity`: GPUs, first-token latency and cost, from given or measured figures."""

import argparse
import json
import math
import sys
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from caret.capacity.inputs import CapacityInputs, InvalidInput, Queue, compute_requests_per_s
from caret.capacity.measurements import read_file, read_metrics
from caret.capacity.plan import compute_plan
from caret.capacity.plot import draw
from caret.capacity.table import print_plan

MAX_DURING_S: Final = 600.0  # limit of --during
_DEFAULTS: Final = {field.name: field.default for field in fields(CapacityInputs)}
# The help text of each option, by the field of CapacityInputs that it sets.
_OPTIONS: Final = {
    "requests_per_s": "sustained load",
    "context_tokens": "tokens in a prompt",
    "output_tokens": "tokens in a completion",
    "hit_rate": "share of prompt tokens that are cached, 0 to 1",
    "warm_tokens": "tokens that a warm request still prefills",
    "prefill_tokens_per_s": "rate of a GPU that only prefills",
    "decode_tokens_per_s": "rate of a GPU, all streams together",
    "stream_tokens_per_s": "rate of one stream",
    "overhead_ms": "first-token latency besides waiting and prefill",
    "burst": "peak load, as a multiple of the sustained load",
    "utilisation": "share of a GPU's time that a load may take, less than 1",
    "target_ms": "target for the p99 of first tokens",
    "acceptance": "share of generated tokens that are accepted, 0 to 1",
    "dollars_per_gpu_hour": "price",
    "num_gpus": "size of the fleet; default: enough for the sustained load",
}


def main(argv: list[str]) -> int:
    """Compute a plan and print it. Return the exit code.

    Raises InvalidInput.
    """
    options = _make_parser().parse_args(argv)
    plan = compute_plan(_read_inputs(options))
    if options.svg is not None:
        _write_drawing(options.svg, draw(plan))
    if options.json:
        sys.stdout.write(json.dumps(asdict(plan)) + "\n")
    else:
        print_plan(plan, Console(highlight=False))
    return 0


def _make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="manage.py capacity",
        description="Estimate the GPUs that a load needs, the latency of first tokens, and the"
        " cost of accepted tokens. Options override --url, which overrides --figures.",
    )
    parser.add_argument(
        "--figures",
        type=Path,
        metavar="FILE",
        help="file with your own figures: a JSON object, or the output of a benchmark",
    )
    parser.add_argument(
        "--url",
        action="append",
        default=[],
        help="metrics address of a running gateway or engine; repeat for several",
    )
    parser.add_argument(
        "--during",
        type=float,
        default=10.0,
        metavar="S",
        help="seconds for which --url measures the load",
    )
    parser.add_argument("--tokens-per-day", type=float, help="the load, as generated tokens a day")
    for name, meaning in _OPTIONS.items():
        parser.add_argument(
            _to_option(name),
            dest=name,
            type=_find_type(name),
            metavar="N",
            help=_write_help(name, meaning),
        )
    parser.add_argument(
        "--queue",
        type=Queue,
        choices=list(Queue),
        help="pinned: a queue for each GPU; shared: one for all GPUs",
    )
    parser.add_argument(
        "--svg",
        type=Path,
        metavar="FILE",
        help="write a plot of the time to the first token over the hit rate",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON line instead")
    return parser


def _read_inputs(options: argparse.Namespace) -> CapacityInputs:
    if not 0 < options.during <= MAX_DURING_S:  # rejects NaN, too
        raise InvalidInput(f"--during must be more than 0 and at most {MAX_DURING_S:.0f} seconds.")
    figures: dict[str, Any] = read_file(options.figures) if options.figures else {}
    if options.url:
        figures |= read_metrics(options.url, during_s=options.during)
    figures |= {
        name: value
        for name in (*_OPTIONS, "queue")
        if (value := getattr(options, name)) is not None
    }
    if options.tokens_per_day is not None:
        output_tokens = float(figures.get("output_tokens", _DEFAULTS["output_tokens"]))
        figures["requests_per_s"] = compute_requests_per_s(
            tokens_per_day=options.tokens_per_day, output_tokens=output_tokens
        )
    if "requests_per_s" not in figures:
        raise InvalidInput(
            "No load is known. Give --requests-per-s or --tokens-per-day, or the --url of a gateway"
            " that serves requests."
        )
    return CapacityInputs(**_with_whole_gpus(figures))


def _with_whole_gpus(figures: dict[str, Any]) -> dict[str, Any]:
    """Return the figures with `num_gpus` as an integer. Raises InvalidInput."""
    num_gpus = figures.get("num_gpus")
    if num_gpus is None:
        return figures
    if not math.isfinite(num_gpus) or num_gpus != int(num_gpus):
        raise InvalidInput(f"num_gpus is {num_gpus:g}; it must be a whole number.")
    return figures | {"num_gpus": int(num_gpus)}


def _write_drawing(path: Path, drawing: str) -> None:
    try:
        path.write_text(drawing)
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror}.") from error


def _to_option(name: str) -> str:
    return "--gpus" if name == "num_gpus" else f"--{name.replace('_', '-')}"


def _find_type(name: str) -> type[float] | type[int]:
    return int if name == "num_gpus" else float


def _write_help(name: str, meaning: str) -> str:
    default = _DEFAULTS[name]
    if not isinstance(default, float | int):
        return meaning
    return f"{meaning} ({default:,.6g})"
