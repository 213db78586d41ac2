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
    read_profile,
    set_profile,
)
from tenants.billing.invoices.document import InvoiceParty, InvoiceTax
from tenants.models import AuditEntry, BillingProfile
from tests.fixtures.companies import ACME, Company, make_company
from tests.stack.waiting import wait_until

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
HELD = InvoiceParty("Initech", ("1 Main Street",), "DE1", "bills@initech.example")
WANTED = InvoiceParty("Initrode", ("2 Side Street",), "DE2", "ap@initrode.example")
VAT = InvoiceTax("VAT", 1_900)
NONE = InvoiceTax("", 0)
WRITERS = {Role.OWNER, Role.ADMINISTRATOR, Role.BILLING}
LONG = "x" * (MAX_CHARS + 1)


@pytest.fixture
def company() -> Company:
    company = make_company("initech", ACME)
    set_profile(actor=company.platform, customer=HELD, tax=VAT, now=NOW)
    return company


def change(company: Company, customer: InvoiceParty = WANTED, role: Role = Role.BILLING) -> None:
    later = NOW + timedelta(hours=1)
    change_customer(actor=company.people[role].actor, customer=customer, now=later)


def held(company: Company) -> tuple[InvoiceParty, InvoiceTax]:
    with tenant_scope(company.tenant_id):
        return read_profile(company.tenant_id)


def changes_of(company: Company) -> list[AuditEntry]:
    with tenant_scope(company.tenant_id):
        entries = AuditEntry.objects.filter(action="billing.customer_changed")
        return list(entries.order_by("sequence"))


@pytest.mark.parametrize("role", sorted(set(Role) - WRITERS))
def test_who_may_not_changes_nothing(company: Company, role: Role) -> None:
    with pytest.raises(Forbidden):
        change(company, role=role)

    assert held(company) == (HELD, VAT)


@pytest.mark.parametrize("role", sorted(WRITERS))
def test_who_may_changes_it_and_the_tax_stays(company: Company, role: Role) -> None:
    change(company, role=role)

    assert held(company) == (WANTED, VAT)
    with tenant_scope(company.tenant_id):
        assert BillingProfile.objects.get().updated_at == NOW + timedelta(hours=1)


def test_the_tax_is_the_platforms_to_set(company: Company) -> None:
    with pytest.raises(Forbidden):
        set_profile(actor=company.people[Role.OWNER].actor, customer=WANTED, tax=NONE, now=NOW)

    assert held(company) == (HELD, VAT)


def test_the_trail_has_names_and_tax_ids_and_no_mails_address(company: Company) -> None:
    change(company)

    (entry,) = changes_of(company)
    changed = "name, address, tax_id, email"
    assert entry.before == {"name": "Initech", "tax_id": "DE1"}
    assert entry.after == {"name": "Initrode", "tax_id": "DE2", "changed": changed}
    assert entry.target == "billing:profile"


def test_the_trail_names_what_was_changed_alone(company: Company) -> None:
    change(company, InvoiceParty(HELD.name, HELD.address, HELD.tax_id, "new@initech.example"))
    change(company, InvoiceParty(HELD.name, HELD.address, HELD.tax_id, "new@initech.example"))

    (entry,) = changes_of(company)
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
        ("address", InvoiceParty("I", ("line",) * 9)),
    ],
)
def test_what_cannot_stand_on_an_invoice_is_refused_by_its_field(
    company: Company, field: str, customer: InvoiceParty
) -> None:
    with pytest.raises(InvalidValue) as own:
        change(company, customer)
    with pytest.raises(InvalidValue) as platforms:
        set_profile(actor=company.platform, customer=customer, tax=VAT, now=NOW)

    assert (own.value.field, platforms.value.field) == (field, field)
    assert held(company) == (HELD, VAT)


def test_what_just_fits_stands_there(company: Company) -> None:
    full = "x" * MAX_CHARS

    change(company, InvoiceParty(full, (full,) * 8, full, full))

    assert held(company)[0] == InvoiceParty(full, (full,) * 8, full, full)


@pytest.mark.parametrize(
    "tax",
    [InvoiceTax("VAT", 0), InvoiceTax("", 1_900), InvoiceTax("VAT", 10_001), InvoiceTax("V", -1)],
)
def test_a_tax_has_a_name_and_a_share_or_neither(company: Company, tax: InvoiceTax) -> None:
    with pytest.raises(InvalidValue) as refused:
        set_profile(actor=company.platform, customer=HELD, tax=tax, now=NOW)

    assert refused.value.field == "tax"


def test_of_two_changes_at_once_the_second_follows_the_first(company: Company) -> None:
    def second() -> None:
        try:
            change(company)
        finally:
            connections.close_all()

    thread = Thread(target=second)
    between = InvoiceParty("Between", HELD.address, HELD.tax_id, HELD.email)
    with tenant_scope(company.tenant_id):
        change(company, between)
        thread.start()
        wait_until(_somebody_waits, timeout_s=30)
    thread.join()

    assert [(each.before or {})["name"] for each in changes_of(company)] == ["Initech", "Between"]
    assert held(company)[0] == WANTED


def _somebody_waits() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        (num,) = cursor.fetchone() or (0,)
    return bool(num)
