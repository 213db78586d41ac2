"""Explanation of a completion's latency: its stages against their budgets, and findings. Pure.

It uses only the completion's usage record: counts and times, no code. The stages follow each other
as in the gateway. `generate` ends with the engine's first token, `filter` with the first text that
can be shown, and `stream` with the end of the completion.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from django.utils.translation import gettext_noop

from caret.contracts.latency_targets import FIRST_TOKEN_TARGETS_MS, STAGE_BUDGETS_MS
from caret.contracts.policy import Mode
from caret.contracts.usage import CompletionRecord, FinishReason
from tenants.usage.requests.finding import Finding, Quantity

# Prefilling fewer tokens than this takes only a few milliseconds.
_MANY_UNCACHED_TOKENS: Final = 256
_MANY_AT_REPLICA: Final = 4  # requests of this gateway in flight at the replica
# Even an engine under load generates a token in less time.
_SLOW_TOKEN_MS: Final = 60.0
_MIN_STREAMED_TOKENS: Final = 4  # with fewer tokens, the time for each says little


@dataclass(frozen=True, slots=True)
class LatencyStage:
    name: str
    start_ms: float  # after the request was received
    duration_ms: float
    budget_ms: float | None  # None: no budget
    is_interrupted: bool = False  # the completion ended in this stage

    @property
    def is_over(self) -> bool:
        return self.budget_ms is not None and self.duration_ms > self.budget_ms


@dataclass(frozen=True, slots=True)
class LatencyExplanation:
    stages: tuple[LatencyStage, ...]  # the stages that were reached, in order
    target_ms: float  # of this mode, for the first text
    is_slow: bool  # the first text (or, without text, the end) came later than the target
    findings: tuple[Finding, ...]  # most important first


def explain_latency(record: CompletionRecord) -> LatencyExplanation:
    """Explain the latency of one completion. There is always at least one finding."""
    stages = tuple(_split_into_stages(record))
    target_ms = FIRST_TOKEN_TARGETS_MS[record.mode]
    waited_ms = record.total_ms if record.first_token_ms is None else record.first_token_ms
    is_slow = waited_ms > target_ms
    by_name = {stage.name: stage for stage in stages}
    findings = [
        finding
        for name, rule in _RULES
        if name in by_name
        for finding in rule(record, by_name[name])
    ]
    return LatencyExplanation(
        stages=stages,
        target_ms=target_ms,
        is_slow=is_slow,
        findings=tuple(
            [*findings, *_explain_ending(record, stages[-1])] or [_explain_nothing_found(is_slow)]
        ),
    )


def _split_into_stages(record: CompletionRecord) -> Iterator[LatencyStage]:
    start_ms = 0.0
    for name, ended_ms in _list_marks(record):
        is_last = ended_ms is None
        until_ms = record.total_ms if ended_ms is None else ended_ms
        # The times come from different clock readings and may differ by rounding.
        duration_ms = max(0.0, until_ms - start_ms)
        # The budget of `filter` is for the time to the first text. Without text, this stage lasts
        # until the end of the completion, so the budget does not apply.
        is_without_text = is_last and name == "filter"
        budget_ms = None if is_without_text else _get_budget_ms(record.mode, name)
        yield LatencyStage(name, start_ms, duration_ms, budget_ms, is_interrupted=is_last)
        if is_last:
            return
        start_ms = until_ms
    yield LatencyStage("stream", start_ms, max(0.0, record.total_ms - start_ms), budget_ms=None)


def _list_marks(record: CompletionRecord) -> Iterator[tuple[str, float | None]]:
    """Yield the stages up to `filter`, each with the time of its end in ms; None: not reached."""
    yield "authenticate", record.authenticated_ms  # includes `receive`, which takes microseconds
    yield "admit", record.admitted_ms
    yield "assemble", record.assemble_ms
    yield "route", record.routed_ms
    routed_ms, engine_ms = record.routed_ms, record.engine_ms
    yield "generate", None if routed_ms is None or engine_ms is None else routed_ms + engine_ms
    yield "filter", record.first_token_ms


def _get_budget_ms(mode: Mode, stage: str) -> float | None:
    """Return a stage's budget; None: it has none. Only that of `generate` depends on the mode."""
    if stage == "authenticate":
        return STAGE_BUDGETS_MS["receive"] + STAGE_BUDGETS_MS["authenticate"]
    if stage == "generate":
        return (
            STAGE_BUDGETS_MS[stage]
            * FIRST_TOKEN_TARGETS_MS[mode]
            / FIRST_TOKEN_TARGETS_MS[Mode.INLINE]
        )
    return STAGE_BUDGETS_MS.get(stage)


def _explain_authenticate(_record: CompletionRecord, stage: LatencyStage) -> Iterator[Finding]:
    if stage.is_over:
        yield Finding(
            gettext_noop(
                "Gateway busy: the request waited {took} ms for the gateway's event loop."
            ),
            took=Quantity(stage.duration_ms, 1),
        )


def _explain_admit(_record: CompletionRecord, stage: LatencyStage) -> Iterator[Finding]:
    if stage.is_over:
        yield Finding(
            gettext_noop("Slow admission: {took} ms. Redis was slow to check the limits."),
            took=Quantity(stage.duration_ms, 1),
        )


def _explain_assemble(record: CompletionRecord, stage: LatencyStage) -> Iterator[Finding]:
    if stage.is_over:
        yield Finding(
            gettext_noop(
                "Slow prompt assembly: {took} ms for {tokens} tokens (other files: "
                "{files}, retrieved snippets: {snippets})."
            ),
            took=Quantity(stage.duration_ms, 1),
            tokens=Quantity(record.prompt_tokens),
            files=Quantity(record.num_files),
            snippets=Quantity(record.num_snippets),
        )


def _explain_route(_record: CompletionRecord, stage: LatencyStage) -> Iterator[Finding]:
    if stage.is_over:
        yield Finding(gettext_noop("Slow routing: {took} ms."), took=Quantity(stage.duration_ms, 1))


def _explain_generate(record: CompletionRecord, stage: LatencyStage) -> Iterator[Finding]:
    if not stage.is_over:
        return
    reasons = [*_explain_cold_prompt(record), *_explain_queueing(record)]
    yield from reasons or [_describe_slow_engine(record, stage)]


def _describe_slow_engine(record: CompletionRecord, stage: LatencyStage) -> Finding:
    if record.cached_tokens is None:
        return Finding(
            gettext_noop(
                "Slow engine: {took} ms. The engine did not report how much of the prompt was "
                "cached."
            ),
            took=Quantity(stage.duration_ms),
        )
    return Finding(
        gettext_noop(
            "Slow engine: {took} ms, although only {uncached} tokens were not cached. "
            "In-flight requests of this gateway at the replica: {others}."
        ),
        took=Quantity(stage.duration_ms),
        uncached=Quantity(record.prompt_tokens - record.cached_tokens),
        others=Quantity(record.num_in_flight_at_replica or 0),
    )


def _explain_cold_prompt(record: CompletionRecord) -> Iterator[Finding]:
    if record.cached_tokens is None:
        return
    uncached = record.prompt_tokens - record.cached_tokens
    if uncached >= _MANY_UNCACHED_TOKENS:
        yield Finding(
            gettext_noop("Cold cache: the engine prefilled {uncached} of {tokens} prompt tokens."),
            uncached=Quantity(uncached),
            tokens=Quantity(record.prompt_tokens),
        )


def _explain_queueing(record: CompletionRecord) -> Iterator[Finding]:
    if (
        record.num_in_flight_at_replica is not None
        and record.num_in_flight_at_replica >= _MANY_AT_REPLICA
    ):
        yield Finding(
            gettext_noop("Busy replica: {requests} requests were in flight."),
            requests=Quantity(record.num_in_flight_at_replica),
        )


def _explain_filter(_record: CompletionRecord, stage: LatencyStage) -> Iterator[Finding]:
    if stage.is_over:
        yield Finding(
            gettext_noop(
                "Slow filter: it needed {took} ms of generated text before it could show "
                "anything, for example because of white space or an incomplete line."
            ),
            took=Quantity(stage.duration_ms),
        )


def _explain_stream(record: CompletionRecord, stage: LatencyStage) -> Iterator[Finding]:
    if record.generated_tokens < _MIN_STREAMED_TOKENS:
        return
    # The first token belongs to an earlier stage.
    token_ms = stage.duration_ms / (record.generated_tokens - 1)
    if token_ms > _SLOW_TOKEN_MS:
        yield Finding(
            gettext_noop(
                "Slow client or slow decoding: {tokens} tokens at {each} ms each. "
                "Compare with other requests at this replica."
            ),
            tokens=Quantity(record.generated_tokens),
            each=Quantity(token_ms),
        )


Rule = Callable[[CompletionRecord, LatencyStage], Iterator[Finding]]
# The stage of the engine comes first, because it has most of the budget.
_RULES: Final[tuple[tuple[str, Rule], ...]] = (
    ("generate", _explain_generate),
    ("assemble", _explain_assemble),
    ("admit", _explain_admit),
    ("route", _explain_route),
    ("authenticate", _explain_authenticate),
    ("filter", _explain_filter),
    ("stream", _explain_stream),
)


_ENDED_EARLY: Final = MappingProxyType(
    {
        FinishReason.CANCELLED: gettext_noop(
            "Cancelled: the client cancelled or disconnected after {after} ms, in the "
            "stage {stage}."
        ),
        FinishReason.SUPERSEDED: gettext_noop(
            "Superseded: a newer request for the same file arrived after {after} ms, in "
            "the stage {stage}."
        ),
        FinishReason.ERROR: gettext_noop("Error: {code} after {after} ms, in the stage {stage}."),
    }
)
_REFUSED: Final = MappingProxyType(
    {
        FinishReason.SHED: gettext_noop(
            "Shed: the pool could not serve the request within its latency target."
        ),
        FinishReason.BUDGET_EXCEEDED: gettext_noop(
            "Budget exceeded: a hard budget of the tenant, a team or the user is used up."
        ),
    }
)


def _explain_ending(record: CompletionRecord, last: LatencyStage) -> list[Finding]:
    if wording := _ENDED_EARLY.get(record.finish_reason):
        after = Quantity(record.total_ms, 1)
        code = record.error_code or ""
        return [Finding(wording, after=after, stage=last.name, code=code)]
    if wording := _REFUSED.get(record.finish_reason):
        return [Finding(wording)]
    return list(_explain_truncation(record.finish_reason, record.filter_reason))


def _explain_truncation(finish_reason: FinishReason, reason: str | None) -> Iterator[Finding]:
    if finish_reason is FinishReason.LENGTH and reason == "engine_disconnected":
        yield Finding(
            gettext_noop(
                "Interrupted: the connection to the engine was lost, and no "
                "other engine could take over."
            )
        )
    elif finish_reason is FinishReason.FILTERED and not reason:
        yield Finding(gettext_noop("Filtered: nothing was left to show."))
    elif finish_reason is FinishReason.FILTERED and reason:
        yield Finding(gettext_noop("Filtered: {reason}."), reason=reason)
    elif reason:
        yield Finding(gettext_noop("Truncated by the filter: {reason}."), reason=reason)


def _explain_nothing_found(is_slow: bool) -> Finding:
    if is_slow:
        return Finding(
            gettext_noop(
                "Each stage stayed within its budget, but together they missed the target."
            )
        )
    return Finding(gettext_noop("No findings: each stage stayed within its budget."))
