"""Every HTTP endpoint, fuzzed from the OpenAPI description.

Responses must match the description. No server error may occur, and no error response may repeat
input.
"""

import re
from collections.abc import Iterator
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from caret.local.paths import REPOSITORY
from tests.functional.gateway.gateway_stack import Site
from tests.stack.seed import IS_DEEP, scaled

DESCRIPTION = REPOSITORY / "platform" / "docs" / "openapi.json"
DEADLINE_S = 60.0  # for each request, on a busy machine
MIN_LEAK_CHARS = 6  # shorter texts occur in any message
# A text of only these characters is not searched for in messages. Hypothesis also tries words from
# Caret's own code, and messages contain such words anyway.
ORDINARY_TEXT = re.compile(r"[A-Za-z0-9_ .,:'/-]+")

schema = schemathesis.openapi.from_path(str(DESCRIPTION))


@pytest.fixture(autouse=True, scope="module")
def _quick_engine(quick_site: Site) -> Iterator[None]:
    """Make the engine end after a few tokens, whatever the requested maximum."""
    requests.get(f"{quick_site.engine_url}/fault/short", timeout=DEADLINE_S)
    yield
    requests.get(f"{quick_site.engine_url}/fault/none", timeout=DEADLINE_S)


@schema.parametrize()
@settings(
    max_examples=scaled(5, deep=100),
    derandomize=not IS_DEEP,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_responses_match_the_openapi_description(
    case: schemathesis.Case[Any], quick_site: Site
) -> None:
    headers = {"Authorization": f"Bearer {quick_site.acme_key}"}

    response = case.call(base_url=quick_site.url, headers=headers, timeout=DEADLINE_S)

    # 501: Caret makes no embeddings.
    assert response.status_code < 500 or response.status_code == 501
    case.validate_response(
        response,
        checks=[status_code_conformance, content_type_conformance, response_schema_conformance],
    )
    if response.status_code >= 400:
        assert not [text for text in _list_texts(case.body) if text in response.text]


def _list_texts(body: Any) -> list[str]:
    """Return the texts in a body that an error message contains only if it repeats its input.

    Such a text has at least MIN_LEAK_CHARS and is not ordinary (ORDINARY_TEXT). Names of fields are
    not searched for.
    """
    if isinstance(body, str):
        return [body] if len(body) >= MIN_LEAK_CHARS and not ORDINARY_TEXT.fullmatch(body) else []
    if isinstance(body, dict):
        return _list_texts(list(body.values()))
    if isinstance(body, list):
        return [text for value in body for text in _list_texts(value)]
    return []
