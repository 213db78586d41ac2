"""`manage.py reset_second_factors`, after the root secret was replaced."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO

import pytest
from allauth.mfa.models import Authenticator
from django.conf import LazySettings
from django.core import mail
from django.core.management import CommandError, call_command
from django.utils import timezone

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.models import AuditEntry
from tenants.security.encryption.envelope import SealContext
from tenants.security.encryption.operations import seal_in_scope
from tests.fakes.passkey import SoftPasskey
from tests.fixtures.companies import Company, Person
from tests.integration.sign_in import with_passkey
from tests.integration.sign_in.browser import new_browser


@pytest.fixture(autouse=True)
def _mails_in_memory(settings: LazySettings) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    mail.outbox = []


@contextmanager
def earlier_root_secret(settings: LazySettings) -> Iterator[None]:
    """Run the block with a root secret that is replaced after it."""
    current = settings.ROOT_SECRET
    settings.ROOT_SECRET = secrets.token_bytes(32)
    try:
        yield
    finally:
        settings.ROOT_SECRET = current
    mail.outbox = []


def set_up_app(olga: Person) -> None:
    browser = new_browser(olga)
    browser.sign_in()
    browser.set_up_app()


def reset_factors(reason: str = "The root secret leaked") -> str:
    output = StringIO()
    call_command("reset_second_factors", reason=reason, stdout=output)
    return output.getvalue()


def list_resets(company: Company) -> list[AuditEntry]:
    with tenant_scope(company.tenant_id):
        return list(AuditEntry.objects.filter(action="second_factor.reset").order_by("sequence"))


def test_factors_of_the_old_root_secret_are_removed_audited_and_mailed(
    companies: list[Company], olga: Person, settings: LazySettings
) -> None:
    with earlier_root_secret(settings):
        set_up_app(olga)

    output = reset_factors()

    assert "were reset: 1." in output
    assert new_browser(olga).sign_in() == "/", "the password must be enough"
    for company in companies:
        entries = list_resets(company)
        assert [entry.before for entry in entries] == [
            {"factor": "app"},
            {"factor": "recovery_codes"},
        ]
        for entry in entries:
            assert (entry.target, entry.actor_id) == (f"user:{olga.user_id}", None)
            assert (entry.after, entry.reason) == (None, "The root secret leaked")
    (message,) = mail.outbox
    assert message.to == [olga.email]
    assert "second factor" in message.subject


def test_factors_of_the_current_root_secret_stay(companies: list[Company], olga: Person) -> None:
    set_up_app(olga)
    mail.outbox = []

    output = reset_factors()

    assert "were reset: 0." in output
    assert new_browser(olga).sign_in() == "/sign-in/code"
    assert list_resets(companies[0]) == []
    assert mail.outbox == []


def test_passkeys_stay(companies: list[Company], olga: Person, settings: LazySettings) -> None:
    with earlier_root_secret(settings):
        browser = with_passkey.Browser(olga)
        browser.sign_in()
        browser.add(SoftPasskey())

    reset_factors()

    types = Authenticator.objects.filter(user_id=olga.user_id).values_list("type", flat=True)
    assert list(types) == [Authenticator.Type.WEBAUTHN]
    assert [entry.before for entry in list_resets(companies[0])] == [{"factor": "recovery_codes"}]


def test_a_root_secret_of_another_installation_changes_nothing(
    companies: list[Company], olga: Person, settings: LazySettings
) -> None:
    set_up_app(olga)
    # The root key of the current root secret is in use now.
    context = SealContext(table="content_object", column="content", row="7")
    tenant_id = companies[0].tenant_id
    seal_in_scope(tenant_id, "user:olga", context=context, data=b"text", now=timezone.now())

    with earlier_root_secret(settings), pytest.raises(CommandError, match="CARET_ROOT_KEYS"):
        reset_factors()

    assert Authenticator.objects.filter(user_id=olga.user_id).count() == 2


def test_a_reason_that_is_too_long_changes_nothing(olga: Person, settings: LazySettings) -> None:
    with earlier_root_secret(settings):
        set_up_app(olga)

    with pytest.raises(CommandError):
        reset_factors("x" * 10_000)

    assert Authenticator.objects.filter(user_id=olga.user_id).count() == 2
    reset_factors()  # for other tests
