"""Deletion certificates as sentences. Pages also show the signed fields, which are the evidence."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from django.utils.dateparse import parse_datetime
from django.utils.formats import date_format
from django.utils.timezone import localtime
from django.utils.translation import gettext, ngettext

from console.usage_filters.number_format import format_count
from tenants.policy.data_classes import DATA_CLASSES

_Facts = Mapping[str, Any]  # the fields of a certificate


def write_sentences(facts: _Facts) -> list[str]:
    """Return the text of a certificate.

    Older certificates lack some fields. A sentence about a missing field is left out. In the first
    sentence, "–" stands for a missing tenant, user or day.
    """
    return [
        *_write_deletion(facts),
        *_write_counts(facts),
        *_write_destroyed_keys(facts),
        *_write_kept_data(facts),
    ]


def name_data(facts: _Facts) -> str:
    """Return the name of the deleted data: a data class, a user or the whole tenant."""
    name = str(facts.get("data_class", ""))
    titles = {data_class.value: gettext(terms.title) for data_class, terms in DATA_CLASSES.items()}
    return (titles | {"data_subject": gettext("User"), "tenant": gettext("Whole tenant")}).get(
        name, name
    )


def _write_deletion(facts: _Facts) -> Iterator[str]:
    values = {
        "tenant": facts.get("tenant", "–"),
        "user": facts.get("user_id", "–"),
        "title": name_data(facts),
        "method": gettext(str(facts.get("method", ""))),
        "day": _write_day(facts.get("issued_at")),
        "older_than": _write_day(facts.get("older_than")),
        "requested": _write_day(facts.get("requested_at")),
    }
    data_class = facts.get("data_class")
    if data_class == "tenant":
        sentence = gettext("On %(day)s, all data of the tenant %(tenant)s was erased (%(method)s).")
    elif data_class == "data_subject":
        sentence = gettext(
            "On %(day)s, the data of the user %(user)s of the tenant %(tenant)s was erased "
            "(%(method)s)."
        )
    elif facts.get("older_than"):
        sentence = gettext(
            "On %(day)s, the tenant %(tenant)s’s records of the class “%(title)s” that were older "
            "than %(older_than)s were deleted (%(method)s)."
        )
    else:
        sentence = gettext(
            "On %(day)s, the tenant %(tenant)s’s records of the class “%(title)s” were deleted "
            "(%(method)s)."
        )
    yield sentence % values
    if facts.get("retention_days") is not None:
        days = facts["retention_days"]
        yield ngettext(
            "The retention period was %(days)s day.",
            "The retention period was %(days)s days.",
            days,
        ) % {"days": format_count(days)}
    if facts.get("requested_at"):
        yield gettext("The erasure was requested on %(requested)s.") % values


def _write_counts(facts: _Facts) -> Iterator[str]:
    numbers = {
        name: format_count(facts[name])
        for name in ("opening", "created", "deleted", "closing", "held", "deleted_objects")
        if isinstance(facts.get(name), int)
    }
    if {"opening", "created", "deleted", "closing"} <= numbers.keys():
        yield (
            gettext(
                "There were %(opening)s records before. %(created)s were added during the purge, "
                "%(deleted)s were deleted, and %(closing)s remain."
            )
            % numbers
        )
    if facts.get("held"):
        yield (
            gettext(
                "%(held)s expired records were kept, because they are under a legal hold or "
                "belong to a chain with earlier records that were kept."
            )
            % numbers
        )
    if facts.get("deleted_objects"):
        yield gettext("%(deleted_objects)s stored objects were deleted.") % numbers
    rows = facts.get("rows")
    if isinstance(rows, dict) and rows:
        total = sum(number for number in rows.values() if isinstance(number, int))
        yield gettext("%(total)s rows in %(tables)s tables were deleted or made anonymous.") % {
            "total": format_count(total),
            "tables": format_count(len(rows)),
        }


def _write_destroyed_keys(facts: _Facts) -> Iterator[str]:
    keys = facts.get("keys")
    if isinstance(keys, list) and keys:
        yield ngettext(
            "%(num)s encryption key was destroyed, so that copies in backups cannot be read.",
            "%(num)s encryption keys were destroyed, so that copies in backups cannot be read.",
            len(keys),
        ) % {"num": format_count(len(keys))}


def _write_kept_data(facts: _Facts) -> Iterator[str]:
    """Yield a sentence for each kind of kept data. The data and the legal basis stay English."""
    for item in facts.get("kept", ()):
        if isinstance(item, dict) and {"what", "legal_basis"} <= item.keys():
            yield gettext("Kept: %(what)s. Legal basis: %(legal_basis)s.") % item


def _write_day(text: Any) -> str:
    """Return the day of an ISO 8601 time in the reader's time zone; "–" for an invalid time."""
    try:
        at: datetime | None = parse_datetime(str(text))
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        return "–"
    return date_format(localtime(at), "DATE_FORMAT")
