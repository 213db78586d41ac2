"""Give a browser a recent step-up, so that pages do not ask for the password again."""

from allauth.account.internal.flows.login import record_authentication
from django.http import HttpRequest

from tenants.models import User
from tests.fakes.console_client import Client
from tests.fixtures.companies import Person


def with_recent_step_up(client: Client, person: Person) -> Client:
    """Record in the browser's session that its user has just entered the password again."""
    request = HttpRequest()
    request.session = client.session
    user = User.objects.get(id=person.user_id)
    record_authentication(request, user, "password", reauthenticated=True)
    request.session.save()
    return client
