"""What is kept for how long, what was deleted, and what proves it."""

import json
from typing import Any, Final

from django.utils.translation import gettext_noop

from tenants.base.permissions import Permission
from tenants.compliance.exports.export import Export
from tenants.compliance.exports.paged_source import BY_CREATION, ListedRows, PagedRows, fields
from tenants.compliance.exports.rows import Asked, Column, Kind, Row
from tenants.privacy.retention.queries import (
    CertificateView,
    ClassReport,
    list_certificates,
    list_holds,
    list_runs,
    report,
)

_CLASS: Final = (
    Column("data_class", Kind.TEXT),
    Column("title", Kind.TEXT),
    Column("purpose", Kind.TEXT),
    Column("legal_basis", Kind.TEXT),
    Column("surface", Kind.TEXT),
    Column("days", Kind.INTEGER),
    Column("rule_version", Kind.INTEGER),  # empty: there was no rule yet
    Column("author_email", Kind.TEXT),
    Column("reason", Kind.TEXT),
    Column("records", Kind.INTEGER),  # empty: no rows of the tenant's own
    Column("oldest_at", Kind.TIME),
    Column("due", Kind.INTEGER),
    Column("held", Kind.INTEGER),
    Column("overdue", Kind.INTEGER),
)


def _classes(asked: Asked) -> list[Row]:
    return [_class_row(each) for each in report(actor=asked.actor, now=asked.now)]


def _class_row(found: ClassReport) -> Row:
    terms, rule, count = found.terms, found.rule, found.count
    about = (terms.title, terms.purpose, terms.legal_basis, terms.surface)
    in_force = (rule.days, rule.version, rule.author_email, rule.reason)
    records, oldest_at, due, held = None, None, 0, 0
    if count is not None:
        records, oldest_at, due, held = count.records, count.oldest_at, count.due, count.held
    there = (records, oldest_at, due, held)
    return (found.data_class.value, *about, *in_force, *there, found.overdue)


RETENTION: Final = Export(
    name="retention",
    version=1,
    title=gettext_noop("Classes of data, and for how long they are kept"),
    permission=Permission.READ_RETENTION,
    columns=_CLASS,
    source=ListedRows(_classes),
    is_of_period=False,
)

_RUN: Final = (
    Column("id", Kind.ID),
    Column("data_class", Kind.TEXT),
    Column("days", Kind.INTEGER),
    Column("rule_version", Kind.INTEGER),
    Column("cutoff", Kind.TIME),
    Column("opening", Kind.INTEGER),
    Column("created", Kind.INTEGER),
    Column("deleted", Kind.INTEGER),
    Column("closing", Kind.INTEGER),
    Column("held", Kind.INTEGER),
    Column("began_at", Kind.TIME),
    Column("finished_at", Kind.TIME),
)
PURGES: Final = Export(
    name="purges",
    version=1,
    title=gettext_noop("Purges: opening + created - deleted = closing"),
    permission=Permission.READ_RETENTION,
    columns=_RUN,
    source=PagedRows(
        page=lambda asked, limit, cursor: list_runs(actor=asked.actor, limit=limit, cursor=cursor),
        row=fields(*(column.name for column in _RUN)),
        made_at=lambda run: run.began_at,
    ),
)

_HOLD: Final = (
    Column("id", Kind.ID),
    Column("name", Kind.TEXT),
    Column("user_id", Kind.ID),
    Column("since", Kind.TIME),
    Column("until", Kind.TIME),
    Column("reason", Kind.TEXT),
    Column("created_at", Kind.TIME),
    Column("released_at", Kind.TIME),
)
LEGAL_HOLDS: Final = Export(
    name="legal_holds",
    version=1,
    title=gettext_noop("Legal holds, in force and released"),
    permission=Permission.READ_RETENTION,
    columns=_HOLD,
    source=PagedRows(
        page=lambda asked, limit, cursor: list_holds(actor=asked.actor, limit=limit, cursor=cursor),
        row=fields(*(column.name for column in _HOLD)),
    ),
    is_of_period=False,
)


def _certificate_row(found: CertificateView) -> Row:
    """The document last, as it was signed: `verify_certificate` wants just this."""
    said: dict[str, Any] = json.loads(found.document)
    facts = (said.get("data_class"), said.get("method"), said.get("reason"))
    return (found.id, found.number, found.created_at, *facts, found.document)


CERTIFICATES: Final = Export(
    name="deletion_certificates",
    version=1,
    title=gettext_noop("Deletion certificates"),
    permission=Permission.READ_RETENTION,
    columns=(
        Column("id", Kind.ID),
        Column("number", Kind.INTEGER),
        Column("created_at", Kind.TIME),
        Column("data_class", Kind.TEXT),
        Column("method", Kind.TEXT),
        Column("reason", Kind.TEXT),
        Column("document", Kind.TEXT),
    ),
    source=PagedRows(
        page=lambda asked, limit, cursor: list_certificates(
            actor=asked.actor, limit=limit, cursor=cursor
        ),
        row=_certificate_row,
        made_at=BY_CREATION,
    ),
)

EXPORTS: Final = (RETENTION, PURGES, LEGAL_HOLDS, CERTIFICATES)
