"""Queries of domains: the domains of a tenant, and the tenant of a verified domain."""

import uuid
from dataclasses import dataclass
from datetime import datetime

from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import NotFound
from tenants.base.permissions import Permission
from tenants.base.validation.email_domains import TXT_PREFIX, get_email_domain
from tenants.base.validation.text import is_storable
from tenants.models import Domain, VerifiedDomain
from tenants.security.authorization.actor import Actor


@dataclass(frozen=True, slots=True)
class DomainView:
    id: uuid.UUID
    name: str
    txt_record: str  # the TXT record that the DNS must contain
    created_at: datetime
    verified_at: datetime | None  # None: claimed but not verified


def list_domains(*, actor: Actor) -> list[DomainView]:
    """Return the tenant's domains by name. Raises Forbidden."""
    actor.require(Permission.READ_SIGN_IN_SETTINGS)
    with tenant_scope(actor.tenant_id):
        rows = Domain.objects.filter(tenant_id=actor.tenant_id).order_by("name")
        return [build_domain_view(row) for row in rows]


def find_domain(*, actor: Actor, domain_id: uuid.UUID) -> DomainView:
    """Return one domain. Raises Forbidden, NotFound."""
    actor.require(Permission.READ_SIGN_IN_SETTINGS)
    with tenant_scope(actor.tenant_id):
        try:
            return build_domain_view(Domain.objects.get(tenant_id=actor.tenant_id, id=domain_id))
        except Domain.DoesNotExist as error:
            raise NotFound("This domain does not exist.") from error


def find_owning_tenant(email: str) -> TenantId | None:
    """Return the tenant that has verified the domain of an e-mail address; None: no tenant has."""
    name = get_email_domain(email.strip().lower())
    if not is_storable(name):
        return None
    row = VerifiedDomain.objects.filter(name=name).order_by("name").first()
    return None if row is None else TenantId(str(row.holder_id))


def build_domain_view(row: Domain) -> DomainView:
    return DomainView(
        id=row.id,
        name=row.name,
        txt_record=TXT_PREFIX + row.challenge,
        created_at=row.created_at,
        verified_at=row.verified_at,
    )
