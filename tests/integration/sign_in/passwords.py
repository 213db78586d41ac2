"""Steps of the tests about passwords: a user of two companies changes or resets the password."""

import re
from typing import Any, Final

from django.conf import LazySettings
from django.core import mail
from django.utils import timezone

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base import redis_connection
from tenants.identity.passwords.reset_mail import mail_requested_links
from tenants.models import AuditEntry, User
from tests.fakes.console_client import Client
from tests.fixtures.companies import PASSWORD, Company, Person
from tests.integration.sign_in.browser import Browser, new_browser
from tests.integration.sign_in.by_provider import fresh_client

NEW_PASSWORD: Final = "staple purple giraffe"
QUEUE: Final = "caret:password-reset-requests"
_UNUSABLE_LINK: Final = b"This link was already used, or it has expired."


def keep_mails_in_memory(settings: LazySettings) -> None:
    """Collect mails in an empty `mail.outbox`, and drop links that earlier tests requested."""
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    mail.outbox = []
    redis_connection.connect_to_redis().delete(QUEUE)


def list_password_entries(company: Company) -> list[AuditEntry]:
    with tenant_scope(company.tenant_id):
        rows = AuditEntry.objects.filter(action__startswith="password.")
        return list(rows.order_by("sequence"))


def signed_in(person: Person) -> Browser:
    browser = new_browser(person)
    assert browser.sign_in() == "/"
    return browser


def can_sign_in(person: Person, password: str) -> bool:
    form = {"email": person.email, "password": password}
    return fresh_client().post("/sign-in", form).status_code == 302


def post_password_change(client: Client, new: str = NEW_PASSWORD, current: str = PASSWORD) -> Any:
    form = {"current_password": current, "password": new}
    return client.post("/account/password", form)


def request_link(email: str, client: Client | None = None) -> Any:
    return (client or fresh_client()).post("/forgot-password", {"email": email})


def mailed_link(person: Person) -> str:
    """Request a link, let the worker send it, and return its path."""
    assert request_link(person.email).status_code == 302
    mail_requested_links(now=timezone.now())
    match = re.search(r"/reset-password/\S+", str(mail.outbox[-1].body))
    assert match is not None, mail.outbox[-1].body
    return match[0]


def open_link(path: str) -> Client:
    """Open the link, and return the client. It has been redirected to the form for a password."""
    client = fresh_client()
    assert client.get(path)["Location"] == "/reset-password"
    return client


def is_unusable(path: str) -> bool:
    """Return whether a page says that the link was used or has expired."""
    response = fresh_client().get(path)
    return response.status_code == 404 and _UNUSABLE_LINK in response.content


def find_user_row(person: Person) -> User:
    return User.objects.get(id=person.user_id)  # type: ignore[no-any-return]  # the manager is untyped
