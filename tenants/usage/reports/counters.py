"""Counters of a group of completions, and of the characters typed by hand.

Counters of several hours, days or groups can be added up. Numbers of active users cannot, because
a user may be active on several days. Reports count them from the sets of users.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from operator import attrgetter
from typing import Final

from tenants.models.rollup import ROLLUP_COLUMNS


class CounterSource(StrEnum):
    """The source of a counter. Clients may report wrong values."""

    SERVER = "observed by the server"
    CLIENT = "reported by the client"


@dataclass(frozen=True, slots=True)
class UsageCounters:
    # Observed by the server.
    requests: int = 0
    completed: int = 0  # ended by the model, by the filter at a good point, or at max_tokens
    cancelled: int = 0  # cancelled by the client, or superseded by its next request
    shed: int = 0
    filtered: int = 0  # withheld by the filter
    errors: int = 0
    suggestions: int = 0  # completed with text
    suggested_chars: int = 0
    suggested_lines: int = 0
    parsed: int = 0  # checked by a parser, and neither cancelled nor failed
    parsed_valid: int = 0  # of `parsed`: neither truncated nor withheld by the parser
    prompt_tokens: int = 0
    prompt_tokens_with_cache_info: int = 0  # of requests whose engine reported cached tokens
    cached_tokens: int = 0  # of `prompt_tokens_with_cache_info`
    generated_tokens: int = 0
    # Reported by the client. Each counter counts a suggestion once.
    shown: int = 0  # includes accepted and rejected suggestions
    seen: int = 0  # shown for at least 750 ms, or accepted
    accepted: int = 0  # as a whole
    partially_accepted: int = 0  # only in parts
    rejected: int = 0
    shown_chars: int = 0
    seen_chars: int = 0
    accepted_chars: int = 0
    shown_lines: int = 0
    accepted_lines: int = 0
    accepted_tokens: int = 0  # generated tokens x share of accepted characters
    # checked_N: accepted suggestions that were checked N seconds after their acceptance.
    # retained_N: those of checked_N that still had at least 67% of their text.
    checked_15: int = 0
    retained_15: int = 0
    checked_30: int = 0
    retained_30: int = 0
    checked_120: int = 0
    retained_120: int = 0
    checked_300: int = 0
    retained_300: int = 0
    checked_600: int = 0
    retained_600: int = 0
    checked_1800: int = 0
    retained_1800: int = 0
    typed_chars: int = 0  # by hand


COUNTER_NAMES: Final = ROLLUP_COLUMNS  # the fields of UsageCounters, in order
_FIRST_REPORTED: Final = COUNTER_NAMES.index("shown")  # clients report this and all later ones
SOURCES: Final = {
    name: CounterSource.SERVER if index < _FIRST_REPORTED else CounterSource.CLIENT
    for index, name in enumerate(COUNTER_NAMES)
}


def sum_counters(parts: Iterable[UsageCounters]) -> UsageCounters:
    values = [_values(part) for part in parts]
    return UsageCounters(*map(sum, zip(*values, strict=True)))


_values: Final = attrgetter(*COUNTER_NAMES)
