"""Rows of the exports' pages."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from tenants.compliance.exports.jobs.queries import ExportView
from tenants.compliance.exports.jobs.state_machine import UNDER_WAY, JobState

# Kind of the <c-badge>, and its text.
_STATES: Final[dict[JobState, tuple[str, Promise]]] = {
    JobState.QUEUED: ("busy", _("Waiting")),
    JobState.RUNNING: ("busy", _("In progress")),
    JobState.FINISHED: ("good", _("Ready")),
    JobState.FAILED: ("bad", _("Failed")),
    JobState.CANCELLED: ("off", _("Cancelled")),
    JobState.EXPIRED: ("off", _("Expired")),
}
_SMALLEST_STEP: Final = timedelta(microseconds=1)
# Names of the file formats.
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
    title: str  # of the definition
    media: str  # name of the file's format
    kind: str  # of the state's <c-badge>
    state: Promise
    is_under_way: bool  # waiting or running
    is_ready: bool  # the file can be downloaded
    percent: int | None  # progress, 0 to 99; None: not under way, or the total is unknown
    last: datetime  # last moment of the period; `until` of the export is exclusive
    command: str  # shell command that verifies the file offline


def row_of(export: ExportView, titles: dict[str, str]) -> ExportRow:
    """Return the row. `titles` maps names of definitions to titles.

    A definition that this release no longer has is shown by its name.
    """
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
        last=export.until - _SMALLEST_STEP,
        command=f"manage.py verify_export {export.name} --public-key caret-signing-keys.json",
    )


def _percent_done(export: ExportView) -> int | None:
    """Return the progress. It stays below 100 while the file is encrypted and signed."""
    if export.state not in UNDER_WAY or not export.rows_expected:
        return None
    return min(99, 100 * export.rows_done // export.rows_expected)
