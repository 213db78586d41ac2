"""No response of any URL is cached by a browser or a proxy, except files that all users share.

`test_page_responses` checks the same for each page.
"""

import re
from typing import Final

import pytest
from django.test import override_settings

from tests.browser.client import client_with
from tests.browser.pages import ACTIONS, FILES, all_pages
from tests.browser.routes import all_routes
from tests.browser.sample_data import Scene, Visitor

# Public keys. Static files are served before Django (console.web.static_files).
SHARED: Final = {".well-known/caret-signing-keys.json"}
_PAGES: Final = {page.pattern for page in all_pages()}
_EXAMPLES: Final = {
    **ACTIONS,
    **{pattern: path for pattern, path in FILES.items() if path is not None},
}
_ARGUMENT: Final = re.compile(r"<(?:(\w+):)?\w+>")
_MADE_UP: Final = {"uuid": "00000000-0000-0000-0000-000000000000", "int": "1", "path": "a/b"}
PATTERNS: Final = sorted(route.pattern for route in all_routes())


def path_of(scene: Scene, pattern: str) -> str:
    """Return an example's URL, or one whose arguments match no row."""
    if pattern in _EXAMPLES:
        return _EXAMPLES[pattern](scene)
    return "/" + _ARGUMENT.sub(lambda match: _MADE_UP.get(match[1] or "", "a"), pattern)


@pytest.mark.parametrize(
    "pattern", [url_pattern for url_pattern in PATTERNS if url_pattern not in SHARED | _PAGES]
)
def test_a_response_must_not_be_cached(scene: Scene, pattern: str) -> None:
    is_operators = pattern.startswith("operators/")
    session = scene.session(Visitor.OPERATOR_WITH_REASON if is_operators else Visitor.MEMBER)
    path = path_of(scene, pattern)

    # None: an anonymous visitor.
    responses = [client_with(used_session).get(path) for used_session in (session, None)]

    assert [response["Cache-Control"] for response in responses] == ["no-store", "no-store"]


@pytest.mark.parametrize("path", ["/no-such-page", "/api/v1/no-such", "/scim/v2/x"])
def test_an_error_response_must_not_be_cached(scene: Scene, path: str) -> None:
    response = client_with(scene.session(Visitor.MEMBER)).get(path)

    assert response.status_code >= 400
    assert response["Cache-Control"] == "no-store"


def test_the_redirect_of_a_member_from_the_sign_in_page_must_not_be_cached(scene: Scene) -> None:
    response = client_with(scene.session(Visitor.MEMBER)).get("/sign-in?next=%00")

    assert (response.status_code, response["Cache-Control"]) == (302, "no-store")


def test_a_redirect_to_https_must_not_be_cached() -> None:
    with override_settings(SECURE_SSL_REDIRECT=True):
        response = client_with(None).get("/invitation/civ_secret")

    assert (response.status_code, response["Cache-Control"]) == (301, "no-store")


def test_the_shared_files_exist() -> None:
    assert set(PATTERNS) >= SHARED
