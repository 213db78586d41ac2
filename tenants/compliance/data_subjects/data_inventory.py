"""Where something of a person is held: one row a table, read by the bundle and its test.

A table of the tenant's that names people is here, or in NOT_HANDED_OUT with the reason; the test
`test_sources` walks all models. Bytes (digests, seals, wrapped keys) are never handed out.
"""

from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.db.models import BinaryField, Model, Q, QuerySet

from caret.foundation.ids import TenantId
from tenants.models import (
    AlertDelivery,
    ApiKey,
    AuditEntry,
    Budget,
    ConsentReceipt,
    Erasure,
    ExportBuild,
    Invitation,
    KeptAnswer,
    LegalHold,
    Membership,
    MonthSpend,
    Outcome,
    PolicyLayerVersion,
    PolicyVersion,
    RetentionRule,
    RetrievalChunk,
    ScimGroupMember,
    ScimUser,
    TeamMembership,
    TelemetryErasure,
    TelemetryObject,
    Typed,
    UsageDay,
    UsageHour,
    UsageRecord,
    User,
)


@dataclass(frozen=True, slots=True)
class Subject:
    """A person who is, or was, a member of a tenant."""

    tenant_id: TenantId
    user_id: UUID
    email: str


@dataclass(frozen=True, slots=True)
class Source:
    """Of a table the rows about a person; `name` is that of the bundle's file."""

    name: str
    model: type[Model]
    whose: Callable[[Subject], Q]
    hidden: frozenset[str] = frozenset()
    # False: the installation's, whichever tenant he signs in to.
    is_tenants: bool = True

    @property
    def columns(self) -> list[str]:
        return [
            field.attname
            for field in self.model._meta.concrete_fields
            if not isinstance(field, BinaryField) and field.attname not in self.hidden
        ]

    def rows(self, subject: Subject) -> QuerySet[Any, dict[str, Any]]:
        """Inside the tenant's scope."""
        found = self.model._default_manager.filter(self.whose(subject))
        chosen = found.filter(tenant_id=subject.tenant_id) if self.is_tenants else found
        return chosen.order_by("pk").values(*self.columns)


def _by(*columns: str) -> Callable[[Subject], Q]:
    """Any of these holds the person's id."""

    def whose(subject: Subject) -> Q:
        found = Q()
        for column in columns:
            found |= Q(**{column: subject.user_id})
        return found

    return whose


def _by_text(column: str) -> Callable[[Subject], Q]:
    """The same where an id is kept as a text."""
    return lambda subject: Q(**{column: str(subject.user_id)})


def _invited(subject: Subject) -> Q:
    return Q(email=subject.email) | Q(invited_by_id=subject.user_id)


def _said_about_or_by(subject: Subject) -> Q:
    return Q(actor_id=subject.user_id) | Q(target=f"user:{subject.user_id}")


def _of_scim_user(subject: Subject) -> Q:
    known = ScimUser.objects.filter(tenant_id=subject.tenant_id, user_id=subject.user_id)
    return Q(scim_user_id__in=known.values("id"))


SOURCES: Final = (
    Source("account", User, _by("id"), frozenset({"password", "last_login", "is_active"}), False),
    Source("memberships", Membership, _by("user_id")),
    Source("team_memberships", TeamMembership, _by("user_id")),
    Source(
        "api_keys",
        ApiKey,
        _by("owner_id", "created_by_id", "issued_by_id"),
        frozenset({"pepper_version"}),
    ),
    Source("invitations", Invitation, _invited),
    Source("scim_users", ScimUser, _by("user_id")),
    Source("scim_groups", ScimGroupMember, _of_scim_user),
    Source("consent_receipts", ConsentReceipt, _by("user_id", "actor_id")),
    Source("telemetry_objects", TelemetryObject, _by("user_id")),
    Source("telemetry_erasures", TelemetryErasure, _by("user_id"), frozenset({"keys"})),
    Source("usage_records", UsageRecord, _by("user_id")),
    Source("outcomes", Outcome, _by("user_id")),
    Source("typed_characters", Typed, _by("user_id")),
    Source("usage_hours", UsageHour, _by("user_id")),
    Source("usage_days", UsageDay, _by("user_id")),
    Source("month_spend", MonthSpend, _by_text("holder")),
    Source("budgets", Budget, _by("holder_id"), frozenset({"webhook_url"})),
    Source("budget_alerts", AlertDelivery, lambda subject: Q(address=subject.email)),
    Source("policy_layers", PolicyLayerVersion, _by("subject_id", "author_id")),
    # What a policy says is the tenant's; that he has written it is his.
    Source("policy_versions", PolicyVersion, _by("author_id"), frozenset({"document"})),
    Source("retention_rules", RetentionRule, _by("author_id")),
    # The secret is bytes; who asked for it is in the audit trail.
    Source("erasures", Erasure, _by("user_id", "requested_by_id"), frozenset({"keys"})),
    Source("exports", ExportBuild, _by("requested_by_id"), frozenset({"members", "proof"})),
    Source("kept_answers", KeptAnswer, lambda subject: Q(caller=f"user:{subject.user_id}")),
    Source("retrieval_chunks", RetrievalChunk, _by_text("holder"), frozenset({"embedding"})),
    Source("audit_entries", AuditEntry, _said_about_or_by),
)
# Of the account as a whole: from where he signs in is no matter of one of his tenants.
OWN_SOURCES: Final = (
    Source(
        "sign_in",
        User,
        _by("id"),
        frozenset({"password", "email", "name", "created_at"}),
        is_tenants=False,
    ),
    Source(
        "sessions",
        UserSession,
        _by("user_id"),
        frozenset({"session_key", "data"}),
        is_tenants=False,
    ),
    Source("second_factors", Authenticator, _by("user_id"), frozenset({"data"}), is_tenants=False),
)
NOT_HANDED_OUT: Final = MappingProxyType(
    {LegalHold: "a hold may be of a matter that its subject is not to be told of"}
)
