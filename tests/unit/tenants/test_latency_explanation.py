"""The explanation of a completion's latency: its stages, its findings and its waterfall.

The waterfall is a chart of the stages, drawn as text.
"""

from itertools import accumulate
from typing import Any

import pytest

from caret.contracts.policy import Mode
from caret.contracts.usage import CompletionRecord, FinishReason
from tenants.usage.requests.latency_explanation import LatencyExplanation, explain_latency
from tenants.usage.requests.waterfall import WIDTH, format_waterfall
from tests.fakes.completions import make_completion

# The time that the stages other than `generate` take until the first text.
OTHER_STAGES_MS = 3


def record(**fields: Any) -> CompletionRecord:
    """Return a fast completion of 120 ms. 1,880 of its 1,900 prompt tokens were cached."""
    return make_completion(**{"user_id": None, **fields})


def slow(engine_ms: float = 400.0, **fields: Any) -> CompletionRecord:
    """Return a completion whose first token the engine generated after `engine_ms`."""
    return record(
        **{
            "engine_ms": engine_ms,
            "first_token_ms": engine_ms + OTHER_STAGES_MS,
            "total_ms": engine_ms + 80,
            **fields,
        }
    )


def with_stage_times(**duration_ms: float) -> CompletionRecord:
    """Return a record with these times. Other stages take 0.5 ms, `generate` takes 40 ms."""
    stages = ("authenticate", "admit", "assemble", "route", "generate", "filter")
    durations_ms = dict.fromkeys(stages, 0.5) | {"generate": 40.0} | duration_ms
    ended_ms = dict(zip(stages, accumulate(durations_ms[name] for name in stages), strict=True))
    return record(
        authenticated_ms=ended_ms["authenticate"],
        admitted_ms=ended_ms["admit"],
        assemble_ms=ended_ms["assemble"],  # the end of the stage, although its name has no "ed"
        routed_ms=ended_ms["route"],
        engine_ms=durations_ms["generate"],
        first_token_ms=ended_ms["filter"],
        total_ms=ended_ms["filter"] + 20,
        num_files=20,
    )


def finding_text(explanation: LatencyExplanation) -> str:
    return " ".join(explanation.findings)


def test_the_stages_fill_the_whole_time() -> None:
    stages = explain_latency(record()).stages

    assert [stage.name for stage in stages] == [
        *("authenticate", "admit", "assemble", "route", "generate", "filter", "stream")
    ]
    assert sum(stage.duration_ms for stage in stages) == pytest.approx(120)
    generate = stages[4]
    assert generate.start_ms == 2.5  # the end of the stage before it, `routed_ms`
    assert generate.duration_ms == pytest.approx(40)


def test_a_fast_request_has_no_findings() -> None:
    explanation = explain_latency(record())

    assert not explanation.is_slow
    assert not any(stage.is_over for stage in explanation.stages)
    assert explanation.findings == ("No findings: each stage stayed within its budget.",)


def test_a_cold_cache_is_reported_with_the_prefilled_tokens() -> None:
    explanation = explain_latency(slow(cached_tokens=88))

    assert explanation.is_slow
    assert explanation.findings == (
        "Cold cache: the engine prefilled 1,812 of 1,900 prompt tokens.",
    )


def test_a_busy_replica_is_reported() -> None:
    explanation = explain_latency(slow(num_in_flight_at_replica=14))

    assert explanation.findings == ("Busy replica: 14 requests were in flight.",)


def test_a_cold_cache_at_a_busy_replica_is_reported_as_both() -> None:
    explanation = explain_latency(slow(cached_tokens=0, num_in_flight_at_replica=5))

    assert "Cold cache: the engine prefilled 1,900 of 1,900" in finding_text(explanation)
    assert "Busy replica: 5" in finding_text(explanation)


def test_a_slow_engine_without_another_cause_is_reported() -> None:
    assert "Slow engine: 400 ms, although only 20 tokens were not cached" in finding_text(
        explain_latency(slow())
    )


def test_missing_cache_information_is_reported() -> None:
    assert "did not report" in finding_text(explain_latency(slow(cached_tokens=None)))


@pytest.mark.parametrize(
    ("stage", "duration_ms", "expected"),
    [
        ("assemble", 12.0, "Slow prompt assembly: 12.0 ms for 1,900 tokens (other files: 20"),
        ("admit", 4.0, "Slow admission: 4.0 ms"),
        ("authenticate", 30.0, "Gateway busy: the request waited 30.0 ms"),
        ("route", 3.0, "Slow routing: 3.0 ms"),
        ("filter", 50.0, "Slow filter: it needed 50 ms"),
    ],
)
def test_each_stage_over_its_budget_is_named(stage: str, duration_ms: float, expected: str) -> None:
    (finding,) = explain_latency(with_stage_times(**{stage: duration_ms})).findings

    assert expected in finding


def test_slow_decoding_is_reported() -> None:
    explanation = explain_latency(record(total_ms=2_243.0))

    assert "Slow client or slow decoding: 12 tokens at 200 ms each" in finding_text(explanation)
    assert not explanation.is_slow


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (
            {"finish_reason": FinishReason.CANCELLED},
            "Cancelled: the client cancelled or disconnected after 30.0 ms",
        ),
        ({"finish_reason": FinishReason.SUPERSEDED}, "Superseded: a newer request"),
        (
            {"finish_reason": FinishReason.ERROR, "error_code": "engine_disconnected"},
            "Error: engine_disconnected after",
        ),
    ],
)
def test_an_early_end_is_reported_with_its_stage(fields: dict[str, Any], expected: str) -> None:
    explanation = explain_latency(
        record(engine_ms=None, first_token_ms=None, total_ms=30.0, **fields)
    )

    assert expected in finding_text(explanation)
    assert "in the stage generate" in finding_text(explanation)
    assert explanation.stages[-1].name == "generate"
    assert explanation.stages[-1].is_interrupted


def test_a_shed_request_ends_in_admission() -> None:
    without_times = dict.fromkeys(
        ("admitted_ms", "assemble_ms", "routed_ms", "engine_ms", "first_token_ms")
    )

    explanation = explain_latency(
        record(finish_reason=FinishReason.SHED, total_ms=0.5, **without_times)
    )

    assert [stage.name for stage in explanation.stages] == ["authenticate", "admit"]
    assert finding_text(explanation).startswith("Shed:")


def test_the_reason_of_the_filter_is_reported() -> None:
    withheld = record(
        finish_reason=FinishReason.FILTERED, filter_reason="secret", first_token_ms=None
    )

    assert "Filtered: secret" in finding_text(explain_latency(withheld))


def test_an_interruption_is_not_attributed_to_the_filter() -> None:
    cut_off = record(finish_reason=FinishReason.LENGTH, filter_reason="engine_disconnected")

    assert "Interrupted: the connection to the engine was lost" in finding_text(
        explain_latency(cut_off)
    )
    assert "filter:" not in finding_text(explain_latency(cut_off))
    assert "Truncated by the filter: repetition" in finding_text(
        explain_latency(record(filter_reason="repetition"))
    )


@pytest.mark.parametrize(
    ("mode", "first_ms", "is_slow"),
    [(Mode.INLINE, 101, True), (Mode.FIM, 149, False), (Mode.CHAT, 1_900, False)],
)
def test_each_mode_has_its_target(mode: Mode, first_ms: float, is_slow: bool) -> None:
    explanation = explain_latency(slow(first_ms - OTHER_STAGES_MS, mode=mode))

    assert explanation.is_slow is is_slow


def test_an_old_record_without_stage_times_is_partly_explained() -> None:
    old = record(
        authenticated_ms=None, admitted_ms=None, routed_ms=None, num_in_flight_at_replica=None
    )

    explanation = explain_latency(old)

    assert [stage.name for stage in explanation.stages] == ["authenticate"]


def test_the_waterfall_fits_its_width_and_shows_details_of_the_request() -> None:
    slow_record = slow(cached_tokens=88, variant="layout-2026/b", num_in_flight_at_replica=14)

    lines = list(format_waterfall(slow_record, explain_latency(slow_record), slug="acme"))

    assert max(len(line) for line in lines) <= WIDTH
    waterfall = "\n".join(lines)
    for expected in (
        "acme, inline",
        "pool fast",
        "14 requests there",
        "cached 88",
        "prefilled 1,812",
    ):
        assert expected in waterfall
    assert "First text after 403.0 ms: slow (target 100 ms)." in waterfall
    (generate,) = (line for line in lines if line.strip().startswith("generate"))
    assert "400.0 ms ! of 60" in generate
    assert "█" * 25 in generate  # most of the width of the chart


def test_the_waterfall_of_a_request_without_duration_says_that_no_text_was_sent() -> None:
    shed_record = record(
        finish_reason=FinishReason.SHED, total_ms=0.0, authenticated_ms=None, first_token_ms=None
    )

    waterfall = format_waterfall(shed_record, explain_latency(shed_record), slug="acme")

    assert any("No text was sent" in line for line in waterfall)


def test_a_waterfall_of_contradictory_times_fits_its_width() -> None:
    contradictory_record = record(engine_ms=5_000.0, total_ms=120.0)
    explanation = explain_latency(contradictory_record)

    waterfall = format_waterfall(contradictory_record, explanation, slug="acme")

    assert max(len(line) for line in waterfall) <= WIDTH


def test_a_completion_without_text_has_no_budget_for_its_first_text() -> None:
    explanation = explain_latency(record(first_token_ms=None, num_chars=0, total_ms=60.0))

    assert explanation.stages[-1].name == "filter"
    assert not any(stage.is_over for stage in explanation.stages)
    assert explanation.findings == ("No findings: each stage stayed within its budget.",)
