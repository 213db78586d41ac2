"""Writes of key rows, and the checks before them, for operations on keys.

Call these functions inside the tenant's scope, with the tenant locked.
"""

from datetime import datetime, timedelta
from typing import Final

from django.db import IntegrityError, transaction
from django.db.models import Q

from caret.contracts.api_key import ParsedKey
from caret.contracts.policy import TenantPolicy
from caret.foundation.ids import TenantId, UserId
from tenants.base.errors import Conflict, InvalidValue
from tenants.identity.api_keys.key_secrets import compute_key_digest
from tenants.identity.api_keys.scopes import serialize_scopes
from tenants.identity.api_keys.validation import KeyRequest, check_lifetime
from tenants.models import ApiKey, Membership
from tenants.policy.overrides.queries import load_effective_policy
from tenants.policy.queries import load_active_policy
from tenants.security.audit.operations import ChangeFields
from tenants.security.authorization.actor import Actor

PEPPER_VERSION: Final = 1  # for new digests (compute_key_digest)
MAX_KEYS: Final = 5_000  # of a tenant: the snapshot then has 1.1 MB at each gateway

# Snapshots contain a key for this long after its end, so that gateways answer "revoked" or
# "expired" and not "unknown".
REVOKED_KEY_RETENTION: Final = timedelta(days=30)


def set_secret(
    row: ApiKey,
    generated: ParsedKey,
    overlap: timedelta,
    expires_at: datetime | None,
    now: datetime,
) -> tuple[ChangeFields, ChangeFields]:
    """Store a new secret, and return the fields before and after for the audit log.

    The old secret stays valid for `overlap`, but not after the old expiry of the key. Set
    `row.issued_by_id` before the call: it is saved together with the secret.
    """
    before: ChangeFields = {
        "issued_at": _format_time(row.issued_at or row.created_at),
        "expires_at": _format_time(row.expires_at),
    }
    ends = [end for end in (now + overlap, row.expires_at) if end is not None]
    row.previous_digest, row.previous_pepper_version = row.digest, row.pepper_version
    row.previous_ends_at = min(ends)
    row.digest = compute_key_digest(generated, pepper_version=PEPPER_VERSION)
    row.pepper_version = PEPPER_VERSION
    row.issued_at, row.expires_at = now, expires_at
    row.save(
        update_fields=[
            "previous_digest",
            "previous_pepper_version",
            "previous_ends_at",
            "digest",
            "pepper_version",
            "issued_at",
            "issued_by",
            "expires_at",
        ]
    )
    after: ChangeFields = {
        "issued_at": _format_time(now),
        "expires_at": _format_time(expires_at),
        "previous_ends_at": _format_time(row.previous_ends_at),
    }
    return before, after


def check_key_lifetime_policy(
    actor: Actor, owner_id: UserId | None, expires_at: datetime | None, now: datetime
) -> None:
    """Check the expiry against the maximum lifetime of the owner's policy. Raises InvalidValue."""
    policy = load_owner_policy(actor.tenant_id, owner_id)
    check_lifetime(expires_at, now, max_days=policy.max_key_lifetime_days)


def load_owner_policy(tenant_id: TenantId, owner_id: UserId | None) -> TenantPolicy:
    """Return the effective policy of a key's owner.

    `owner_id` is None for a service key. No policy override applies to such a key.
    """
    if owner_id is None:
        return load_active_policy(tenant_id=tenant_id)
    return load_effective_policy(tenant_id=tenant_id, user_id=owner_id)


def require_below_key_limit(actor: Actor, now: datetime) -> None:
    """Check that the tenant has fewer than MAX_KEYS keys in its snapshot. Raises Conflict."""
    remembered_since = now - REVOKED_KEY_RETENTION
    is_forgotten = Q(revoked_at__lt=remembered_since) | Q(expires_at__lt=remembered_since)
    keys = ApiKey.objects.filter(tenant_id=actor.tenant_id).exclude(is_forgotten)
    if keys.count() >= MAX_KEYS:
        raise Conflict(
            "You already have {most} keys, which is the limit. Revoked and expired keys "
            "still count for {days} days after they end.",
            most=MAX_KEYS,
            days=REVOKED_KEY_RETENTION.days,
        )


def require_member(actor: Actor, owner_id: UserId | None) -> None:
    """Check that the owner is a current member.

    The database constraint also accepts former members. None: a service key, which has no owner.
    Raises InvalidValue.
    """
    members = Membership.objects.filter(tenant_id=actor.tenant_id, ended_at=None)
    if owner_id is not None and not members.filter(user_id=owner_id).exists():
        raise InvalidValue("owner_id", "The owner is not a member of this tenant.")


def insert_key(actor: Actor, new: KeyRequest, generated: ParsedKey, now: datetime) -> None:
    """Insert the row of a new key. Raises Conflict if its lookup ID exists in the tenant."""
    try:
        with transaction.atomic():
            ApiKey.objects.create(
                tenant_id=actor.tenant_id,
                lookup_id=generated.lookup_id,
                digest=compute_key_digest(generated, pepper_version=PEPPER_VERSION),
                pepper_version=PEPPER_VERSION,
                kind=new.kind,
                owner_id=new.owner_id,
                created_by_id=actor.accountable_user_id,
                issued_by_id=actor.accountable_user_id,
                name=new.name,
                scopes=serialize_scopes(new.scopes),
                networks=list(new.networks),
                created_at=now,
                expires_at=new.expires_at,
                is_playground=new.is_playground,
                is_device=new.is_device,
            )
    except IntegrityError as error:
        # Two random lookup IDs are equal with a probability of about 1 in 2^47.
        raise Conflict("Something went wrong. Try again.") from error


def to_change_fields(new: KeyRequest) -> ChangeFields:
    """Return the fields of a new key for the audit log.

    The name is left out. It may contain personal data, and an erasure does not change audit
    entries.
    """
    return {
        "kind": new.kind.value,
        "owner_id": new.owner_id,
        "expires_at": _format_time(new.expires_at),
        "scopes": " ".join(serialize_scopes(new.scopes)),
        "networks": " ".join(new.networks),
    }


def _format_time(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
