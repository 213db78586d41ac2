"""Every endpoint of the REST API, fuzzed from its OpenAPI description by a signed-in owner.

Responses must match the description, and no server error may occur. The default suite repeats the
same three cases of each endpoint. The deep suite draws 65 of each, about 5,000 in all.
"""

from collections import Counter
from functools import cache
from typing import Any

import pytest
import schemathesis
from django.conf import settings as django_settings
from django.contrib.auth import get_user_model
from django.core.wsgi import get_wsgi_application
from hypothesis import HealthCheck, Phase, settings
from schemathesis.specs.openapi.checks import content_type_conformance, status_code_conformance

from console.api import rate_limit
from tenants.base.permissions import Role
from tests.fakes.console_client import Client
from tests.fixtures.companies import ACME_PEOPLE, make_company
from tests.stack.seed import IS_DEEP, scaled

CSRF_TOKEN = "c" * 32
STATUSES: Counter[int] = Counter()

schema = schemathesis.openapi.from_wsgi("/api/v1/openapi.json", get_wsgi_application())


@cache
def sign_in_cookies() -> dict[str, str]:
    """Return the cookies of an owner's signed-in browser."""
    owner = make_company("fuzzed", ACME_PEOPLE).people[Role.OWNER]
    client = Client()
    client.force_login(get_user_model().objects.get(id=owner.user_id))
    session = client.cookies[django_settings.SESSION_COOKIE_NAME].value
    return {
        django_settings.SESSION_COOKIE_NAME: session,
        django_settings.CSRF_COOKIE_NAME: CSRF_TOKEN,
    }


@pytest.fixture(autouse=True)
def _no_rate_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limit, "MAX_PER_MINUTE", 10**9)


@schema.parametrize()
@settings(
    max_examples=scaled(3, deep=65),
    derandomize=not IS_DEEP,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_responses_match_the_openapi_description(case: schemathesis.Case[Any]) -> None:
    response = case.call(headers={"X-CSRFToken": CSRF_TOKEN}, cookies=sign_in_cookies())

    STATUSES[response.status_code] += 1
    assert response.status_code < 500
    case.validate_response(response, checks=[status_code_conformance, content_type_conformance])


def test_more_than_a_tenth_of_the_responses_have_status_200() -> None:
    """This test needs the counts of the test above.

    The other requests are invalid, or not authenticated because they have a random key.
    """
    assert STATUSES[200] * 10 > STATUSES.total()
