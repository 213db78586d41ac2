"""Inputs of the capacity model: read from a file, or computed from the metrics of a gateway."""

import json
from pathlib import Path

import pytest

from caret.capacity.inputs import InvalidInput
from caret.capacity.measurements import compute_inputs, read_file, read_metrics, sum_metrics

GATEWAY = """\
# TYPE caret_completions_total counter
caret_completions_total{mode="inline",finish_reason="stop"} 70
caret_completions_total{mode="fim",finish_reason="stop"} 50
# TYPE caret_assembled_prompts_total counter
caret_assembled_prompts_total{pool="fast"} 100
# TYPE caret_prompt_tokens_total counter
caret_prompt_tokens_total{pool="fast"} 180000
# TYPE caret_prompt_tokens_with_cache_info_total counter
caret_prompt_tokens_with_cache_info_total{pool="fast"} 100000
# TYPE caret_cached_tokens_total counter
caret_cached_tokens_total{mode="inline",pool="fast"} 93000
caret_cached_tokens_total{mode="warm_up",pool="fast"} 5
# TYPE caret_generated_tokens_total counter
caret_generated_tokens_total{pool="fast"} 1600
"""


def test_inputs_are_read_from_a_json_object(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    file.write_text('{"hit_rate": 0.9, "requests_per_s": 12}')

    assert read_file(file) == {"hit_rate": 0.9, "requests_per_s": 12}


def test_cold_prompts_of_a_benchmark_give_prefill_rate_and_overhead(tmp_path: Path) -> None:
    """The prompts take 7 ms plus 0.1 ms per token."""
    file = tmp_path / "lines.json"
    lines = [
        {"figure": f"direct.cold.{size}", "value": 7 + 0.1 * size, "prompt_tokens": size}
        for size in (512, 1500, 3000)
    ]
    # Ignored: only figures of direct requests to the engine count.
    lines.append({"figure": "websocket.cold.512", "value": 900.0, "prompt_tokens": 512})
    file.write_text("\n".join(json.dumps(line) for line in lines))

    inputs = read_file(file)

    assert inputs["prefill_tokens_per_s"] == pytest.approx(10_000)
    assert inputs["overhead_ms"] == pytest.approx(7)


def test_a_benchmark_figure_named_like_an_input_is_used(tmp_path: Path) -> None:
    file = tmp_path / "lines.json"
    file.write_text(
        '{"benchmark": "typing", "figure": "hit_rate", "value": 0.94}\n'
        '{"benchmark": "typing", "figure": "other", "value": 3}\n'
    )

    assert read_file(file) == {"hit_rate": 0.94}


@pytest.mark.parametrize(
    "text", ["", "no json", "[1]", '{"hit_rate": "much"}', '{"hit_rat": 0.9}', '{"hit_rate": true}']
)
def test_a_file_in_another_format_is_rejected(text: str, tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    file.write_text(text)

    with pytest.raises(InvalidInput, match=str(file)):
        read_file(file)


def test_a_missing_file_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_file(tmp_path / "missing.json")


def test_gateway_counters_give_load_and_ratios() -> None:
    """100 completions in 10 s had 100 prompts of 1,800 tokens, and 1,600 generated tokens.

    The engines reported for 100,000 of the prompt tokens whether they were cached; 93,000 were.
    Cached tokens of warm-ups are not counted, because warm-ups are not requests of users.
    """
    after = sum_metrics([GATEWAY])
    before = sum_metrics(['caret_completions_total{finish_reason="stop"} 20\n'])

    inputs = compute_inputs(before, after, seconds=10)

    assert inputs == pytest.approx(
        {
            "requests_per_s": 10,
            "context_tokens": 1_800,
            "hit_rate": 0.93,
            "output_tokens": 16,
        }
    )


def test_engine_counters_give_the_rates_of_the_engine() -> None:
    after = sum_metrics(
        [
            "vllm:prompt_tokens_total 10000\nvllm:prefix_cache_hits_total 4000\n"
            "vllm:request_prefill_time_seconds_sum 0.5\nvllm:generation_tokens_total 300\n"
            "vllm:request_decode_time_seconds_sum 3\n"
        ]
    )

    inputs = compute_inputs(sum_metrics([]), after, seconds=1)

    # 6,000 tokens that were not cached in 0.5 s; and 300 generated tokens in 3 s.
    assert inputs == {"prefill_tokens_per_s": 12_000, "stream_tokens_per_s": 100}


def test_an_idle_gateway_gives_no_inputs() -> None:
    idle_metrics = sum_metrics(["caret_completions_total 0\n"])

    assert compute_inputs(idle_metrics, idle_metrics, seconds=10) == {}


def test_a_page_without_metrics_is_rejected() -> None:
    with pytest.raises(InvalidInput, match="no Prometheus metrics"):
        sum_metrics(["<html>Not here</html>"])


@pytest.mark.parametrize("url", ["file:///etc/passwd", "http://127.0.0.1:1/metrics", "127.0.0.1"])
def test_an_unreachable_or_invalid_address_is_rejected(url: str) -> None:
    with pytest.raises(InvalidInput, match=url):
        read_metrics([url], during_s=0.001)


@pytest.mark.parametrize("fields", [{}, {"value": None}, {"value": "fast"}])
def test_a_figure_of_a_cold_prompt_is_rejected_if_its_value_is_no_number(
    tmp_path: Path, fields: dict[str, object]
) -> None:
    file = tmp_path / "lines.json"
    file.write_text(json.dumps({"figure": "direct.cold.512", "prompt_tokens": 512, **fields}))

    with pytest.raises(InvalidInput, match="invalid number"):
        read_file(file)
