"""Generated requests, as gateways would report them. Pure: rows are created but not stored.

Times and tokens have the order of magnitude of real engines, but they are not measured.
"""

from dataclasses import dataclass
from datetime import datetime
from math import exp
from random import Random
from typing import Final
from uuid import UUID

from caret.contracts.policy import Mode, Tier, Trigger
from caret.contracts.usage import FinishReason
from caret.foundation.clock import to_unix_ms
from caret.foundation.ids import TenantId
from tenants.demo.traffic.traffic_pattern import TrafficLevel
from tenants.models import UsageRecord

# EXPERIMENT/VARIANT. Suggestions of the first variant are accepted more often.
VARIANTS: Final = ("suffix-window/wide", "suffix-window/narrow")
_MODELS: Final = {Tier.FAST: "coder-1.5b", Tier.QUALITY: "coder-14b"}
_REPLICAS: Final = {
    Tier.FAST: ("fast-0:8000", "fast-1:8000", "fast-2:8000"),
    Tier.QUALITY: ("quality-0:8000", "quality-1:8000"),
}
_FILTER_MS: Final = 3.0  # from the engine's first token to the first text
# The generator chooses from the following tuples at random, so a repeated reason is more frequent.
_TRUNCATION_REASONS: Final = (  # "": not truncated
    "",
    "",
    "",
    "line_end",
    "block_end",
    "repeats_suffix",
    "syntax",
    "blank_line",
)
_WITHHOLDING_REASONS: Final = ("syntax", "syntax", "repetition", "secret", "public_code")
_ERRORS: Final = (
    "path_excluded",
    "path_excluded",
    "feature_disabled",
    "rate_limited",
    "internal_error",
)
_CHARS_PER_TOKEN: Final = 3.4
CHARS_PER_LINE: Final = 42


@dataclass(frozen=True, slots=True)
class RequestProfile:
    """A kind of request. Token counts and the time to the first token are medians."""

    mode: Mode
    tier: Tier
    weight: int  # relative frequency
    protocol: str  # as in UsageRecord
    prompt_tokens: int
    generated_tokens: int
    first_token_ms: float  # of the engine
    token_ms: float  # for each generated token


# The numbers: weight, prompt tokens, generated tokens, first_token_ms and token_ms.
_PROFILES: Final = (
    RequestProfile(Mode.INLINE, Tier.FAST, 74, "stream", 1_750, 13, 46, 4.5),
    RequestProfile(Mode.FIM, Tier.FAST, 7, "infill", 1_400, 22, 52, 4.5),
    RequestProfile(Mode.INLINE, Tier.FAST, 4, "openai", 1_500, 18, 58, 4.5),
    RequestProfile(Mode.BLOCK, Tier.QUALITY, 8, "stream", 2_300, 64, 165, 11),
    RequestProfile(Mode.DOCSTRING, Tier.QUALITY, 3, "stream", 1_900, 48, 150, 11),
    RequestProfile(Mode.CHAT, Tier.QUALITY, 4, "chat", 3_100, 210, 480, 12),
)
_PROFILE_WEIGHTS: Final = tuple(profile.weight for profile in _PROFILES)
_FINISH_REASONS: Final = (
    FinishReason.STOP,
    FinishReason.LENGTH,
    FinishReason.SUPERSEDED,
    FinishReason.CANCELLED,
    FinishReason.FILTERED,
    FinishReason.SHED,
    FinishReason.ERROR,
)
# The relative frequency of each of _FINISH_REASONS, usually and while engines are overloaded.
_USUAL_WEIGHTS: Final = (61.0, 6.0, 17.0, 11.0, 3.0, 0.3, 0.8)
_OVERLOADED_WEIGHTS: Final = (24.0, 3.0, 21.0, 14.0, 2.0, 32.0, 4.0)
# No replica serves requests with these finish reasons.
_UNSERVED: Final = frozenset({FinishReason.SHED, FinishReason.ERROR, FinishReason.BUDGET_EXCEEDED})


@dataclass(frozen=True, slots=True)
class DemoDeveloper:
    """A user or a service that sends requests."""

    tenant_id: TenantId
    user_id: UUID | None  # None: a service
    key_id: UUID
    editor: str  # "": a service
    languages: tuple[str, ...]  # the first is the most frequent
    pace: float  # mean number of requests on a working day
    acceptance_share: float  # usual share of shown suggestions that are accepted, 0 to 1
    is_cut_off: bool = False  # the hard budget is used up


def generate_request(
    developer: DemoDeveloper, at: datetime, level: TrafficLevel, random: Random
) -> UsageRecord:
    (profile,) = random.choices(_PROFILES, _PROFILE_WEIGHTS)
    finish_reason = _choose_finish_reason(developer, level, random)
    row = _make_request(developer, profile, at, random)
    row.finish_reason = finish_reason
    if finish_reason is FinishReason.ERROR:
        row.error_code = random.choice(_ERRORS)
    if finish_reason not in _UNSERVED:
        _fill_served_stages(row, profile, level, random)
    return row


def _choose_finish_reason(
    developer: DemoDeveloper, level: TrafficLevel, random: Random
) -> FinishReason:
    if developer.is_cut_off:
        return FinishReason.BUDGET_EXCEEDED
    (finish_reason,) = random.choices(
        _FINISH_REASONS, _OVERLOADED_WEIGHTS if level.is_overloaded else _USUAL_WEIGHTS
    )
    return finish_reason


def _make_request(
    developer: DemoDeveloper, profile: RequestProfile, at: datetime, random: Random
) -> UsageRecord:
    is_automatic = profile.mode is Mode.INLINE and random.random() < 0.9
    # The first language has the highest weight, and the last one has the weight 1.
    language_weights = range(len(developer.languages), 0, -1)
    return UsageRecord(
        tenant_id=UUID(developer.tenant_id),
        occurred_at=at,
        request_id=_generate_request_id(at, random),
        user_id=developer.user_id,
        key_id=developer.key_id,
        protocol=profile.protocol,
        mode=profile.mode.value,
        language=random.choices(developer.languages, language_weights)[0],
        tier=profile.tier.value,
        pool="",
        replica="",
        error_code="",
        prompt_tokens=0,
        generated_tokens=0,
        total_ms=round(random.uniform(0.4, 2.0), 2),
        trigger=(Trigger.AUTOMATIC if is_automatic else Trigger.MANUAL).value,
        variant="",
        filter_reason="",
        num_files=0,
        num_snippets=0,
        authenticated_ms=round(random.uniform(0.05, 0.3), 3),
        admitted_ms=round(random.uniform(0.3, 0.9), 3),
        editor=developer.editor,
        model="",
        num_chars=0,
        num_lines=0,
        is_syntax_checked=False,
    )


def _fill_served_stages(
    row: UsageRecord, profile: RequestProfile, level: TrafficLevel, random: Random
) -> None:
    """Add the values of the stages that the request reached: replica, timings, tokens and text."""
    row.pool = profile.tier.value
    row.replica = random.choice(_REPLICAS[profile.tier])
    row.model = _MODELS[profile.tier]
    row.variant = VARIANTS[row.key_id.int % len(VARIANTS)]
    row.num_files, row.num_snippets = random.randint(0, 6), random.choice((0, 0, 0, 2, 3))
    row.num_in_flight_at_replica = random.randint(0, 9) * (4 if level.is_overloaded else 1)
    row.prompt_tokens = _draw_log_normal(profile.prompt_tokens, 0.35, random)
    row.assemble_ms = round(1.0 + row.prompt_tokens / 900 * random.uniform(0.7, 1.3), 2)
    row.routed_ms = round(row.assemble_ms + random.uniform(0.1, 0.5), 2)
    row.total_ms = row.routed_ms
    if _end_if_client_left(row, random):
        return
    cached_share = min(0.995, max(0.0, random.gauss(level.hit_rate, 0.12)))
    # The more of the prompt is cached, the faster the engine answers.
    _fill_generation(row, profile, random, slowness=level.slowness * (1.5 - 0.6 * cached_share))
    if row.finish_reason in (FinishReason.STOP, FinishReason.LENGTH, FinishReason.FILTERED):
        row.cached_tokens = int(row.prompt_tokens * cached_share)
        _fill_filter_result(row, profile, random)


def _end_if_client_left(row: UsageRecord, random: Random) -> bool:
    """Decide whether the client left before the first token, and return this decision.

    If it left, add the time that it waited to the row.
    """
    has_left = (
        row.finish_reason in (FinishReason.SUPERSEDED, FinishReason.CANCELLED)
        and random.random() < 0.6
    )
    if has_left:
        row.total_ms = round(row.total_ms + random.uniform(5, 40), 2)
    return has_left


def _fill_generation(
    row: UsageRecord, profile: RequestProfile, random: Random, *, slowness: float
) -> None:
    row.engine_ms = round(profile.first_token_ms * slowness * exp(random.gauss(0, 0.28)), 2)
    row.first_token_ms = round(row.engine_ms + (row.routed_ms or 0.0) + _FILTER_MS, 2)
    row.generated_tokens = max(1, _draw_log_normal(profile.generated_tokens, 0.6, random))
    row.total_ms = round(row.first_token_ms + profile.token_ms * slowness * row.generated_tokens, 2)


def _fill_filter_result(row: UsageRecord, profile: RequestProfile, random: Random) -> None:
    row.is_syntax_checked = profile.mode is not Mode.CHAT
    if row.finish_reason == FinishReason.FILTERED:
        row.filter_reason = random.choice(_WITHHOLDING_REASONS)
        return
    row.filter_reason = (
        random.choice(_TRUNCATION_REASONS) if row.finish_reason == FinishReason.STOP else ""
    )
    row.num_chars = max(2, int(row.generated_tokens * random.gauss(_CHARS_PER_TOKEN, 0.4)))
    num_full_lines = 0 if profile.mode is Mode.INLINE else row.num_chars // CHARS_PER_LINE
    row.num_lines = num_full_lines + 1


def _draw_log_normal(median: float, deviation: float, random: Random) -> int:
    """Return a log-normal value as an integer. `deviation` is the deviation of its logarithm."""
    return int(median * exp(random.gauss(0, deviation)))


def _generate_request_id(at: datetime, random: Random) -> UUID:
    """Return an ID in the format of caret.foundation.ids, repeatable with the same `random`."""
    # A UUIDv7: 48 bits of time, version 7, 12 random bits, the variant 0b10, and 62 random bits.
    bits = random.getrandbits(74)
    value = ((to_unix_ms(at) & 0xFFFFFFFFFFFF) << 80) | (0x7 << 76) | ((bits >> 62) << 64)
    return UUID(int=value | (0b10 << 62) | (bits & 0x3FFFFFFFFFFFFFFF))
