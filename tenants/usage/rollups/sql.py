"""SQL statements that count an hour from its records, and a day from its hours.

Parameters: %(tenant)s; %(start)s and %(end)s, the half-open period; %(first_id)s and %(last_id)s,
the bounds of the period's request IDs; %(services)s, the user ID that rollups have for service
keys. Aliases: u is a completion (in COUNT_LATENCY_DAY, the row of an hour), t are the combined
outcomes of a suggestion, o is one outcome.

The outcomes of a suggestion are combined first, so that an outcome that was reported twice, or by
two gateways, counts once. Outcomes count at the time of their completion, even if they were
reported later.
"""

from typing import Final

from caret.contracts.usage import SPANS_S
from tenants.models.rollup import CHECKED_AFTER, RETAINED_AFTER, ROLLUP_COLUMNS
from tenants.usage.rollups.latency_histogram import build_bucket_sql

_GROUP_COLUMNS: Final = ("user_id", "editor", "language", "model", "variant")
_USAGE_COLUMNS: Final = ", ".join((*_GROUP_COLUMNS, *ROLLUP_COLUMNS))

MIN_SEEN_MS: Final = 750  # Cody's value: hardly any user reads a suggestion in less time
MAX_EDIT_SHARE: Final = 0.33  # Cody's value: at least 67% of the text must be left
_IS_COMPLETED = "u.finish_reason IN ('stop', 'length')"
_HAS_TEXT = f"{_IS_COMPLETED} AND u.num_chars > 0"
_IS_SYNTAX_CHECKED = "u.is_syntax_checked AND u.finish_reason IN ('stop', 'length', 'filtered')"
_IS_ACCEPTED = "(t.accepted OR t.partly)"  # as a whole or in parts
# t.stood_ms: the longest reported time for which the suggestion was shown.
_IS_SEEN = f"({_IS_ACCEPTED} OR (t.shown AND t.stood_ms >= {MIN_SEEN_MS}))"
# Partial acceptances may overlap, so they are limited to the suggestion.
_ACCEPTED_CHARS = "least(u.num_chars, t.accepted_chars)"
_ACCEPTED_LINES = "least(u.num_lines, t.accepted_lines)"


def _count_sql(condition: str) -> str:
    return f"count(*) FILTER (WHERE {condition})"


def _sum_sql(value: str, condition: str = "true") -> str:
    return f"coalesce(sum({value}) FILTER (WHERE {condition}), 0)"


_COMPLETION_COUNTERS: Final = {
    "requests": "count(*)",
    "completed": _count_sql(_IS_COMPLETED),
    "cancelled": _count_sql("u.finish_reason IN ('cancelled', 'superseded')"),
    "shed": _count_sql("u.finish_reason = 'shed'"),
    "filtered": _count_sql("u.finish_reason = 'filtered'"),
    "errors": _count_sql("u.finish_reason = 'error'"),
    "suggestions": _count_sql(_HAS_TEXT),
    "suggested_chars": _sum_sql("u.num_chars", _HAS_TEXT),
    "suggested_lines": _sum_sql("u.num_lines", _HAS_TEXT),
    "parsed": _count_sql(_IS_SYNTAX_CHECKED),
    "parsed_valid": _count_sql(f"{_IS_SYNTAX_CHECKED} AND u.filter_reason <> 'syntax'"),
    "prompt_tokens": _sum_sql("u.prompt_tokens"),
    "prompt_tokens_with_cache_info": _sum_sql("u.prompt_tokens", "u.cached_tokens IS NOT NULL"),
    "cached_tokens": _sum_sql("u.cached_tokens"),
    "generated_tokens": _sum_sql("u.generated_tokens"),
    "shown": _count_sql("t.shown"),
    "seen": _count_sql(_IS_SEEN),
    "accepted": _count_sql("t.accepted"),
    "partially_accepted": _count_sql("t.partly AND NOT t.accepted"),
    "rejected": _count_sql(f"t.rejected AND NOT {_IS_ACCEPTED}"),
    "shown_chars": _sum_sql("coalesce(t.shown_chars, u.num_chars)", "t.shown"),
    "seen_chars": _sum_sql("coalesce(t.shown_chars, u.num_chars)", _IS_SEEN),
    "accepted_chars": _sum_sql(_ACCEPTED_CHARS, _IS_ACCEPTED),
    "shown_lines": _sum_sql("coalesce(t.shown_lines, u.num_lines)", "t.shown"),
    "accepted_lines": _sum_sql(_ACCEPTED_LINES, _IS_ACCEPTED),
    "accepted_tokens": _sum_sql(
        f"round(u.generated_tokens::numeric * {_ACCEPTED_CHARS} / nullif(u.num_chars, 0))",
        _IS_ACCEPTED,
    ),
    **{CHECKED_AFTER[span]: _count_sql(f"t.checked_{span}") for span in SPANS_S},
    **{RETAINED_AFTER[span]: _count_sql(f"t.retained_{span}") for span in SPANS_S},
}

_IMPLIES_SHOWN = "o.event IN ('shown', 'accepted', 'partially_accepted', 'rejected')"
_IS_ACCEPTANCE = "o.event IN ('accepted', 'partially_accepted')"
_PERSISTED = ",\n".join(
    f"bool_or(o.span_s = {span}) AS checked_{span},"
    f" bool_or(o.span_s = {span} AND o.edited_ratio <= {MAX_EDIT_SHARE}) AS retained_{span}"
    for span in SPANS_S
)
_INSERT = "INSERT INTO {table} (tenant_id, starts_at, {columns})"

# Statements contain only names and numbers of the code, never a record's values.
COUNT_COMPLETIONS: Final = f"""
WITH suggestion_outcomes AS (
    SELECT o.request_id,
        bool_or({_IMPLIES_SHOWN}) AS shown,
        bool_or(o.event = 'accepted') AS accepted,
        bool_or(o.event = 'partially_accepted') AS partly,
        bool_or(o.event = 'rejected') AS rejected,
        max(o.after_ms) FILTER (WHERE {_IMPLIES_SHOWN}) AS stood_ms,
        max(o.chars) FILTER (WHERE o.event = 'shown') AS shown_chars,
        max(o.lines) FILTER (WHERE o.event = 'shown') AS shown_lines,
        sum(o.chars) FILTER (WHERE {_IS_ACCEPTANCE}) AS accepted_chars,
        sum(o.lines) FILTER (WHERE {_IS_ACCEPTANCE}) AS accepted_lines,
        {_PERSISTED}
    FROM tenants_outcome o
    WHERE o.tenant_id = %(tenant)s AND o.request_id BETWEEN %(first_id)s AND %(last_id)s
    GROUP BY o.request_id
), completion AS (
    SELECT coalesce(user_id, %(services)s) AS user_id, coalesce(editor, '') AS editor, language,
        coalesce(model, '') AS model, coalesce(variant, '') AS variant, request_id, finish_reason,
        coalesce(num_chars, 0) AS num_chars, coalesce(num_lines, 0) AS num_lines,
        coalesce(is_syntax_checked, false) AS is_syntax_checked,
        coalesce(filter_reason, '') AS filter_reason,
        prompt_tokens, cached_tokens, generated_tokens
    FROM tenants_usage_record
    WHERE tenant_id = %(tenant)s AND occurred_at >= %(start)s AND occurred_at < %(end)s
)
{_INSERT.format(table="tenants_usage_hour", columns=_USAGE_COLUMNS)}
SELECT %(tenant)s, %(start)s, {", ".join(f"u.{column}" for column in _GROUP_COLUMNS)},
    {", ".join(_COMPLETION_COUNTERS.get(name, "0") for name in ROLLUP_COLUMNS)}
FROM completion u LEFT JOIN suggestion_outcomes t ON t.request_id = u.request_id
GROUP BY {", ".join(f"u.{column}" for column in _GROUP_COLUMNS)}
"""  # noqa: S608

# Typing reports have no model and no variant: these columns get empty texts.
COUNT_TYPED: Final = f"""
{_INSERT.format(table="tenants_usage_hour", columns=_USAGE_COLUMNS)}
SELECT %(tenant)s, %(start)s, coalesce(user_id, %(services)s), editor, language, '', '',
    {", ".join("sum(chars)" if name == "typed_chars" else "0" for name in ROLLUP_COLUMNS)}
FROM tenants_typing_report
WHERE tenant_id = %(tenant)s AND occurred_at >= %(start)s AND occurred_at < %(end)s
GROUP BY coalesce(user_id, %(services)s), editor, language
ON CONFLICT (tenant_id, starts_at, {", ".join(_GROUP_COLUMNS)})
DO UPDATE SET typed_chars = tenants_usage_hour.typed_chars + excluded.typed_chars
"""  # noqa: S608

COUNT_DAY: Final = f"""
{_INSERT.format(table="tenants_usage_day", columns=_USAGE_COLUMNS)}
SELECT %(tenant)s, %(start)s, {", ".join(_GROUP_COLUMNS)},
    {", ".join(f"sum({name})" for name in ROLLUP_COLUMNS)}
FROM tenants_usage_hour
WHERE tenant_id = %(tenant)s AND starts_at >= %(start)s AND starts_at < %(end)s
GROUP BY {", ".join(_GROUP_COLUMNS)}
"""  # noqa: S608

# `size` is the number of a bucket, `number` is the number of requests in it. The statements below
# join the arrays of a mode to each row of this mode. `min` then takes the arrays from the group.
_LATENCY_BUCKETS: Final = """
counted AS (
    SELECT mode, array_agg(size ORDER BY size) AS sizes, array_agg(number ORDER BY size) AS counts
    FROM bucket_counts GROUP BY mode
)
"""
_DISPLAY_LATENCY_BUCKETS: Final = """
displayed AS (
    SELECT mode, array_agg(size ORDER BY size) AS sizes, array_agg(number ORDER BY size) AS counts
    FROM display_bucket_counts GROUP BY mode
)
"""
_LATENCY_COLUMNS: Final = (
    "mode, sizes, counts, in_flight_at_replica, sent, display_sizes, display_counts"
)
_DISPLAY_VALUES: Final = (
    "coalesce(min(displayed.sizes), '{}'), coalesce(min(displayed.counts), '{}')"
)

COUNT_LATENCY: Final = f"""
WITH u AS MATERIALIZED (
    SELECT request_id, mode, finish_reason, first_token_ms, num_in_flight_at_replica
    FROM tenants_usage_record
    WHERE tenant_id = %(tenant)s AND occurred_at >= %(start)s AND occurred_at < %(end)s
), bucket_counts AS (
    SELECT mode, {build_bucket_sql("first_token_ms")} AS size, count(*) AS number FROM u
    WHERE {_IS_COMPLETED} AND first_token_ms IS NOT NULL GROUP BY 1, 2
), {_LATENCY_BUCKETS}, suggestion_outcomes AS (
    SELECT request_id, min(display_ms) AS display_ms FROM tenants_outcome
    WHERE tenant_id = %(tenant)s AND request_id BETWEEN %(first_id)s AND %(last_id)s
        AND display_ms IS NOT NULL
    GROUP BY request_id
), display_bucket_counts AS (
    SELECT mode, {build_bucket_sql("display_ms")} AS size, count(*) AS number
    FROM u JOIN suggestion_outcomes USING (request_id) GROUP BY 1, 2
), {_DISPLAY_LATENCY_BUCKETS}
{_INSERT.format(table="tenants_latency_hour", columns=_LATENCY_COLUMNS)}
SELECT %(tenant)s, %(start)s, u.mode,
    coalesce(min(counted.sizes), '{{}}'), coalesce(min(counted.counts), '{{}}'),
    {_sum_sql("num_in_flight_at_replica")}, count(num_in_flight_at_replica), {_DISPLAY_VALUES}
FROM u LEFT JOIN counted USING (mode) LEFT JOIN displayed USING (mode) GROUP BY u.mode
"""  # noqa: S608

COUNT_LATENCY_DAY: Final = f"""
WITH u AS MATERIALIZED (
    SELECT * FROM tenants_latency_hour
    WHERE tenant_id = %(tenant)s AND starts_at >= %(start)s AND starts_at < %(end)s
), bucket_counts AS (
    SELECT mode, size, sum(number)::bigint AS number
    FROM u CROSS JOIN unnest(sizes, counts) AS pair (size, number) GROUP BY 1, 2
), {_LATENCY_BUCKETS}, display_bucket_counts AS (
    SELECT mode, size, sum(number)::bigint AS number
    FROM u CROSS JOIN unnest(display_sizes, display_counts) AS pair (size, number) GROUP BY 1, 2
), {_DISPLAY_LATENCY_BUCKETS}
{_INSERT.format(table="tenants_latency_day", columns=_LATENCY_COLUMNS)}
SELECT %(tenant)s, %(start)s, u.mode,
    coalesce(min(counted.sizes), '{{}}'), coalesce(min(counted.counts), '{{}}'),
    sum(in_flight_at_replica), sum(sent), {_DISPLAY_VALUES}
FROM u LEFT JOIN counted USING (mode) LEFT JOIN displayed USING (mode) GROUP BY u.mode
"""  # noqa: S608

# The requests and tokens of the tenant, by UTC day and pool.
COUNT_POOLS: Final = f"""
WITH suggestion_outcomes AS (
    SELECT o.request_id,
        bool_or(o.event = 'accepted') AS accepted,
        bool_or(o.event = 'partially_accepted') AS partly,
        sum(o.chars) AS accepted_chars
    FROM tenants_outcome o
    WHERE o.tenant_id = %(tenant)s AND o.request_id BETWEEN %(first_id)s AND %(last_id)s
        AND {_IS_ACCEPTANCE}
    GROUP BY o.request_id
)
SELECT (u.occurred_at AT TIME ZONE 'UTC')::date AS day, u.pool, count(*),
    {_COMPLETION_COUNTERS["prompt_tokens"]}, {_COMPLETION_COUNTERS["generated_tokens"]},
    {_COMPLETION_COUNTERS["accepted_tokens"]}
FROM tenants_usage_record u LEFT JOIN suggestion_outcomes t ON t.request_id = u.request_id
WHERE u.tenant_id = %(tenant)s AND u.occurred_at >= %(start)s AND u.occurred_at < %(end)s
GROUP BY day, u.pool
"""  # noqa: S608

# True for an hour that has records. An hour without records keeps its counts, because the records
# may have been purged.
HAS_RECORDS: Final = " OR ".join(
    f"EXISTS (SELECT FROM {table} WHERE tenant_id = %(tenant)s"
    " AND occurred_at >= %(start)s AND occurred_at < %(end)s)"
    for table in ("tenants_usage_record", "tenants_typing_report")
)
