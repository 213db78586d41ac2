"""Response to a leaked key: the key is revoked, and its owner is notified.

If the previous secret of a rotated key leaked, only that secret ends. The key continues to work
with its current secret.
"""

import hmac
from datetime import datetime
from smtplib import SMTPException
from typing import Final

import msgspec
import redis
import structlog
from django.core.mail import send_mail
from django.db.models import F

from caret.foundation.ids import LookupId, TenantId
from caret.foundation.postgres.tenant_scope import key_lookup_scope, tenant_scope
from tenants.base.permissions import Role
from tenants.identity.api_keys.key_secrets import KeySecret, list_secrets
from tenants.identity.api_keys.leak_reports import (
    LeakReport,
    decode_report,
    delete_report,
    peek_reports,
    requeue_report,
)
from tenants.identity.api_keys.operations import revoke_key
from tenants.models import ApiKey
from tenants.policy.snapshot_version import mark_snapshot_stale
from tenants.security.audit.operations import record_change
from tenants.security.authorization.actor import build_system_actor
from tenants.security.authorization.directory import list_members

logger = structlog.get_logger(__name__)

_MAX_AT_ONCE: Final = 100  # reports in a run
_MAIL: Final = """\
The API key cpk_{kind}_{lookup_id} ("{name}") was found in public{place}.
The secret that was found no longer works. If the console shows that the key is revoked, create a
new key. Check how the secret was used.
"""


def process_leak_reports(connection: redis.Redis, *, now: datetime) -> int:
    """Handle up to _MAX_AT_ONCE queued reports, and return their number.

    A report whose e-mail cannot be sent goes to the end of the queue. A retry does not repeat steps
    that have succeeded.
    """
    reports = peek_reports(connection, limit=_MAX_AT_ONCE)
    for data in reports:
        try:
            handle_leak(decode_report(data), now=now)
        except msgspec.DecodeError:
            logger.error("key.leak_report_invalid")
        # ValueError: a line break in a header.
        except (OSError, SMTPException, ValueError) as error:
            logger.warning("key.leak_owner_not_notified", reason=type(error).__name__)
            requeue_report(connection, data)
            continue
        delete_report(connection, data)
    return len(reports)


def handle_leak(report: LeakReport, *, now: datetime) -> None:
    """End the leaked secret of each key that the report matches, and notify the key's owner.

    Raises OSError, SMTPException or ValueError if an e-mail cannot be sent.
    """
    with key_lookup_scope(report.lookup_id):
        rows = list(ApiKey.objects.filter(lookup_id=report.lookup_id).order_by("tenant_id"))
    for row in rows:
        if any(_has_reported_digest(report, secret) for secret in list_secrets(row)):
            tenant_id = TenantId(str(row.tenant_id))
            _end_leaked_secret(tenant_id, row, report, now)
            _send_notice(tenant_id, row, report, now)


def _has_reported_digest(report: LeakReport, secret: KeySecret) -> bool:
    index = secret.pepper_version - 1  # `digests` begins with version 1
    return index < len(report.digests) and hmac.compare_digest(report.digests[index], secret.digest)


def _end_leaked_secret(tenant_id: TenantId, row: ApiKey, report: LeakReport, now: datetime) -> None:
    """Revoke the key, or only end its previous secret if that one leaked.

    Does nothing if the key is revoked, or if the leaked previous secret has already ended.
    """
    current_secret = list_secrets(row)[0]
    is_current = _has_reported_digest(report, current_secret)
    reason = f"Found in public: {report.place or 'unknown location'}"
    actor = build_system_actor(tenant_id)
    with tenant_scope(tenant_id):
        mark_snapshot_stale(tenant_id=tenant_id)
        unrevoked_keys = ApiKey.objects.filter(tenant_id=tenant_id, id=row.id, revoked_at=None)
        if is_current and unrevoked_keys.update(leaked_at=now):
            lookup_id = LookupId(row.lookup_id)
            revoke_key(actor=actor, lookup_id=lookup_id, reason=reason, now=now)
        elif not is_current and unrevoked_keys.filter(previous_ends_at__gt=now).update(
            previous_ends_at=now, leaked_at=now
        ):
            record_change(
                actor=actor,
                action="key.old_text_ended",
                target=f"key:{row.lookup_id}",
                change=(None, {"previous_ends_at": now.isoformat()}),
                reason=reason,
                now=now,
            )


def _send_notice(tenant_id: TenantId, row: ApiKey, report: LeakReport, now: datetime) -> None:
    """Send the e-mail about a leak, once for each leak. Raises like handle_leak."""
    with tenant_scope(tenant_id):
        leaked_keys = ApiKey.objects.filter(tenant_id=tenant_id, id=row.id, leaked_at__isnull=False)
        not_notified = leaked_keys.exclude(leak_notified_at__gte=F("leaked_at"))
        if not not_notified.exists():
            return
    place = f": {report.place}" if report.place else ""
    text = _MAIL.format(kind=row.kind, lookup_id=row.lookup_id, name=row.name, place=place)
    send_mail("A leaked API key no longer works", text, None, _find_recipients(tenant_id, row))
    with tenant_scope(tenant_id):
        ApiKey.objects.filter(tenant_id=tenant_id, id=row.id).update(leak_notified_at=now)


def _find_recipients(tenant_id: TenantId, row: ApiKey) -> list[str]:
    """Return the e-mail address of the key's owner.

    If the key has no owner, or if the owner has left the tenant, return the addresses of all
    members with the role OWNER or ADMINISTRATOR.
    """
    members = list_members(tenant_id=tenant_id)
    owner = [member.email for member in members if member.user_id == str(row.owner_id)]
    managers = (Role.OWNER, Role.ADMINISTRATOR)
    return owner or [member.email for member in members if member.role in managers]
