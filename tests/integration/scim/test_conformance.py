"""The conformance suite scim2-tester, run against the application in this process."""

import pytest
from django.core.wsgi import get_wsgi_application

from tests.fixtures.companies import make_company
from tests.fixtures.users import make_scim_token


@pytest.mark.deep
def test_the_conformance_suite_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    # Imported here: it takes 2 s, and each worker process of a run imports all test files.
    from scim2_client.engines.wsgi import WSGISCIMClient
    from scim2_tester import Status, check_server

    from console.api import rate_limit

    monkeypatch.setattr(rate_limit, "MAX_PER_MINUTE", 100_000)  # the suite sends many requests
    _, text = make_scim_token(make_company("initech", {}))
    client = WSGISCIMClient(
        get_wsgi_application(),
        base_url="http://localhost/scim/v2",
        headers={"Authorization": f"Bearer {text}"},
    )

    results = check_server(client)

    failures = [
        result for result in results if result.status not in (Status.SUCCESS, Status.SKIPPED)
    ]
    assert [f"{result.title}: {result.reason}" for result in failures] == []
    # Far fewer checks succeed if the suite skips a feature that the server does not announce.
    assert sum(result.status is Status.SUCCESS for result in results) >= 40
