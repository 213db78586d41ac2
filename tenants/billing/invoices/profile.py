"""Who issues invoices and whom they are made out to: the operator's settings and profiles."""

from datetime import datetime

import msgspec
from django.conf import settings

from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenancy import tenant
from tenants.audit.operations import record_change
from tenants.billing.invoices.document import Party, Tax
from tenants.errors import Invalid
from tenants.members.actor import Actor
from tenants.models import BillingProfile, Tenant
from tenants.texts import require_storable

_MAX_CHARS = 120
_MAX_LINES = 8


def set_profile(*, actor: Actor, customer: Party, tax: Tax, now: datetime) -> None:
    """Raises Forbidden, Invalid."""
    actor.require_platform()
    _check(customer)
    if not 0 <= tax.basis_points <= 10_000 or bool(tax.name) != bool(tax.basis_points):
        raise Invalid("tax", "Name the tax, and give 1 to 10,000 basis points; or neither.")
    with tenant(actor.tenant_id):
        BillingProfile.objects.update_or_create(
            tenant_id=actor.tenant_id,
            defaults={
                "customer": msgspec.to_builtins(customer),
                "tax_name": tax.name,
                "tax_basis_points": tax.basis_points,
                "updated_at": now,
            },
        )
        record_change(
            actor=actor,
            action="billing.profile_changed",
            target="billing:profile",
            change=(None, {"name": customer.name, "tax_basis_points": tax.basis_points}),
            now=now,
        )


def read_profile(tenant_id: TenantId) -> tuple[Party, Tax]:
    """Inside the tenant's scope. Without one, the tenant's name and no tax."""
    row = BillingProfile.objects.filter(tenant_id=tenant_id).first()
    if row is None:
        return Party(Tenant.objects.get(id=tenant_id).name), Tax("", 0)
    return msgspec.convert(row.customer, Party), Tax(row.tax_name, row.tax_basis_points)


def issuer() -> Party:
    return Party(
        name=settings.INVOICE_ISSUER,
        address=tuple(settings.INVOICE_ADDRESS),
        tax_id=settings.INVOICE_TAX_ID,
        email=settings.INVOICE_EMAIL,
    )


def _check(customer: Party) -> None:
    for field in ("name", "tax_id", "email"):
        _check_text(field, getattr(customer, field))
    for line in customer.address:
        _check_text("address", line)
    if not customer.name or len(customer.address) > _MAX_LINES:
        raise Invalid(
            "name", "Give a name, and {most} lines of an address at most.", most=_MAX_LINES
        )


def _check_text(field: str, text: str) -> None:
    require_storable(field, text)
    if len(text) > _MAX_CHARS or not text.isprintable():
        raise Invalid(field, "At most {most} printable characters.", most=_MAX_CHARS)
