"""Inventory of personal data: the tables and columns that an export bundle contains.

Each table of a tenant that refers to users is listed in SOURCES, or in EXCLUDED_FROM_EXPORT with
the reason. A test checks this for all models. Columns of bytes (digests, sealed data, wrapped keys)
are never exported.
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
    ContentErasure,
    ContentObject,
    Erasure,
    ExportJob,
    IdempotencyRecord,
    Invitation,
    LegalHold,
    Membership,
    MonthSpend,
    Outcome,
    PolicyOverrideVersion,
    PolicyVersion,
    RetentionRule,
    RetrievalChunk,
    ScimGroupMember,
    ScimUser,
    TeamMembership,
    TypingReport,
    UsageDay,
    UsageHour,
    UsageRecord,
    User,
)


@dataclass(frozen=True, slots=True)
class DataSubject:
    """A current or former member of a tenant."""

    tenant_id: TenantId
    user_id: UUID
    email: str


@dataclass(frozen=True, slots=True)
class InventoryEntry:
    """A table with the filter for one user's rows."""

    name: str  # of the file in the bundle, without .ndjson
    model: type[Model]
    make_filter: Callable[[DataSubject], Q]
    hidden_columns: frozenset[str] = frozenset()  # not exported
    has_tenant_id: bool = True  # False: a table of the installation

    @property
    def columns(self) -> list[str]:
        """The exported columns."""
        return [
            field.attname
            for field in self.model._meta.concrete_fields
            if not isinstance(field, BinaryField) and field.attname not in self.hidden_columns
        ]

    def select_rows(self, subject: DataSubject) -> QuerySet[Any, dict[str, Any]]:
        """Return the user's rows. The query must run inside the tenant's scope."""
        rows = self.model._default_manager.filter(self.make_filter(subject))
        rows_in_scope = rows.filter(tenant_id=subject.tenant_id) if self.has_tenant_id else rows
        return rows_in_scope.order_by("pk").values(*self.columns)


def _filter_by(*columns: str) -> Callable[[DataSubject], Q]:
    """Return a function that makes the filter: the user's ID is in one of the columns."""

    def make_filter(subject: DataSubject) -> Q:
        condition = Q()
        for column in columns:
            condition |= Q(**{column: subject.user_id})
        return condition

    return make_filter


def _filter_by_text(column: str) -> Callable[[DataSubject], Q]:
    """Return a function that makes the filter: the user's ID is in the column, as a text."""
    return lambda subject: Q(**{column: str(subject.user_id)})


def _filter_invitations(subject: DataSubject) -> Q:
    return Q(email=subject.email) | Q(invited_by_id=subject.user_id)


def _filter_audit_entries(subject: DataSubject) -> Q:
    return Q(actor_id=subject.user_id) | Q(target=f"user:{subject.user_id}")


def _filter_scim_users(subject: DataSubject) -> Q:
    # A row has no account while the domain of its address is not verified.
    return Q(user_id=subject.user_id) | Q(user_id=None, email=subject.email)


def _filter_scim_group_members(subject: DataSubject) -> Q:
    scim_users = ScimUser.objects.filter(_filter_scim_users(subject), tenant_id=subject.tenant_id)
    return Q(scim_user_id__in=scim_users.values("id"))


SOURCES: Final = (
    InventoryEntry(
        "account",
        User,
        _filter_by("id"),
        frozenset({"password", "last_login", "is_active"}),
        has_tenant_id=False,
    ),
    InventoryEntry("memberships", Membership, _filter_by("user_id")),
    InventoryEntry("team_memberships", TeamMembership, _filter_by("user_id")),
    InventoryEntry(
        "api_keys",
        ApiKey,
        _filter_by("owner_id", "created_by_id", "issued_by_id"),
        frozenset({"pepper_version"}),
    ),
    InventoryEntry("invitations", Invitation, _filter_invitations),
    InventoryEntry("scim_users", ScimUser, _filter_scim_users),
    InventoryEntry("scim_groups", ScimGroupMember, _filter_scim_group_members),
    InventoryEntry("consent_receipts", ConsentReceipt, _filter_by("user_id", "actor_id")),
    InventoryEntry("content_objects", ContentObject, _filter_by("user_id")),
    InventoryEntry("content_erasures", ContentErasure, _filter_by("user_id"), frozenset({"keys"})),
    InventoryEntry("usage_records", UsageRecord, _filter_by("user_id")),
    InventoryEntry("outcomes", Outcome, _filter_by("user_id")),
    InventoryEntry("typed_characters", TypingReport, _filter_by("user_id")),
    InventoryEntry("usage_hours", UsageHour, _filter_by("user_id")),
    InventoryEntry("usage_days", UsageDay, _filter_by("user_id")),
    InventoryEntry("month_spend", MonthSpend, _filter_by_text("holder")),
    InventoryEntry("budgets", Budget, _filter_by("holder_id"), frozenset({"webhook_url"})),
    InventoryEntry("budget_alerts", AlertDelivery, lambda subject: Q(address=subject.email)),
    InventoryEntry(
        "policy_overrides", PolicyOverrideVersion, _filter_by("subject_id", "author_id")
    ),
    # The policy is the tenant's data. Only the authorship is the user's.
    InventoryEntry(
        "policy_versions", PolicyVersion, _filter_by("author_id"), frozenset({"document"})
    ),
    InventoryEntry("retention_rules", RetentionRule, _filter_by("author_id")),
    # `secret` need not be hidden, because columns of bytes are never exported.
    InventoryEntry(
        "erasures", Erasure, _filter_by("user_id", "requested_by_id"), frozenset({"keys"})
    ),
    InventoryEntry(
        "exports", ExportJob, _filter_by("requested_by_id"), frozenset({"members", "proof"})
    ),
    InventoryEntry(
        "kept_answers", IdempotencyRecord, lambda subject: Q(caller=f"user:{subject.user_id}")
    ),
    InventoryEntry(
        "retrieval_chunks", RetrievalChunk, _filter_by_text("holder"), frozenset({"embedding"})
    ),
    InventoryEntry("audit_entries", AuditEntry, _filter_audit_entries),
)
# Only users' exports of their own data contain these tables. They would show a tenant when, and
# from which places, the user signs in for other tenants.
OWN_SOURCES: Final = (
    InventoryEntry(
        "sign_in",
        User,
        _filter_by("id"),
        frozenset({"password", "email", "name", "created_at"}),
        has_tenant_id=False,
    ),
    InventoryEntry(
        "sessions",
        UserSession,
        _filter_by("user_id"),
        frozenset({"session_key", "data"}),
        has_tenant_id=False,
    ),
    InventoryEntry(
        "second_factors",
        Authenticator,
        _filter_by("user_id"),
        frozenset({"data"}),
        has_tenant_id=False,
    ),
)
EXCLUDED_FROM_EXPORT: Final = MappingProxyType(
    {LegalHold: "the subject of a hold may not be allowed to know of it"}
)
