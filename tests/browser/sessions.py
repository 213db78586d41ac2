"""Sessions made on the server; the sign-in pages have their own tests."""

from allauth.account.internal.flows.login import record_authentication
from django.conf import settings
from django.http import HttpRequest

from console.sign_in.sessions.session_store import SessionStore
from tenants.models import User
from tests.fakes.console_client import Client
from tests.fixtures.companies import Person
from tests.integration.operators.browsers import OPERATOR_SESSION_COOKIE, signed_in

# A cookie's name and value.
Session = tuple[str, str]


def session_of(person: Person, *, confirmed: bool = True) -> Session:
    """Return a new session of the person.

    With `confirmed`, they have just given their password, so no page asks for the password again.
    """
    client, user = Client(), User.objects.get(id=person.user_id)
    client.force_login(user)
    if confirmed:
        request = HttpRequest()
        request.session = client.session
        record_authentication(request, user, "password", reauthenticated=True)
        request.session.save()
    name = settings.SESSION_COOKIE_NAME
    return name, client.cookies[name].value


def expire_password_check(session: Session) -> None:
    """Remove the last password check from the session, so that actions require a step-up again."""
    store = SessionStore.from_token(session[1])
    store["account_authentication_methods"] = []
    store.save()


def operators_session() -> Session:
    """Return the session of an operator who has just signed in."""
    return OPERATOR_SESSION_COOKIE, signed_in().client.cookies[OPERATOR_SESSION_COOKIE].value
