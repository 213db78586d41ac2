"""Django's test client for tests that need no browser. It gets the same pages in the same
sessions."""

from django.test import Client

from tests.browser.sessions import Session


def client_with(session: Session | None) -> Client:
    client = Client()
    if session is not None:
        name, value = session
        client.cookies[name] = value
    return client
