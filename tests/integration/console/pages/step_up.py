"""A browser whose user has just given their password, so that nothing asks for it again."""

from allauth.account.internal.flows.login import record_authentication
from django.http import HttpRequest

from tenants.models import User
from tests.fakes.console_client import Client
from tests.fixtures.companies import Person


def with_recent_step_up(client: Client, person: Person) -> Client:
    request = HttpRequest()
    request.session = client.session
    user = User.objects.get(id=person.user_id)
    record_authentication(request, user, "password", reauthenticated=True)
    request.session.save()
    return client
