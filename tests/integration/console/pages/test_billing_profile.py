"""The billing profile: the recipient of invoices, who may change it, and the issuer's tax."""

import pytest
from django.test import Client
from django.utils import timezone

from tenants.base.permissions import Role
from tenants.billing.invoices.billing_profile import set_profile
from tenants.billing.invoices.document import InvoiceParty, InvoiceTax
from tenants.billing.invoices.queries import find_profile
from tenants.security.audit.queries import AuditFilter, list_entries
from tests.fixtures.companies import ACME, GLOBEX, Company, make_company
from tests.integration.console.conftest import SignIn
from tests.integration.console.pages.step_up import confirmed

PATH = "/billing/profile/edit"
WRITERS = {Role.OWNER, Role.ADMINISTRATOR, Role.BILLING}
HELD = InvoiceParty("Initech", ("1 Main Street", "2nd floor"), "DE1", "bills@initech.example")
WANTED = {
    "name": "Initrode",
    "address": "2 Side Street\n\n  12345 Town ",
    "tax_id": "DE123456789",
    "email": "ap@initrode.example",
}


@pytest.fixture
def company() -> Company:
    company = make_company("initech", ACME)
    tax = InvoiceTax("VAT", 1_900)
    set_profile(actor=company.platform, customer=HELD, tax=tax, now=timezone.now())
    return company


@pytest.fixture
def bill(company: Company, sign_in: SignIn) -> Client:
    return browser(company, Role.BILLING, sign_in)


def browser(company: Company, role: Role, sign_in: SignIn) -> Client:
    person = company.people[role]
    return confirmed(sign_in(person), person)


def customer_of(company: Company) -> InvoiceParty:
    return find_profile(actor=company.people[Role.OWNER].actor).customer


def actions_of(company: Company) -> list[str]:
    actor = company.people[Role.OWNER].actor
    found = list_entries(
        actor=actor, asked=AuditFilter(), limit=50, cursor=None, now=timezone.now()
    )
    return [entry.action for entry in found.rows]


def test_the_form_holds_what_is_in_force(bill: Client) -> None:
    page = bill.get(PATH).content.decode()

    assert 'value="Initech"' in page
    assert "1 Main Street\n2nd floor</textarea>" in page
    assert 'value="DE1"' in page
    assert 'value="bills@initech.example"' in page


def test_what_is_written_stands_on_the_next_invoice_and_the_tax_stays(
    company: Company, bill: Client
) -> None:
    answer = bill.post(PATH, WANTED, follow=True)

    found = find_profile(actor=company.people[Role.OWNER].actor)
    lines = ("2 Side Street", "12345 Town")
    assert found.customer == InvoiceParty("Initrode", lines, "DE123456789", "ap@initrode.example")
    assert found.tax == InvoiceTax("VAT", 1_900)
    assert "Billing profile saved. It applies from the next invoice." in answer.content.decode()


def test_the_first_profile_is_made_without_a_tax(sign_in: SignIn) -> None:
    company = make_company("hooli", ACME)

    browser(company, Role.OWNER, sign_in).post(PATH, WANTED)

    found = find_profile(actor=company.people[Role.OWNER].actor)
    assert (found.customer.name, found.tax) == ("Initrode", InvoiceTax("", 0))


def test_a_change_is_an_entry_of_the_audit_trail_and_the_same_again_is_none(
    company: Company, bill: Client
) -> None:
    bill.post(PATH, WANTED)
    bill.post(PATH, WANTED)

    assert actions_of(company).count("billing.customer_changed") == 1


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", " "),
        ("name", "x" * 121),
        ("email", "nobody"),
        ("tax_id", "DE\a1"),
        ("tax_id", "x" * 121),
        ("address", "line\n" * 9),
        ("address", "x" * 121),
    ],
)
def test_what_no_invoice_can_hold_is_said_at_its_field(
    company: Company, bill: Client, field: str, value: str
) -> None:
    answer = bill.post(PATH, {**WANTED, field: value})

    assert answer.status_code == 400
    assert f'id="id_{field}_error"' in answer.content.decode()
    assert customer_of(company) == HELD


def test_who_has_not_just_said_who_he_is_does_so_first(company: Company, sign_in: SignIn) -> None:
    answer = sign_in(company.people[Role.BILLING]).post(PATH, WANTED)

    assert answer["Location"].startswith("/account/confirm")
    assert customer_of(company) == HELD


@pytest.mark.parametrize("role", list(Role))
def test_who_may_not_is_neither_led_there_nor_let(
    company: Company, sign_in: SignIn, role: Role
) -> None:
    client = browser(company, role, sign_in)

    statuses = {client.get(PATH).status_code, client.post(PATH, {}).status_code}

    assert statuses == ({200, 400} if role in WRITERS else {403})
    is_led = f'href="{PATH}"' in client.get("/billing/profile").content.decode()
    assert is_led == (role in WRITERS)


def test_the_neighbour_changes_its_own(company: Company, sign_in: SignIn) -> None:
    neighbour = make_company("globex", GLOBEX)

    browser(neighbour, Role.ADMINISTRATOR, sign_in).post(PATH, WANTED)

    assert customer_of(company) == HELD
