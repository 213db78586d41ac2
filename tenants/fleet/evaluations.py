"""Reports of `manage.py evaluate` that operators keep, to compare models and layouts over time.

A report contains scores, but no code. `evaluate` belongs to the data plane and has no database, so
it prints its report. `manage.py store_evaluation` reads and stores the report.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final
from uuid import UUID

import msgspec

from tenants.base.errors import InvalidValue, NotFound
from tenants.base.pagination import (
    Page,
    PagePosition,
    build_page,
    decode_cursor,
    fetch_page_rows,
    map_page,
)
from tenants.base.validation.text import validate_text
from tenants.models import Evaluation

MAX_TITLE_CHARS: Final = 120
MAX_REPORT_BYTES: Final = 1_000_000  # a report has about 5 KB
# Without control characters: Postgres cannot store NUL, which JSON can contain.
_Name = Annotated[str, msgspec.Meta(max_length=300, pattern=r"^[^\x00-\x1f]*$")]
_Number = Annotated[float, msgspec.Meta(ge=-1e9, le=1e9)]
_Count = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]


class Score(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A share or a mean, with its 95% interval."""

    value: _Number
    low: _Number | None  # None: there is only one task, so there is no interval
    high: _Number | None  # None if `low` is None
    num_tasks: _Count  # tasks to which the score applies


class ScoreDifference(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The difference of two pools' scores, with its 95% interval.

    It is the mean, over the tasks, of the second pool's score minus the first pool's score.
    """

    value: _Number
    low: _Number | None  # None: no interval, as in Score
    high: _Number | None
    num_tasks: _Count  # tasks to which the score applies in both pools
    is_significant: bool  # the interval excludes zero


class Percentiles(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    p50: _Number
    p95: _Number


class PoolLatency(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The latencies of a pool's completions. None: fewer than two completions were measured."""

    first_text_ms: Percentiles | None
    total_ms: Percentiles | None


# By the name of the score, such as "exact_match".
Scores = Annotated[dict[_Name, Score], msgspec.Meta(max_length=20)]
# By the name of the group of tasks.
ScoresByGroup = Annotated[dict[_Name, Scores], msgspec.Meta(max_length=200)]


class PoolReport(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pool: _Name  # NAME or NAME:LAYOUT, as `evaluate` was called
    num_tasks: _Count
    num_errors: _Count  # tasks whose request failed
    num_empty: _Count  # tasks whose completion has no text
    scores: Scores
    latency: PoolLatency
    by_kind: ScoresByGroup  # by the kind of the text to complete, such as a single line
    by_language: ScoresByGroup
    by_pattern: ScoresByGroup  # by the kind of code at the cursor, such as imports
    model: _Name = ""  # "": from a release that did not report it


class EvaluationReport(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    suite: _Name  # "infilling", or the file of an exam (a public set of tasks)
    pools: Annotated[tuple[PoolReport, ...], msgspec.Meta(min_length=1, max_length=2)]
    # By the name of the score; empty if the report has one pool.
    difference: Annotated[dict[_Name, ScoreDifference], msgspec.Meta(max_length=20)] = {}


@dataclass(frozen=True, slots=True)
class EvaluationView:
    id: UUID
    title: str
    created_at: datetime
    report: EvaluationReport


def store_evaluation(*, report: bytes, title: str | None, now: datetime) -> EvaluationView:
    """Store a report as `evaluate` printed it.

    If `title` is None, the names of the report's pools are its title. Raises InvalidValue.
    """
    if len(report) > MAX_REPORT_BYTES:
        raise InvalidValue("report", "A report has at most {most:,} bytes.", most=MAX_REPORT_BYTES)
    parsed = _parse_report(report)
    if title is None:
        title = " / ".join(pool.pool for pool in parsed.pools)[:MAX_TITLE_CHARS]
    row = Evaluation.objects.create(
        title=_parse_title(title), report=msgspec.to_builtins(parsed), created_at=now
    )
    return _to_view(row)


def list_evaluations(*, limit: int, cursor: str | None) -> Page[EvaluationView]:
    """Return a page of the reports, newest first. One query. Raises InvalidValue."""
    rows = fetch_page_rows(Evaluation.objects.all(), limit=limit, after=decode_cursor(cursor))
    page = build_page(
        rows, limit=limit, get_position=lambda row: PagePosition(row.created_at, row.id)
    )
    return map_page(page, _to_view)


def find_evaluation(evaluation_id: UUID) -> EvaluationView:
    """Return a report. Raises NotFound."""
    row = Evaluation.objects.filter(id=evaluation_id).first()
    if row is None:
        raise NotFound("This evaluation does not exist.")
    return _to_view(row)


def _parse_title(title: str) -> str:
    """Return the title without surrounding whitespace. Raises InvalidValue."""
    title = title.strip()
    validate_text("title", title)
    if not 1 <= len(title) <= MAX_TITLE_CHARS:
        raise InvalidValue(
            "title", "Enter a title of 1 to {most} characters.", most=MAX_TITLE_CHARS
        )
    return title


def _parse_report(report: bytes) -> EvaluationReport:
    """Decode a report from JSON. Raises InvalidValue."""
    try:
        return msgspec.json.decode(report, type=EvaluationReport)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidValue(
            "report", "This is not a report of manage.py evaluate: {problem}.", problem=str(error)
        ) from error


def _to_view(row: Evaluation) -> EvaluationView:
    return EvaluationView(
        row.id, row.title, row.created_at, msgspec.convert(row.report, EvaluationReport)
    )
