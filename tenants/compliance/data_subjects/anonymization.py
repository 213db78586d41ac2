"""Removal of names and e-mail addresses.

Rows to which other rows refer stay, without personal data. Other rows are deleted.

Call these functions inside the tenant's scope, with the tenant's row locked.
"""

import os
import uuid
from datetime import datetime
from typing import Final

from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.contrib.auth.hashers import make_password
from django.db.models import QuerySet

from caret.foundation.ids import TenantId, UserId
from caret.foundation.postgres.tenant_scope import user_scope
from tenants.base.validation.email_domains import make_anonymous_email
from tenants.billing.budgets.alert_delivery import anonymize_recipients
from tenants.compliance.data_subjects.data_inventory import DataSubject
from tenants.identity.members.access_changes import announce_access_change
from tenants.models import (
    AlertDelivery,
    ApiKey,
    Budget,
    IdempotencyRecord,
    Invitation,
    Membership,
    RetrievalChunk,
    ScimUser,
    TeamMembership,
    User,
)

_DIGEST_BYTES: Final = 32


def anonymize_subject(subject: DataSubject, now: datetime) -> dict[str, int]:
    """Anonymize or delete a user's rows, and return the numbers of rows by table."""
    tenant_id, user_id = subject.tenant_id, subject.user_id
    # Keys without a name are already anonymized. A repetition does not count them again.
    keys = ApiKey.objects.filter(tenant_id=tenant_id, owner_id=user_id).exclude(name="")
    invitations = Invitation.objects.filter(tenant_id=tenant_id, email=subject.email)
    deliveries = AlertDelivery.objects.filter(tenant_id=tenant_id, address=subject.email)
    deleted_rows = (
        ScimUser.objects.filter(tenant_id=tenant_id, user_id=user_id),
        ScimUser.objects.filter(tenant_id=tenant_id, email=subject.email),
        TeamMembership.objects.filter(tenant_id=tenant_id, user_id=user_id),
        Budget.objects.filter(tenant_id=tenant_id, holder_id=user_id),
        IdempotencyRecord.objects.filter(tenant_id=tenant_id, caller=f"user:{user_id}"),
        RetrievalChunk.objects.filter(tenant_id=tenant_id, holder=str(user_id)),
    )
    counts = {ApiKey._meta.db_table: anonymize_keys(keys, now)}
    counts[Invitation._meta.db_table] = anonymize_invitations(invitations, now)
    counts[AlertDelivery._meta.db_table] = anonymize_recipients(deliveries)
    for rows in deleted_rows:
        table = rows.model._meta.db_table
        counts[table] = counts.get(table, 0) + rows.delete()[0]  # [0]: the number
    _anonymize_account(tenant_id, user_id, now)
    return counts


def anonymize_keys(keys: QuerySet[ApiKey], now: datetime) -> int:
    """Revoke keys, and remove their names, networks and digests. Return the number of keys."""
    keys.filter(revoked_at=None).update(revoked_at=now)
    return keys.update(
        name="",
        networks=[],
        digest=os.urandom(_DIGEST_BYTES),
        previous_digest=None,
        previous_pepper_version=None,
        previous_ends_at=None,
    )


def anonymize_invitations(invitations: QuerySet[Invitation], now: datetime) -> int:
    """Revoke open invitations, and give all invitations the same anonymous e-mail address.

    Return the number of invitations.
    """
    invitations.filter(accepted_at=None, revoked_at=None).update(revoked_at=now)
    return invitations.update(email=make_anonymous_email())


def _anonymize_account(tenant_id: TenantId, user_id: uuid.UUID, now: datetime) -> None:
    """Mark the membership as erased. If all memberships are erased, anonymize the account.

    All tenants share the account. No certificate says whether it was anonymized, because a tenant
    may not learn of the user's other tenants.
    """
    with user_scope(UserId(str(user_id))):
        # If erasures of two tenants run at once, the second one waits here. It then finds the
        # membership in the other tenant erased, and anonymizes the account.
        User.objects.select_for_update().get(id=user_id)
        Membership.objects.filter(tenant_id=tenant_id, user_id=user_id).update(erased_at=now)
        memberships = Membership.objects.filter(user_id=user_id, erased_at=None)
        if memberships.exclude(tenant_id=tenant_id).exists():
            return
    User.objects.filter(id=user_id).update(
        email=make_anonymous_email(),
        name="",
        password=make_password(None),
        is_active=False,
        last_login=None,
    )
    UserSession.objects.filter(user_id=user_id).delete()
    announce_access_change(str(user_id))
    Authenticator.objects.filter(user_id=user_id).delete()
