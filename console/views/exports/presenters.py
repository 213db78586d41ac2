"""Presentation of exports."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from tenants.compliance.exports.jobs.queries import ExportView
from tenants.compliance.exports.jobs.state_machine import UNDER_WAY, JobState

_STATES: Final[dict[JobState, tuple[str, Promise]]] = {
    JobState.QUEUED: ("busy", _("Waiting")),
    JobState.RUNNING: ("busy", _("In progress")),
    JobState.FINISHED: ("good", _("Ready")),
    JobState.FAILED: ("bad", _("Failed")),
    JobState.CANCELLED: ("off", _("Cancelled")),
    JobState.EXPIRED: ("off", _("Expired")),
}
_A_MOMENT: Final = timedelta(microseconds=1)
MEDIA: Final = {
    "csv": "CSV",
    "ndjson": "NDJSON",
    "parquet": "Parquet",
    "xlsx": "Excel",
    "zip": "ZIP",
}


@dataclass(frozen=True, slots=True)
class ExportRow:
    export: ExportView
    title: str
    media: str
    kind: str  # kind of <c-badge>
    state: Promise
    is_under_way: bool
    is_ready: bool
    percent: int | None  # None: not being built, or total unknown
    last: datetime  # a time on the last day
    command: str  # verifies the file


def row_of(export: ExportView, titles: dict[str, str]) -> ExportRow:
    """Return the row. `titles` is by definition; a removed definition is shown by its name."""
    kind, state = _STATES[export.state]
    return ExportRow(
        export=export,
        title=titles.get(export.definition, export.definition),
        media=MEDIA.get(export.media, export.media),
        kind=kind,
        state=state,
        is_under_way=export.state in UNDER_WAY,
        is_ready=export.state is JobState.FINISHED,
        percent=_percent_done(export),
        last=export.until - _A_MOMENT,
        command=f"manage.py verify_export {export.name} --public-key caret-signing-keys.json",
    )


def _percent_done(export: ExportView) -> int | None:
    """Return the progress, below 100 until encryption and signature are done."""
    if export.state not in UNDER_WAY or not export.rows_expected:
        return None
    return min(99, 100 * export.rows_done // export.rows_expected)
