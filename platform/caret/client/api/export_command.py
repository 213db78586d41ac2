"""`caret export usage --month 2026-10`: creates an export, downloads it and checks its digest.

The export's proof is written beside it. `manage.py verify_export` verifies the signature of the
proof.
"""

import argparse
import hashlib
import json
import sys
import uuid
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any, Final

from caret.client.api.http_client import ApiClient, ApiError, ApiRequest
from caret.client.api.openapi_operations import IDEMPOTENCY_KEY

PATH: Final = "/api/v1/exports"
# Short names of the most frequent definitions. The full name of each definition is valid, too.
_SHORT_NAMES: Final = {"usage": "usage_records", "evidence": "evidence_pack"}
_FORMATS: Final = ("csv", "ndjson", "parquet", "xlsx", "zip")
# Pauses between two checks of whether the export is finished. They double each time.
_FIRST_PAUSE_S: Final = 0.5
_MAX_PAUSE_S: Final = 10.0
_UNFINISHED_STATES: Final = ("queued", "running")


class ChecksumMismatch(ValueError):
    """The downloaded file does not match its proof."""


def add_export(groups: Any) -> None:
    """Add the command `export` to the groups from the server's OpenAPI document."""
    command = groups.add_parser(
        "export",
        help="create an export, wait for it, download it and check it against its proof",
        description="Create an export, wait for it, download it and check it against its proof.",
    )
    command.add_argument(
        "definition", metavar="WHAT", help="usage, evidence, or a name from `exports definitions`"
    )
    period = command.add_mutually_exclusive_group(required=True)
    period.add_argument("--month", type=_parse_month, metavar="YYYY-MM")
    period.add_argument(
        "--days",
        type=_parse_day,
        nargs=2,
        metavar=("FROM", "TO"),
        help="the period; TO is the day after its last day",
    )
    command.add_argument(
        "--format", choices=_FORMATS, help="default: csv, or zip for evidence packs"
    )
    command.add_argument("--into", type=Path, default=Path(), metavar="FOLDER")
    command.add_argument("--max-wait-s", type=float, default=3_600.0, metavar="SECONDS")
    command.set_defaults(is_export=True)


def export(client: ApiClient, options: argparse.Namespace) -> dict[str, Any]:
    """Create and download an export; return its files and number of rows.

    Raises ServerUnreachable, ApiError, ChecksumMismatch, OSError.
    """
    body = _build_body(options)
    headers = {IDEMPOTENCY_KEY: str(uuid.uuid4())}
    job = client.request(ApiRequest("POST", PATH, headers=headers, body=body)).json()
    job = _wait_until_finished(client, job, options.max_wait_s)
    return _download_file(client, job, options.into)


def _build_body(options: argparse.Namespace) -> dict[str, str]:
    definition = _SHORT_NAMES.get(options.definition, options.definition)
    since, until = options.month or options.days
    return {
        "definition": definition,
        "format": options.format or ("zip" if definition == _SHORT_NAMES["evidence"] else "csv"),
        "since": since.isoformat(),
        "until": until.isoformat(),
    }


def _wait_until_finished(
    client: ApiClient, job: dict[str, Any], max_wait_s: float
) -> dict[str, Any]:
    """Return the finished job. Raises ApiError if it failed or takes too long."""
    waited_s, pause_s = 0.0, _FIRST_PAUSE_S
    while job["state"] in _UNFINISHED_STATES:
        if waited_s >= max_wait_s:
            detail = f"The export {job['id']} is not finished yet."
            raise ApiError(status=0, code="not_yet", detail=detail, field=None)
        _show_progress(job)
        client.sleep(pause_s)
        waited_s += pause_s
        pause_s = min(pause_s * 2, _MAX_PAUSE_S)
        job = client.request(ApiRequest("GET", f"{PATH}/{job['id']}")).json()
    if job["state"] != "finished":
        detail = job["error"] or f"The export is {job['state']}."
        raise ApiError(status=0, code=job["state"], detail=detail, field=None)
    return job


def _show_progress(job: dict[str, Any]) -> None:
    if sys.stderr.isatty():
        total = f" of {job['rows_expected']}" if job["rows_expected"] is not None else ""
        sys.stderr.write(f"{job['state']}: {job['rows_done']}{total} rows\n")


def _download_file(client: ApiClient, job: dict[str, Any], folder: Path) -> dict[str, Any]:
    proof = client.request(ApiRequest("GET", f"{PATH}/{job['id']}/proof")).content
    link = client.request(
        ApiRequest("POST", f"{PATH}/{job['id']}/link", is_repeatable=False)
    ).json()
    # The server chooses the name. Ignore folders in the name, so that the file stays in `folder`.
    file = folder / Path(job["name"]).name
    partial_file = file.with_name(f".{file.name}.part")
    try:
        _download_and_verify(client, link["path"], partial_file, json.loads(proof))
        partial_file.replace(file)
    finally:
        partial_file.unlink(missing_ok=True)
    proof_file = file.with_name(f"{file.name}.proof.json")
    proof_file.write_bytes(proof)
    return {"file": str(file), "proof": str(proof_file), "rows": job["rows_done"]}


def _download_and_verify(client: ApiClient, path: str, file: Path, proof: dict[str, Any]) -> None:
    digest, num_bytes = hashlib.sha256(), 0
    with file.open("wb") as out:
        for chunk in client.download(path):
            out.write(chunk)
            digest.update(chunk)
            num_bytes += len(chunk)
    if (num_bytes, digest.hexdigest()) != (proof["bytes"], proof["sha256"]):
        raise ChecksumMismatch("The download does not match its proof. Download it again.")


def _parse_month(text: str) -> tuple[datetime, datetime]:
    try:
        month = date.fromisoformat(f"{text}-01")
        # In December (12), the year grows by 1, and the month becomes 1.
        next_month = date(month.year + month.month // 12, month.month % 12 + 1, 1)
    except ValueError:  # also raised for December 9999, which has no next month
        raise argparse.ArgumentTypeError("write a month such as 2026-10") from None
    return _to_midnight(month), _to_midnight(next_month)


def _parse_day(text: str) -> datetime:
    try:
        return _to_midnight(date.fromisoformat(text))
    except ValueError:
        raise argparse.ArgumentTypeError("write a day such as 2026-10-01") from None


def _to_midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
