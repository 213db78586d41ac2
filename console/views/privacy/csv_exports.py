"""The privacy lists as CSV files."""

from django.http import HttpResponse

from console.layout.lists.csv_response import CsvRows, csv_response, notes_of
from tenants.compliance.data_subjects.queries import ErasureView
from tenants.privacy.consent.consent import NO_CONSENT
from tenants.privacy.consent.queries import ContentErasureView, Receipt, consents_of
from tenants.security.authorization.actor import Actor
from tenants.security.authorization.directory import MemberRow


def members_file(actor: Actor, found: CsvRows[MemberRow]) -> HttpResponse:
    consents = consents_of(actor=actor, user_ids=[row.user_id for row in found.rows])
    rows = [
        (row.email, row.name, given.telemetry, given.training, row.created_at)
        for row in found.rows
        for given in (consents.get(row.user_id, NO_CONSENT),)
    ]
    return csv_response(
        "consent",
        ("email", "name", "telemetry", "training", "member_since"),
        rows,
        notes=notes_of(found),
    )


def receipts_file(found: CsvRows[Receipt]) -> HttpResponse:
    header = (
        *("user", "kind", "decision", "consent_text", "consent_text_sha256"),
        *("changed_by", "created_at"),
    )
    rows = [
        (
            *(row.user_email or row.user_id, row.kind, row.is_given, row.wording),
            *(row.wording_sha256, row.actor_email, row.created_at),
        )
        for row in found.rows
    ]
    return csv_response("receipts", header, rows, notes=notes_of(found))


def withdrawals_file(found: CsvRows[ContentErasureView]) -> HttpResponse:
    header = ("user", "reason", "items", "bytes", "keys", "unreadable_since", "deleted_at")
    rows = [
        (
            *(row.user_email or row.user_id, row.reason, row.num_items, row.num_bytes),
            *(row.num_keys, row.requested_at, row.finished_at),
        )
        for row in found.rows
    ]
    return csv_response("withdrawals", header, rows, notes=notes_of(found))


def erasures_file(found: CsvRows[ErasureView]) -> HttpResponse:
    rows = [
        (
            "" if row.user_id is None else str(row.user_id),
            *(row.reason, sum(row.rows.values()), row.requested_at, row.finished_at),
        )
        for row in found.rows
    ]
    return csv_response(
        "erasures",
        ("user", "reason", "rows", "requested_at", "erased_at"),
        rows,
        notes=notes_of(found),
    )
