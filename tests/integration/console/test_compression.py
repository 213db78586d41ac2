"""Pages are compressed; responses that may contain secrets are not (ADR 0107).

Random padding hides the exact compressed length, from which an attacker could guess a secret.
"""

import gzip

import pytest
from django.test import Client

from tests.fixtures.companies import Cast
from tests.integration.console.conftest import SignIn

GZIP = {"Accept-Encoding": "gzip, br"}


@pytest.fixture
def client(cast: Cast, sign_in: SignIn) -> Client:
    return sign_in(cast.acme.administrator)


@pytest.mark.parametrize("path", ["/", "/keys", "/help/clients"])
def test_a_page_is_compressed(client: Client, path: str) -> None:
    answer = client.get(path, headers=GZIP)

    page = gzip.decompress(answer.content)
    assert answer["Content-Encoding"] == "gzip"
    assert "Accept-Encoding" in answer["Vary"]
    assert b"</html>" in page
    assert len(answer.content) < len(page) / 3


def test_equal_pages_have_different_compressed_lengths(client: Client) -> None:
    # This page does not exist. The error page has no CSRF token, so it is the same each time.
    answers = [client.get("/nothing", headers=GZIP).content for _ in range(10)]

    assert len({gzip.decompress(answer) for answer in answers}) == 1
    assert len({len(answer) for answer in answers}) > 2


def test_a_client_that_does_not_accept_gzip_gets_the_page(client: Client) -> None:
    answer = client.get("/keys")

    assert "Content-Encoding" not in answer
    assert b"</html>" in answer.content


@pytest.mark.parametrize(
    "path",
    ["/account/second-factor", "/api/v1/keys", "/usage?as=csv", "/api/v1/openapi.json"],
)
def test_responses_that_may_contain_secrets_are_not_compressed(client: Client, path: str) -> None:
    answer = client.get(path, headers=GZIP)

    assert answer.status_code == 200
    assert "Content-Encoding" not in answer


def test_a_response_to_a_form_is_not_compressed(client: Client) -> None:
    answer = client.post("/keys/test", {"key": "x"}, headers=GZIP)

    assert b"</html>" in answer.content
    assert "Content-Encoding" not in answer
