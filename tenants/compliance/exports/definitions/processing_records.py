"""The record of processing that a processor keeps for each controller (GDPR, article 30(2)).

A row is one statement. It names the paragraph of article 30, and the source of the statement: the
operator's settings, the tenant's settings and policy, or this release of Caret.
"""

from collections.abc import Iterator
from typing import Final

from django.conf import settings
from django.utils.translation import gettext_noop

from caret.contracts.policy import TenantPolicy
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.permissions import Permission
from tenants.billing.invoices.billing_profile import read_billing_profile, read_issuer
from tenants.billing.invoices.document import InvoiceParty
from tenants.compliance.exports.export import Export
from tenants.compliance.exports.paged_source import UnpagedRows
from tenants.compliance.exports.rows import ColumnType, ExportColumn, Row, RowQuery
from tenants.models import AuditSink, IdentityProvider, Tenant
from tenants.policy.data_classes import DATA_CLASSES
from tenants.policy.queries import load_active_policy
from tenants.privacy.retention.rules_in_force import load_rules

# The sources of the statements.
_OPERATOR, _TENANT, _CARET = "operator's settings", "tenant's settings", "Caret"
_MEASURES: Final = (
    ("separation", "Forced row-level security in Postgres separates the rows of each tenant."),
    (
        "encryption",
        "Content and exports are encrypted (AES-256-GCM) under the tenant's own keys.",
    ),
    (
        "erasure",
        "When a user's or tenant's keys are destroyed, the data encrypted under them becomes"
        " unreadable at once.",
    ),
    (
        "access",
        "Roles and scopes limit what members and API keys may do. API keys are shown once and"
        " stored as HMACs.",
    ),
    (
        "evidence",
        "Each change and each read of sensitive data is recorded in a hash-chained audit log,"
        " which is signed every hour.",
    ),
    (
        "minimisation",
        "Code is kept after its request only if both the tenant and the user have agreed.",
    ),
)


def _list_rows(query: RowQuery) -> list[Row]:
    """Return the rows. A row has the columns of PROCESSING: article, subject, name ..."""
    with tenant_scope(query.tenant_id):
        policy = load_active_policy(tenant_id=query.tenant_id)
        return [
            *_read_party_rows(query),
            *_read_category_rows(query),
            *_read_recipient_rows(query),
            *_read_transfer_rows(query),
            *(("30(2)(d)", "security measure", name, text, _CARET) for name, text in _MEASURES),
            *_list_own_measures(query, policy),
        ]


def _read_party_rows(query: RowQuery) -> Iterator[Row]:
    customer, _ = read_billing_profile(query.tenant_id)
    yield "30(2)(a)", "processor", read_issuer().name, _format_contact(read_issuer()), _OPERATOR
    for officer in settings.DATA_PROTECTION_CONTACT:
        yield "30(2)(a)", "data protection officer", "of the processor", officer, _OPERATOR
    yield "30(2)(a)", "controller", customer.name, _format_contact(customer), _TENANT


def _format_contact(party: InvoiceParty) -> str:
    return ", ".join(text for text in (*party.address, party.email) if text)


def _read_category_rows(query: RowQuery) -> Iterator[Row]:
    """Yield the data classes with the retention days in force, as in the export `retention`."""
    rules = load_rules(tenant_id=query.tenant_id)
    for data_class, terms in DATA_CLASSES.items():
        basis = f"{terms.purpose} Legal basis: {terms.legal_basis}. Stored in: {terms.surface}."
        yield "30(2)(b)", "category of processing", terms.title, basis, _CARET
        period = f"{rules[data_class].days} days"
        # 30(2) does not require this period. The controller needs it for its own record.
        yield "30(1)(f)", "period until erasure", terms.title, period, _TENANT


def _read_recipient_rows(query: RowQuery) -> Iterator[Row]:
    for text in settings.SUBPROCESSORS:  # "NAME, purpose and location"
        name, _, purpose = text.partition(",")
        yield "30(2)(b)", "subprocessor", name.strip(), purpose.strip(), _OPERATOR
    for sink in AuditSink.objects.filter(tenant_id=query.tenant_id).order_by("name"):
        yield (
            "30(2)(b)",
            "recipient",
            sink.name,
            f"Receives audit entries at {sink.origin}.",
            _TENANT,
        )
    for provider in IdentityProvider.objects.filter(tenant_id=query.tenant_id).order_by("id"):
        purpose = "Signs in the tenant's members."
        yield "30(2)(b)", "recipient", provider.issuer, purpose, _TENANT


def _read_transfer_rows(query: RowQuery) -> Iterator[Row]:
    region = Tenant.objects.values_list("region", flat=True).get(id=query.tenant_id)
    yield "30(2)(c)", "place of processing", region, "Where the tenant's data is kept.", _OPERATOR
    for text in settings.TRANSFERS:  # "COUNTRY, safeguards"
        country, _, safeguard = text.partition(",")
        yield "30(2)(c)", "transfer", country.strip(), safeguard.strip(), _OPERATOR


def _list_own_measures(query: RowQuery, policy: TenantPolicy) -> Iterator[Row]:
    """Yield the measures that the tenant has chosen."""
    row = Tenant.objects.get(id=query.tenant_id)
    second_factor = row.is_mfa_required or policy.is_mfa_required
    for name, is_on in (
        ("second factor required", second_factor),
        ("filter for credentials", policy.has_secret_filter),
        ("filter for public code", policy.has_public_code_filter),
        ("content kept with consent", policy.content_capture is not None),
        ("files kept for retrieval", bool(policy.retrieval)),
    ):
        yield "30(2)(d)", "security measure", name, "yes" if is_on else "no", _TENANT


PROCESSING: Final = Export(
    name="processing",
    version=1,
    title=gettext_noop("Record of processing activities (GDPR, Article 30(2))"),
    permission=Permission.READ_RETENTION,
    columns=(
        ExportColumn("article", ColumnType.TEXT),
        ExportColumn("subject", ColumnType.TEXT),
        ExportColumn("name", ColumnType.TEXT),
        ExportColumn("statement", ColumnType.TEXT),
        ExportColumn("source", ColumnType.TEXT),
    ),
    source=UnpagedRows(_list_rows),
    is_of_period=False,
)

EXPORTS: Final = (PROCESSING,)
