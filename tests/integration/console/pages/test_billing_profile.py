"""The billing profile: the recipient of invoices, who may change it, and the issuer's tax."""

import re

import pytest
from django.test import Client
from django.utils import timezone

from tenants.base.permissions import Role
from tenants.billing.invoices.billing_profile import MAX_CHARS, set_billing_profile
from tenants.billing.invoices.document import InvoiceParty, InvoiceTax
from tenants.billing.invoices.queries import find_billing_profile
from tenants.security.audit.queries import AuditFilter, list_entries
from tests.fixtures.companies import ACME_PEOPLE, GLOBEX_PEOPLE, Company, make_company
from tests.integration.console.conftest import SignIn
from tests.integration.console.pages.step_up import with_recent_step_up

PATH = "/billing/profile/edit"
WRITERS = {Role.OWNER, Role.ADMINISTRATOR, Role.BILLING}
CURRENT = InvoiceParty("Initech", ("1 Main Street", "2nd floor"), "DE1", "bills@initech.example")
CHANGED = {
    "name": "Initrode",
    "address": "2 Side Street\n\n  12345 Town ",
    "tax_id": "DE123456789",
    "email": "ap@initrode.example",
    "country": "DE",
}

_OPTIONAL = re.compile(r"<label[^>]*>([^<]+) <small>\(optional\)</small></label>")


@pytest.fixture
def company() -> Company:
    company = make_company("initech", ACME_PEOPLE)
    tax = InvoiceTax("VAT", 1_900)  # 19%, in basis points
    set_billing_profile(actor=company.platform, customer=CURRENT, tax=tax, now=timezone.now())
    return company


@pytest.fixture
def bill(company: Company, sign_in: SignIn) -> Client:
    """Return the browser of Bill, who has the billing role."""
    return open_browser_after_step_up(company, Role.BILLING, sign_in)


def open_browser_after_step_up(company: Company, role: Role, sign_in: SignIn) -> Client:
    person = company.people[role]
    return with_recent_step_up(sign_in(person), person)


def customer_of(company: Company) -> InvoiceParty:
    return find_billing_profile(actor=company.people[Role.OWNER].actor).customer


def audit_actions_of(company: Company) -> list[str]:
    actor = company.people[Role.OWNER].actor
    entry_page = list_entries(
        actor=actor, audit_filter=AuditFilter(), limit=50, cursor=None, now=timezone.now()
    )
    return [entry.action for entry in entry_page.rows]


def test_the_form_marks_the_optional_fields(bill: Client) -> None:
    page = bill.get(PATH).content.decode()

    assert _OPTIONAL.findall(page) == ["Address", "Country", "Tax ID", "Invoice e-mail"]
    assert "<small></small>" not in page


def test_the_form_shows_the_current_profile(bill: Client) -> None:
    page = bill.get(PATH).content.decode()

    assert 'value="Initech"' in page
    assert "1 Main Street\n2nd floor</textarea>" in page
    assert 'value="DE1"' in page
    assert 'value="bills@initech.example"' in page


def test_saving_the_profile_replaces_the_customer_and_keeps_the_tax(
    company: Company, bill: Client
) -> None:
    answer = bill.post(PATH, CHANGED, follow=True)

    profile = find_billing_profile(actor=company.people[Role.OWNER].actor)
    lines = ("2 Side Street", "12345 Town")
    assert profile.customer == InvoiceParty(
        "Initrode", lines, "DE123456789", "ap@initrode.example", "DE"
    )
    assert profile.tax == InvoiceTax("VAT", 1_900)
    assert "Billing profile saved. It applies from the next invoice." in answer.content.decode()


def test_the_first_profile_is_made_without_a_tax(sign_in: SignIn) -> None:
    company = make_company("hooli", ACME_PEOPLE)

    open_browser_after_step_up(company, Role.OWNER, sign_in).post(PATH, CHANGED)

    profile = find_billing_profile(actor=company.people[Role.OWNER].actor)
    assert (profile.customer.name, profile.tax) == ("Initrode", InvoiceTax("", 0))


def test_only_an_actual_change_adds_an_audit_entry(company: Company, bill: Client) -> None:
    bill.post(PATH, CHANGED)
    bill.post(PATH, CHANGED)

    assert audit_actions_of(company).count("billing.customer_changed") == 1


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", " "),
        ("name", "x" * (MAX_CHARS + 1)),
        ("email", "nobody"),
        ("tax_id", "DE\a1"),  # with a control character
        ("tax_id", "x" * (MAX_CHARS + 1)),
        ("address", "line\n" * 9),  # one line too many
        ("address", "x" * (MAX_CHARS + 1)),
    ],
)
def test_a_value_that_an_invoice_cannot_hold_gets_an_error_at_its_field(
    company: Company, bill: Client, field: str, value: str
) -> None:
    answer = bill.post(PATH, {**CHANGED, field: value})

    assert answer.status_code == 400
    assert f'id="id_{field}_error"' in answer.content.decode()
    assert customer_of(company) == CURRENT


def test_saving_the_profile_requires_a_step_up(company: Company, sign_in: SignIn) -> None:
    answer = sign_in(company.people[Role.BILLING]).post(PATH, CHANGED)

    assert answer["Location"].startswith("/account/confirm")
    assert customer_of(company) == CURRENT


@pytest.mark.parametrize("role", list(Role))
def test_roles_that_may_not_edit_the_profile_get_neither_link_nor_form(
    company: Company, sign_in: SignIn, role: Role
) -> None:
    client = open_browser_after_step_up(company, role, sign_in)

    statuses = {client.get(PATH).status_code, client.post(PATH, {}).status_code}

    # The posted form is empty, so it is invalid.
    assert statuses == ({200, 400} if role in WRITERS else {403})
    is_linked = f'href="{PATH}"' in client.get("/billing/profile").content.decode()
    assert is_linked == (role in WRITERS)


def test_another_tenant_changes_only_its_own_profile(company: Company, sign_in: SignIn) -> None:
    other_company = make_company("globex", GLOBEX_PEOPLE)

    open_browser_after_step_up(other_company, Role.ADMINISTRATOR, sign_in).post(PATH, CHANGED)

    assert customer_of(company) == CURRENT
