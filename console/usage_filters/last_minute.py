"""The figures of the last minute as text, for the page and its live updates."""

from typing import TypedDict

from django.utils import timezone
from django.utils.formats import date_format

from console.usage_filters.number_format import format_count, format_milliseconds, format_share
from tenants.security.authorization.actor import Actor
from tenants.usage.requests.last_minute import LastMinute, can_see_accepted

_NONE = "–"


class LastMinuteText(TypedDict, total=False):
    requests: str
    p50: str
    p99: str
    cached: str
    accepted: str  # missing if quality is not visible; "–": suppressed
    at: str


def format_last_minute(minute: LastMinute, actor: Actor) -> LastMinuteText:
    prompt_tokens, cached = minute.prompt_tokens_with_cache_info, minute.cached_tokens
    values = LastMinuteText(
        requests=format_count(minute.requests),
        p50=_format_ms(minute.first_token_p50_ms),
        p99=_format_ms(minute.first_token_p99_ms),
        cached=format_share(cached / prompt_tokens) if prompt_tokens else _NONE,
        at=date_format(timezone.localtime(minute.until), "H:i:s"),
    )
    if can_see_accepted(actor):
        values["accepted"] = _NONE if minute.accepted is None else format_count(minute.accepted)
    return values


def _format_ms(value: float | None) -> str:
    return _NONE if value is None else format_milliseconds(value)
