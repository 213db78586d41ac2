"""Changes of sign-in methods are emailed to the user and recorded in each tenant's audit log.

Olga is a member of the two `companies`, but not of globex.
"""

import smtplib
from collections.abc import Callable

import pytest
import structlog
from django.conf import LazySettings
from django.core import mail
from django.core.mail.backends.locmem import EmailBackend

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.identity.members import account_changes
from tenants.models import AuditEntry
from tests.fakes.passkey import SoftPasskey
from tests.fixtures.companies import Cast, Company, Person
from tests.integration.sign_in.browser import Browser, new_browser
from tests.integration.sign_in.with_passkey import Browser as PasskeyBrowser


@pytest.fixture(autouse=True)
def _mails_in_memory(settings: LazySettings) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    mail.outbox = []


def list_factor_entries(company: Company) -> list[AuditEntry]:
    with tenant_scope(company.tenant_id):
        rows = AuditEntry.objects.filter(action__startswith="second_factor.")
        return list(rows.order_by("sequence"))


def browser_with_app(olga: Person) -> Browser:
    browser = new_browser(olga)
    browser.sign_in()
    browser.set_up_app()
    return browser


def add_app(olga: Person) -> None:
    browser_with_app(olga)


def remove_app(olga: Person) -> None:
    browser_with_app(olga).client.post("/account/second-factor/app/remove")


def renew_codes(olga: Person) -> None:
    browser_with_app(olga).client.post("/account/recovery-codes/new")


def browser_with_passkey(olga: Person) -> PasskeyBrowser:
    browser = PasskeyBrowser(olga)
    browser.sign_in()
    browser.add(SoftPasskey())
    return browser


def add_passkey(olga: Person) -> None:
    browser_with_passkey(olga)


def remove_passkey(olga: Person) -> None:
    browser = browser_with_passkey(olga)
    page = browser.client.get("/account/second-factor")
    (passkey,) = page.context["passkeys"]
    browser.client.post(f"/account/passkeys/{passkey.instance.pk}/remove")


# Action, `before` and `after` of the audit entry, and a part of the email's subject.
ExpectedRecord = tuple[str, dict[str, str] | None, dict[str, str] | None, str]
CHANGES: dict[Callable[[Person], None], ExpectedRecord] = {
    add_app: ("second_factor.added", None, {"factor": "app"}, "app was added"),
    remove_app: ("second_factor.removed", {"factor": "app"}, None, "app was removed"),
    renew_codes: (
        "second_factor.renewed",
        {"factor": "recovery_codes"},
        {"factor": "recovery_codes"},
        "New recovery codes",
    ),
    add_passkey: ("second_factor.added", None, {"factor": "passkey"}, "passkey was added"),
    remove_passkey: ("second_factor.removed", {"factor": "passkey"}, None, "passkey was removed"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_factor_change_is_mailed_to_the_user_and_audited_in_each_tenant(
    companies: list[Company], olga: Person, cast: Cast, change: Callable[[Person], None]
) -> None:
    action, before, after, subject = CHANGES[change]
    num_before = len(list_factor_entries(cast.globex))

    change(olga)

    for company in companies:
        entry = list_factor_entries(company)[-1]
        assert (entry.action, entry.before, entry.after) == (action, before, after)
        assert (str(entry.actor_id), entry.target) == (olga.user_id, f"user:{olga.user_id}")
        assert (entry.address or "").startswith("10.")  # as the address of each test browser
    assert len(list_factor_entries(cast.globex)) == num_before, "not in another tenant's log"
    message = mail.outbox[-1]
    assert message.to == [olga.email]
    assert subject in message.subject
    assert (list_factor_entries(companies[0])[-1].address or "") in message.body


def test_a_change_sends_one_mail_and_adds_one_entry(companies: list[Company], olga: Person) -> None:
    add_passkey(olga)

    assert len(mail.outbox) == 1
    assert [len(list_factor_entries(company)) for company in companies] == [1, 1]


def test_a_change_that_cannot_be_audited_is_rolled_back(
    companies: list[Company], olga: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = browser_with_app(olga)
    browser.client.raise_request_exception = False
    mail.outbox = []

    def raise_error(**_: object) -> None:
        raise ZeroDivisionError("planted")

    with monkeypatch.context() as failing:
        failing.setattr(account_changes, "record_change", raise_error)
        response = browser.client.post("/account/second-factor/app/remove")

    assert response.status_code == 500
    assert b"Authenticator app" in browser.client.get("/account/second-factor").content
    assert new_browser(olga).sign_in() == "/sign-in/code", "the app must still be required"
    assert mail.outbox == []


class FailingBackend(EmailBackend):
    def send_messages(self, messages: object) -> int:
        raise smtplib.SMTPServerDisconnected("planted")


def test_a_failed_mail_is_logged_without_the_address(
    companies: list[Company], olga: Person, settings: LazySettings
) -> None:
    settings.EMAIL_BACKEND = f"{__name__}.FailingBackend"

    with structlog.testing.capture_logs() as logs:
        add_passkey(olga)

    assert [log["user_id"] for log in logs if log["event"] == "account_change.not_mailed"] == [
        olga.user_id
    ]
    assert olga.email not in str(logs)
    assert len(list_factor_entries(companies[0])) == 1
