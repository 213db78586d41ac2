"""Queries of policies."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django.db.models import Exists, OuterRef, QuerySet
from django.utils.translation import gettext_noop

from caret.contracts.policy import Isolation, TenantPolicy
from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import NotFound
from tenants.base.pagination import Page, PagePosition, build_page, decode_cursor, map_page
from tenants.base.permissions import Permission
from tenants.models import Membership, PolicyVersion, Tenant
from tenants.policy.document import parse_policy
from tenants.security.authorization.actor import Actor

# Postgres' integers are smaller. The version in a URL or in a forged cursor may be larger.
_VERSION_LIMIT: Final = 2**31
_NO_VERSION: Final = gettext_noop("This version does not exist.")


@dataclass(frozen=True, slots=True)
class PolicyVersionView:
    """A version of the policy, in force or earlier, with its author and reason."""

    version: int  # from 1
    policy: TenantPolicy
    author_email: str | None  # None: no user, or an erased user
    author_key: str  # lookup ID; "": no key
    reason: str
    created_at: datetime


def get_policy(*, actor: Actor) -> PolicyVersionView:
    """Return the policy in force. One query. Raises Forbidden."""
    actor.require(Permission.READ_POLICY)
    return find_policy_in_force(tenant_id=actor.tenant_id)


def find_version(*, actor: Actor, version: int) -> PolicyVersionView:
    """Return one version of the policy. One query. Raises Forbidden, NotFound."""
    actor.require(Permission.READ_POLICY)
    if version >= _VERSION_LIMIT:
        raise NotFound(_NO_VERSION)
    with tenant_scope(actor.tenant_id):
        rows = _select_versions(actor.tenant_id).filter(version=version)
        row = rows.order_by("version").first()
    if row is None:
        raise NotFound(_NO_VERSION)
    return _to_version_view(row)


def find_policy_in_force(*, tenant_id: TenantId) -> PolicyVersionView:
    """Return the policy in force, with its author. Checks no permission. Raises NotFound."""
    with tenant_scope(tenant_id):
        row = _select_versions(tenant_id).order_by("-version").first()
    if row is None:
        raise NotFound("The tenant has no policy.")
    return _to_version_view(row)


def load_active_policy(*, tenant_id: TenantId) -> TenantPolicy:
    """Return the policy in force, without its author. Checks no permission. One query.

    Raises NotFound.
    """
    with tenant_scope(tenant_id):
        rows = PolicyVersion.objects.filter(tenant_id=tenant_id).order_by("-version")
        document = rows.values_list("document", flat=True).first()
    if document is None:
        raise NotFound("The tenant has no policy.")
    return parse_policy(document)


def read_page_of_versions(
    *, actor: Actor, limit: int, cursor: str | None
) -> Page[PolicyVersionView]:
    """Return a page of versions with author and reason, newest first.

    Raises Forbidden, InvalidValue.
    """
    actor.require(Permission.READ_POLICY)
    after = decode_cursor(cursor)
    with tenant_scope(actor.tenant_id):
        rows = _select_versions(actor.tenant_id)
        if after is not None:
            # The ID in the cursor is a version (see _to_position). The remainder fits the column
            # even if the cursor is forged.
            rows = rows.filter(version__lt=after.id.int % _VERSION_LIMIT)
        versions = list(rows.order_by("-version")[: limit + 1])
    page = build_page(versions, limit=limit, get_position=_to_position)
    return map_page(page, _to_version_view)


def find_version_ends(*, actor: Actor, versions: Iterable[int]) -> dict[int, datetime]:
    """Return the time when each version was replaced. The version in force is left out.

    Raises Forbidden.
    """
    actor.require(Permission.READ_POLICY)
    with tenant_scope(actor.tenant_id):
        next_versions = PolicyVersion.objects.filter(
            tenant_id=actor.tenant_id, version__in=[version + 1 for version in versions]
        )
        return {
            version - 1: at for version, at in next_versions.values_list("version", "created_at")
        }


def _to_position(row: PolicyVersion) -> PagePosition:
    """Return the position of a version for cursors. The position's ID is the version number."""
    return PagePosition(row.created_at, UUID(int=row.version))


def _select_versions(tenant_id: TenantId) -> QuerySet[PolicyVersion]:
    """Select the versions with their authors, and whether the author was erased in this tenant."""
    erased = Membership.objects.filter(
        tenant_id=tenant_id, user_id=OuterRef("author_id"), erased_at__isnull=False
    )
    versions = PolicyVersion.objects.filter(tenant_id=tenant_id).select_related("author")
    return versions.annotate(is_author_erased=Exists(erased))


def _to_version_view(row: PolicyVersion) -> PolicyVersionView:
    is_erased = row.is_author_erased  # type: ignore[attr-defined]  # annotated by _select_versions
    return PolicyVersionView(
        version=row.version,
        policy=parse_policy(row.document),
        author_email=None if row.author is None or is_erased else row.author.email,
        author_key=row.author_key,
        reason=row.reason,
        created_at=row.created_at,
    )


@dataclass(frozen=True, slots=True)
class Namespace:
    """The properties of a tenant's cache namespace in the prefix caches of engines."""

    epoch: int  # increased when the cache is purged; part of the namespace's name
    isolation: Isolation


def read_namespace(*, actor: Actor) -> Namespace:
    """Return the properties of the tenant's cache namespace. Two queries. Raises Forbidden."""
    actor.require(Permission.READ_TENANT)
    with tenant_scope(actor.tenant_id):
        epoch = Tenant.objects.values_list("cache_epoch", flat=True).get(id=actor.tenant_id)
        policy = load_active_policy(tenant_id=actor.tenant_id)
    return Namespace(epoch, policy.isolation)
