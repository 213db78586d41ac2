"""Issuer and customer of invoices.

The issuer is in the installation's settings. The customer and the tax are in the tenant's billing
profile.
"""

import re
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec
import structlog
from django.conf import settings

from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import InvalidValue
from tenants.base.permissions import Permission
from tenants.base.validation.text import validate_text
from tenants.billing.invoices.document import BankAccount, InvoiceParty, InvoiceTax
from tenants.models import BillingProfile, Tenant
from tenants.security.audit.operations import record_change
from tenants.security.authorization.actor import Actor

logger = structlog.get_logger(__name__)

MAX_CHARS: Final = 120  # of a field, or of a line of the address
COUNTRY: Final = re.compile(r"[A-Z]{2}")
_MAX_LINES: Final = 8  # of the address
_MAX_TAX_NAME_CHARS: Final = 40


def set_billing_profile(
    *, actor: Actor, customer: InvoiceParty, tax: InvoiceTax, now: datetime
) -> None:
    """Set the customer and the tax for a tenant's future invoices.

    Only the platform may do this, for example by a command that an operator runs. Raises Forbidden,
    InvalidValue.
    """
    actor.require_platform()
    _check_customer(customer)
    _check_text("tax", tax.name, max_chars=_MAX_TAX_NAME_CHARS)
    if not 0 <= tax.basis_points <= 10_000 or bool(tax.name) != bool(tax.basis_points):
        raise InvalidValue("tax", "Enter a tax name and 1 to 10,000 basis points, or neither.")
    with tenant_scope(actor.tenant_id):
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


def change_customer(*, actor: Actor, customer: InvoiceParty, now: datetime) -> None:
    """Change the customer of future invoices; the tax stays as it is.

    Only the issuer can change the tax. The audit entry names the changed fields. So the issuer
    notices a change of the country, for example, which may require another tax. If nothing changes,
    no entry is written. Raises Forbidden, InvalidValue.
    """
    actor.require(Permission.WRITE_BILLING)
    _check_customer(customer)
    with tenant_scope(actor.tenant_id):
        # Concurrent changes wait here, so that the entry shows the real old values.
        Tenant.objects.select_for_update(no_key=True).get(id=actor.tenant_id)
        old_customer, tax = read_billing_profile(actor.tenant_id)
        changed_fields = [
            field
            for field in InvoiceParty.__struct_fields__
            if _is_changed(old_customer, customer, field)
        ]
        if not changed_fields:
            return
        values = {"customer": msgspec.to_builtins(customer), "updated_at": now}
        # A new billing profile also needs the tax, which is none.
        tax_values = {"tax_name": tax.name, "tax_basis_points": tax.basis_points}
        BillingProfile.objects.update_or_create(
            tenant_id=actor.tenant_id, defaults=values, create_defaults={**values, **tax_values}
        )
        record_change(
            actor=actor,
            action="billing.customer_changed",
            target="billing:profile",
            # The e-mail address is left out, because it may be a person's.
            change=(
                {"name": old_customer.name, "tax_id": old_customer.tax_id},
                {
                    "name": customer.name,
                    "tax_id": customer.tax_id,
                    "changed": ", ".join(changed_fields),
                },
            ),
            now=now,
        )


def read_billing_profile(tenant_id: TenantId) -> tuple[InvoiceParty, InvoiceTax]:
    """Return the customer and the tax. Must run inside the tenant's scope.

    If there is no billing profile, the customer has only the tenant's name, and there is no tax.
    """
    row = BillingProfile.objects.filter(tenant_id=tenant_id).first()
    if row is None:
        return InvoiceParty(Tenant.objects.get(id=tenant_id).name), InvoiceTax("", 0)
    return msgspec.convert(row.customer, InvoiceParty), InvoiceTax(
        row.tax_name, row.tax_basis_points
    )


def read_issuer() -> InvoiceParty:
    """Return the issuer from the settings."""
    return InvoiceParty(
        name=settings.INVOICE_ISSUER,
        address=tuple(settings.INVOICE_ADDRESS),
        tax_id=settings.INVOICE_TAX_ID,
        email=settings.INVOICE_EMAIL,
        country=settings.INVOICE_COUNTRY,
    )


def read_bank_account() -> BankAccount | None:
    """Return the issuer's bank account; None: none is set."""
    if not settings.INVOICE_IBAN:
        return None
    return BankAccount(settings.INVOICE_IBAN, settings.INVOICE_BIC, settings.INVOICE_BANK)


def find_logo() -> Path | None:
    """Return the path of the logo for invoices; None: none is set, or the file does not exist."""
    if not settings.INVOICE_LOGO:
        return None
    logo = Path(settings.INVOICE_LOGO)
    if not logo.is_file():
        logger.warning("invoice.logo_not_found", path=str(logo))
        return None
    return logo


def _is_changed(old: InvoiceParty, new: InvoiceParty, field: str) -> bool:
    return bool(getattr(old, field) != getattr(new, field))


def _check_customer(customer: InvoiceParty) -> None:
    """Check the details of a customer. Raises InvalidValue."""
    for field in ("name", "tax_id", "email"):
        _check_text(field, getattr(customer, field))
    for line in customer.address:
        _check_text("address", line)
    if customer.country and not COUNTRY.fullmatch(customer.country):
        raise InvalidValue("country", "Enter a two-letter country code (ISO 3166), such as DE.")
    if not customer.name:
        raise InvalidValue("name", "Enter a name.")
    if len(customer.address) > _MAX_LINES:
        raise InvalidValue("address", "Enter an address of at most {most} lines.", most=_MAX_LINES)


def _check_text(field: str, text: str, *, max_chars: int = MAX_CHARS) -> None:
    validate_text(field, text)
    if len(text) > max_chars or not text.isprintable():
        raise InvalidValue(field, "Enter at most {most} printable characters.", most=max_chars)
