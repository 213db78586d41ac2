"""The figures of the last minute as text, for the page and its live updates."""

from typing import TypedDict

from django.utils import timezone
from django.utils.formats import date_format

from console.usage_filters.number_format import format_count, format_milliseconds, format_share
from tenants.security.authorization.actor import Actor
from tenants.usage.requests.last_minute import LastMinute, can_see_accepted

_NONE = "–"


class LastMinuteText(TypedDict, total=False):
    """The figures. "–" means that there is no value, or that it is suppressed."""

    requests: str  # number of requests
    p50: str  # time to the first token
    p99: str  # time to the first token
    cached: str  # cached share of the prompt tokens
    accepted: str  # accepted suggestions; missing if the actor may not see quality
    at: str  # end of the minute, as a time of day


def format_last_minute(minute: LastMinute, actor: Actor) -> LastMinuteText:
    prompt_tokens, cached_tokens = minute.prompt_tokens_with_cache_info, minute.cached_tokens
    values = LastMinuteText(
        requests=format_count(minute.requests),
        p50=_format_ms(minute.first_token_p50_ms),
        p99=_format_ms(minute.first_token_p99_ms),
        cached=format_share(cached_tokens / prompt_tokens) if prompt_tokens else _NONE,
        at=date_format(timezone.localtime(minute.until), "H:i:s"),
    )
    if can_see_accepted(actor):
        values["accepted"] = _NONE if minute.accepted is None else format_count(minute.accepted)
    return values


def _format_ms(value_ms: float | None) -> str:
    return _NONE if value_ms is None else format_milliseconds(value_ms)
