"""Measured inputs, from a benchmark or from running gateways and engines."""

import json
import math
import time
import urllib.request
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from prometheus_client.parser import text_string_to_metric_families

from caret.capacity.inputs import NUMBERS, InvalidInput

MeasuredInputs = dict[str, float]  # by the name of a field of CapacityInputs
Totals = Counter[str]  # by the name of a metric: its sum over all labels and processes
_WARM_UP: Final = "warm_up"  # a value of the gateway's label `mode`
_TIMEOUT_S: Final = 10.0
# Prefix of the figures of tests.benchmarks.first_token that were measured without a gateway, with
# uncached prompts.
_COLD: Final = "direct.cold."


def read_file(path: Path) -> MeasuredInputs:
    """Read a JSON object of figures, or the output lines of a benchmark.

    Raises InvalidInput.
    """
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read: {type(error).__name__}.") from error
    objects = _parse_objects(text, path)
    inputs: MeasuredInputs = {}
    for entry in objects:
        inputs |= (
            _read_benchmark_line(entry, path) if "figure" in entry else _read_inputs(entry, path)
        )
    try:
        return inputs | _estimate_cold_prefill(objects)
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInput(f"{path}: a figure {_COLD}... has an invalid number.") from error


def compute_inputs(before: Totals, after: Totals, *, seconds: float) -> MeasuredInputs:
    """Return inputs from two readings of the metrics, `seconds` apart.

    The load is the rate of requests between the readings. All other inputs use the counts since the
    processes started, so they exist even if there were no requests between the readings.
    """
    inputs: MeasuredInputs = {}
    requests = after["caret_completions_total"] - before["caret_completions_total"]
    if requests > 0:
        inputs["requests_per_s"] = requests / seconds
    for name, (dividend, divisor) in _RATIOS.items():
        if after[divisor] > 0:
            inputs[name] = after[dividend] / after[divisor]
    prefilled = after["vllm:prompt_tokens_total"] - after["vllm:prefix_cache_hits_total"]
    prefill_s = after["vllm:request_prefill_time_seconds_sum"]
    if prefilled > 0 and prefill_s > 0:
        inputs["prefill_tokens_per_s"] = prefilled / prefill_s
    return inputs


# For each input, the two counters whose quotient is the input: the dividend and the divisor.
_RATIOS: Final[Mapping[str, tuple[str, str]]] = {
    "context_tokens": ("caret_prompt_tokens_total", "caret_assembled_prompts_total"),
    "hit_rate": ("caret_cached_tokens_total", "caret_prompt_tokens_with_cache_info_total"),
    "output_tokens": ("caret_generated_tokens_total", "caret_assembled_prompts_total"),
    "stream_tokens_per_s": ("vllm:generation_tokens_total", "vllm:request_decode_time_seconds_sum"),
}


def read_metrics(urls: Iterable[str], *, during_s: float) -> MeasuredInputs:
    """Read the metrics of running gateways and engines twice, `during_s` apart. Return the inputs.

    Raises InvalidInput.
    """
    urls = list(urls)
    before = sum_metrics(_fetch_text(url) for url in urls)
    time.sleep(during_s)
    return compute_inputs(before, sum_metrics(_fetch_text(url) for url in urls), seconds=during_s)


def sum_metrics(texts: Iterable[str]) -> Totals:
    """Sum up the metrics of several pages, without warm-ups, which are not requests of users.

    Raises InvalidInput for a text that is not in Prometheus's format.
    """
    sums: Totals = Counter()
    try:
        for text in texts:
            for family in text_string_to_metric_families(text):
                for sample in family.samples:
                    if sample.labels.get("mode") == _WARM_UP:
                        continue
                    # mypy expects integers in a Counter; these values are floats.
                    sums[sample.name] += sample.value  # type: ignore[assignment]
    except ValueError as error:
        raise InvalidInput("The response contains no Prometheus metrics.") from error
    return sums


def _fetch_text(url: str) -> str:
    if not url.startswith(("http://", "https://")):
        raise InvalidInput(f"{url} is not an HTTP URL.")
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as response:  # noqa: S310  # http only
            text: str = response.read().decode("utf-8", "replace")
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{url} cannot be read: {error}.") from error
    return text


def _parse_objects(text: str, path: Path) -> list[Mapping[str, Any]]:
    try:
        try:
            objects = [json.loads(text)]
        except ValueError:
            objects = [json.loads(line) for line in text.splitlines() if line.strip()]
    except ValueError as error:
        raise InvalidInput(f"{path} contains neither a JSON object nor lines of them.") from error
    if not objects or not all(isinstance(entry, dict) for entry in objects):
        raise InvalidInput(f"{path} contains neither a JSON object nor lines of them.")
    return objects


def _read_inputs(entry: Mapping[str, Any], path: Path) -> MeasuredInputs:
    if unknown_names := set(entry) - set(NUMBERS):
        raise InvalidInput(
            f"{path}: {min(unknown_names)} is not a figure; the figures are {_join_names(NUMBERS)}."
        )
    return {name: _read_number(name, value, path) for name, value in entry.items()}


def _read_benchmark_line(line: Mapping[str, Any], path: Path) -> MeasuredInputs:
    """Return the figure in the line; nothing if the figure is not an input of the plan."""
    name = line["figure"]
    return {name: _read_number(name, line.get("value"), path)} if name in NUMBERS else {}


def _read_number(name: str, value: object, path: Path) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidInput(f"{path}: {name} is not a number.")
    return value


def _estimate_cold_prefill(lines: Iterable[Mapping[str, Any]]) -> MeasuredInputs:
    """Estimate the prefill rate and the overhead from first tokens of cold prompts.

    Fit a straight line of time over prompt length, by least squares. Return nothing if there are
    fewer than two lengths, or if longer prompts are not slower.
    """
    points = [
        (float(line["prompt_tokens"]), float(line["value"]) / 1000)
        for line in lines
        if str(line.get("figure", "")).startswith(_COLD) and "prompt_tokens" in line
    ]
    if len(points) < 2:
        return {}
    mean_tokens = math.fsum(tokens for tokens, _ in points) / len(points)
    mean_s = math.fsum(seconds for _, seconds in points) / len(points)
    sum_of_squares = math.fsum((tokens - mean_tokens) ** 2 for tokens, _ in points)
    sum_of_products = math.fsum(
        (tokens - mean_tokens) * (seconds - mean_s) for tokens, seconds in points
    )
    if sum_of_squares == 0 or sum_of_products <= 0:
        return {}
    s_per_token = sum_of_products / sum_of_squares
    overhead_ms = max(0.0, (mean_s - s_per_token * mean_tokens) * 1000)
    return {"prefill_tokens_per_s": 1 / s_per_token, "overhead_ms": overhead_ms}


def _join_names(names: Iterable[str]) -> str:
    return ", ".join(names)
