"""Response to a leaked key: it is revoked, and its owner is notified.

If the previous secret of a rotated key leaked, only that secret ends. The rotation has already
replaced it.
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
from tenants.identity.api_keys.key_secrets import KeySecret, secrets_for
from tenants.identity.api_keys.leak_reports import (
    LeakReport,
    peek,
    read_sighting,
    requeue,
    settle,
)
from tenants.identity.api_keys.operations import revoke_key
from tenants.models import ApiKey
from tenants.policy.snapshot_version import mark_snapshot_stale
from tenants.security.audit.operations import record_change
from tenants.security.authorization.actor import system_actor
from tenants.security.authorization.directory import list_members

logger = structlog.get_logger(__name__)

_MAX_AT_ONCE: Final = 100
_MAIL: Final = """\
The API key cpk_{kind}_{lookup_id} ("{name}") was found in public{place}.
We revoked it, so it no longer works. Create a new key, and check how the old one was used.
"""


def process_leak_reports(connection: redis.Redis, *, now: datetime) -> int:
    """Handle the queued reports, and return how many there were.

    A report whose e-mail cannot be sent goes to the end of the queue. A retry repeats nothing that
    has succeeded.
    """
    reports = peek(connection, limit=_MAX_AT_ONCE)
    for data in reports:
        try:
            handle_leak(read_sighting(data), now=now)
        except msgspec.DecodeError:
            logger.error("key.leak_report_invalid")
        # ValueError: a line break in a header.
        except (OSError, SMTPException, ValueError) as error:
            logger.warning("key.leak_owner_not_notified", reason=type(error).__name__)
            requeue(connection, data)
            continue
        settle(connection, data)
    return len(reports)


def handle_leak(sighting: LeakReport, *, now: datetime) -> None:
    """Revoke a leaked key and notify its owner.

    Raises OSError, SMTPException when the key is revoked but the e-mail was not sent.
    """
    with key_lookup_scope(sighting.lookup_id):
        rows = list(ApiKey.objects.filter(lookup_id=sighting.lookup_id).order_by("tenant_id"))
    for row in rows:
        text = next((text for text in secrets_for(row) if _is_of(sighting, text)), None)
        if text is not None:
            tenant_id = TenantId(str(row.tenant_id))
            _revoke_key(tenant_id, row, sighting, now)
            _send_notice(tenant_id, row, sighting, now)


def _is_of(sighting: LeakReport, text: KeySecret) -> bool:
    place = text.pepper_version - 1
    return place < len(sighting.digests) and hmac.compare_digest(
        sighting.digests[place], text.digest
    )


def _revoke_key(tenant_id: TenantId, row: ApiKey, sighting: LeakReport, now: datetime) -> None:
    """End the leaked secret. A key or a secret that has already ended stays unchanged."""
    is_present = _is_of(sighting, secrets_for(row)[0])
    reason = f"Found in public: {sighting.place or 'unknown location'}"
    actor = system_actor(tenant_id)
    with tenant_scope(tenant_id):
        mark_snapshot_stale(tenant_id=tenant_id)
        active_keys = ApiKey.objects.filter(tenant_id=tenant_id, id=row.id, revoked_at=None)
        if is_present and active_keys.update(leaked_at=now):
            lookup_id = LookupId(row.lookup_id)
            revoke_key(actor=actor, lookup_id=lookup_id, reason=reason, now=now)
        elif not is_present and active_keys.filter(previous_ends_at__gt=now).update(
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


def _send_notice(tenant_id: TenantId, row: ApiKey, sighting: LeakReport, now: datetime) -> None:
    """Notify the recipients, once for each leak."""
    with tenant_scope(tenant_id):
        leaked_keys = ApiKey.objects.filter(tenant_id=tenant_id, id=row.id, leaked_at__isnull=False)
        not_notified = leaked_keys.exclude(leak_notified_at__gte=F("leaked_at"))
        if not not_notified.exists():
            return
    place = f": {sighting.place}" if sighting.place else ""
    text = _MAIL.format(kind=row.kind, lookup_id=row.lookup_id, name=row.name, place=place)
    send_mail("A leaked API key was revoked", text, None, _find_recipients(tenant_id, row))
    with tenant_scope(tenant_id):
        ApiKey.objects.filter(tenant_id=tenant_id, id=row.id).update(leak_notified_at=now)


def _find_recipients(tenant_id: TenantId, row: ApiKey) -> list[str]:
    """Return the owner's address; for a service key or a former member, those of key managers."""
    members = list_members(tenant_id=tenant_id)
    owner = [member.email for member in members if member.user_id == str(row.owner_id)]
    managers = (Role.OWNER, Role.ADMINISTRATOR)
    return owner or [member.email for member in members if member.role in managers]
