"""The billing profile: permission, valid values, and audit entries."""

from datetime import UTC, datetime, timedelta
from threading import Thread

import pytest
from django.db import connection, connections

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Forbidden, InvalidValue
from tenants.base.permissions import Role
from tenants.billing.invoices.billing_profile import (
    MAX_CHARS,
    change_customer,
    read_billing_profile,
    set_billing_profile,
)
from tenants.billing.invoices.document import InvoiceParty, InvoiceTax
from tenants.models import AuditEntry, BillingProfile
from tests.fixtures.companies import ACME_PEOPLE, Company, make_company
from tests.stack.waiting import wait_until

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
CURRENT = InvoiceParty("Initech", ("1 Main Street",), "DE1", "bills@initech.example")
CHANGED = InvoiceParty("Initrode", ("2 Side Street",), "DE2", "ap@initrode.example")
VAT = InvoiceTax("VAT", 1_900)  # basis points: 19%
NO_TAX = InvoiceTax("", 0)
WRITERS = {Role.OWNER, Role.ADMINISTRATOR, Role.BILLING}
LONG = "x" * (MAX_CHARS + 1)


@pytest.fixture
def company() -> Company:
    company = make_company("initech", ACME_PEOPLE)
    set_billing_profile(actor=company.platform, customer=CURRENT, tax=VAT, now=NOW)
    return company


def change_profile(
    company: Company, customer: InvoiceParty = CHANGED, role: Role = Role.BILLING
) -> None:
    now = NOW + timedelta(hours=1)
    change_customer(actor=company.people[role].actor, customer=customer, now=now)


def read_current(company: Company) -> tuple[InvoiceParty, InvoiceTax]:
    with tenant_scope(company.tenant_id):
        return read_billing_profile(company.tenant_id)


def list_change_entries(company: Company) -> list[AuditEntry]:
    with tenant_scope(company.tenant_id):
        entries = AuditEntry.objects.filter(action="billing.customer_changed")
        return list(entries.order_by("sequence"))


@pytest.mark.parametrize("role", sorted(set(Role) - WRITERS))
def test_roles_without_permission_cannot_change_the_profile(company: Company, role: Role) -> None:
    with pytest.raises(Forbidden):
        change_profile(company, role=role)

    assert read_current(company) == (CURRENT, VAT)


@pytest.mark.parametrize("role", sorted(WRITERS))
def test_changing_the_customer_keeps_the_tax(company: Company, role: Role) -> None:
    change_profile(company, role=role)

    assert read_current(company) == (CHANGED, VAT)
    with tenant_scope(company.tenant_id):
        assert BillingProfile.objects.get().updated_at == NOW + timedelta(hours=1)


def test_only_the_platform_sets_the_tax(company: Company) -> None:
    with pytest.raises(Forbidden):
        set_billing_profile(
            actor=company.people[Role.OWNER].actor, customer=CHANGED, tax=NO_TAX, now=NOW
        )

    assert read_current(company) == (CURRENT, VAT)


def test_the_audit_entry_has_names_and_tax_ids_but_no_addresses(company: Company) -> None:
    change_profile(company)

    (entry,) = list_change_entries(company)
    changed_fields = "name, address, tax_id, email"
    assert entry.before == {"name": "Initech", "tax_id": "DE1"}
    assert entry.after == {"name": "Initrode", "tax_id": "DE2", "changed": changed_fields}
    assert entry.target == "billing:profile"


def test_the_audit_entry_names_only_changed_fields(company: Company) -> None:
    customer_with_new_email = InvoiceParty(
        CURRENT.name, CURRENT.address, CURRENT.tax_id, "new@initech.example"
    )

    change_profile(company, customer_with_new_email)
    change_profile(company, customer_with_new_email)  # changes nothing

    (entry,) = list_change_entries(company)
    assert entry.after == {"name": "Initech", "tax_id": "DE1", "changed": "email"}


@pytest.mark.parametrize(
    ("field", "customer"),
    [
        ("name", InvoiceParty("")),
        ("name", InvoiceParty(LONG)),
        ("tax_id", InvoiceParty("I", tax_id=LONG)),
        ("tax_id", InvoiceParty("I", tax_id="DE\a1")),
        ("email", InvoiceParty("I", email=LONG)),
        ("email", InvoiceParty("I", email="a\0@b.example")),
        ("address", InvoiceParty("I", ("1 Main Street", LONG))),
        ("address", InvoiceParty("I", ("1 Main\nStreet",))),
        ("address", InvoiceParty("I", ("line",) * 9)),  # one line too many
    ],
)
def test_a_value_that_does_not_fit_an_invoice_is_rejected_with_its_field(
    company: Company, field: str, customer: InvoiceParty
) -> None:
    with pytest.raises(InvalidValue) as error_of_member:
        change_profile(company, customer)
    with pytest.raises(InvalidValue) as error_of_platform:
        set_billing_profile(actor=company.platform, customer=customer, tax=VAT, now=NOW)

    assert (error_of_member.value.field, error_of_platform.value.field) == (field, field)
    assert read_current(company) == (CURRENT, VAT)


def test_values_of_the_maximum_length_are_accepted(company: Company) -> None:
    full = "x" * MAX_CHARS

    change_profile(company, InvoiceParty(full, (full,) * 8, full, full))

    assert read_current(company)[0] == InvoiceParty(full, (full,) * 8, full, full)


@pytest.mark.parametrize(
    "tax",
    [
        InvoiceTax("VAT", 0),
        InvoiceTax("", 1_900),
        InvoiceTax("VAT", 10_001),  # basis points: more than 100%
        InvoiceTax("V", -1),
        InvoiceTax("V" * 41, 1_900),  # one character too many
        InvoiceTax("V\0", 1_900),
    ],
)
def test_a_tax_without_a_valid_name_and_rate_is_rejected(company: Company, tax: InvoiceTax) -> None:
    with pytest.raises(InvalidValue) as exc_info:
        set_billing_profile(actor=company.platform, customer=CURRENT, tax=tax, now=NOW)

    assert exc_info.value.field == "tax"


def test_two_concurrent_changes_are_applied_in_order(company: Company) -> None:
    def change_in_second_thread() -> None:
        try:
            change_profile(company)
        finally:
            connections.close_all()

    thread = Thread(target=change_in_second_thread)
    customer_between = InvoiceParty("Between", CURRENT.address, CURRENT.tax_id, CURRENT.email)
    with tenant_scope(company.tenant_id):
        change_profile(company, customer_between)
        thread.start()
        wait_until(is_lock_awaited, timeout_s=300)
    thread.join()

    assert [(entry.before or {})["name"] for entry in list_change_entries(company)] == [
        "Initech",
        "Between",
    ]
    assert read_current(company)[0] == CHANGED


def is_lock_awaited() -> bool:
    """Return whether a database session waits for a lock of another."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        (num,) = cursor.fetchone() or (0,)
    return bool(num)
