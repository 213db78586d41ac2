"""Django's test client in place of a browser, for tests that need none: same pages, same
sessions."""

from django.test import Client

from tests.browser.sessions import Session


def client_with(session: Session | None) -> Client:
    client = Client()
    if session is not None:
        client.cookies[session[0]] = session[1]
    return client
