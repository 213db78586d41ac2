"""Hostile requests to each URL: the console refuses or serves them, and never fails.

The deep suite sends random requests. The default suite only sends hostile texts to the search page.
"""

import random
import re
from itertools import islice
from typing import Any, Final
from urllib.parse import quote

import pytest
from django.test import Client

from tests.browser.attack_requests import (
    BAD_VALUES,
    FORM,
    Form,
    fill_form,
    forms_of,
    generate_queries,
    parameters_of,
    query_of,
)
from tests.browser.client import client_with
from tests.browser.pages import ACTIONS, Page, all_pages
from tests.browser.routes import all_routes
from tests.browser.sample_data import Scene, Visitor
from tests.fixtures.companies import ACME_PEOPLE, make_company
from tests.stack.seed import seeds

NUM_REQUESTS: Final = 50
_ACTIONS: Final = [
    Page(pattern, Visitor.OPERATOR if pattern.startswith("operators/") else Visitor.MEMBER, path)
    for pattern, path in ACTIONS.items()
]
PAGES: Final = [*all_pages(), *_ACTIONS]
PATTERNS: Final = sorted(route.pattern for route in all_routes())
_ARGUMENT: Final = re.compile(r"<(?:(\w+):)?\w+>")
# Valid values of URL arguments, by converter.
_WELL_FORMED: Final = {
    "int": ["0", "1", "9" * 25, "9" * 5_000],
    "uuid": ["00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"],
}
# The forms for these paths are on every page, and some of them end the session. Each is tested only
# as an entry of PAGES.
_ON_EVERY_PAGE: Final = ("/search", "/sign-out", "/tenant", "/operators/sign-out")
_METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")
_BODIES: Final = (
    (FORM, b"a=%00&a=%ED%A0%80&=&&&%"),
    (FORM, b"x" * 1_100_000),
    (FORM, b"&".join(b"a=1" for _ in range(1_100))),
    ("application/json", b"[" * 100_000),
    ("application/json", b'{"name":"\\ud800","version":' + b"9" * 5_000 + b"}"),
    ("application/json", b"\xff"),
    ("multipart/form-data", b"--"),
    ("multipart/form-data; boundary=x", b"--x\r\nContent-Disposition: form-data; name=a\r\n\r\n"),
    ("text/plain; charset=idna", b"x"),
)


@pytest.fixture
def own_scene() -> Scene:
    """Make a scene for one test, whose requests may change or destroy its objects."""
    return Scene(make_company("attacked", ACME_PEOPLE))


@pytest.mark.deep
@pytest.mark.parametrize("seed", seeds(1, deep=1))
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_hostile_queries_and_forms_cause_no_server_error(
    own_scene: Scene, page: Page, seed: int
) -> None:
    chance = random.Random(f"{page.name} {seed}")
    path = page.path_in(own_scene).partition("?")[0]
    client = client_with(own_scene.session(page.visitor))
    client.raise_request_exception = False
    page_text = client.get(path).content.decode("utf-8", "replace")

    for query in islice(generate_queries(parameters_of(page_text), chance), NUM_REQUESTS):
        _expect_no_error(client.get(f"{path}?{query_of(query)}"), query)
    forms = [form for form in forms_of(page_text) if form.action not in _ON_EVERY_PAGE]
    # A URL without a form, such as an action, gets an empty one. A form without fields is the same
    # each time, so it is sent once.
    for form in forms or [Form("", is_post=True)]:
        for _ in range(NUM_REQUESTS if form.offered else 1):
            _expect_no_error(_send_form(client, path, form, chance), form)


def test_hostile_search_texts_cause_no_server_error(scene: Scene) -> None:
    client = client_with(scene.session(Visitor.MEMBER))
    client.raise_request_exception = False

    for text in BAD_VALUES:
        query = {"q": text}
        _expect_no_error(client.get(f"/search?{query_of(query)}"), query)


@pytest.mark.deep
@pytest.mark.parametrize("seed", seeds(1, deep=1))
@pytest.mark.parametrize("pattern", PATTERNS)
def test_made_up_urls_and_bodies_cause_no_server_error(
    scene: Scene, pattern: str, seed: int
) -> None:
    # Unlike the first test, this one shares its scene with other tests: IDs and bodies are made up,
    # so requests hardly ever change objects. The session is new, because a request may end it.
    chance = random.Random(f"{pattern} {seed}")
    visitor = Visitor.OPERATOR if pattern.startswith("operators/") else Visitor.MEMBER
    client = client_with(scene.session(visitor))
    client.raise_request_exception = False

    for _ in range(NUM_REQUESTS):
        path = "/" + _ARGUMENT.sub(lambda match: _argument(match[1], chance), pattern)
        method = chance.choice(_METHODS)
        kind, body = chance.choice(_BODIES)
        _expect_no_error(client.generic(method, path, body, kind), (method, path[:200], body[:80]))


def _argument(kind: str | None, chance: random.Random) -> str:
    """Return a value for an argument of a URL pattern. `kind` is its converter, such as uuid."""
    if kind in _WELL_FORMED:
        return chance.choice(_WELL_FORMED[kind])
    return quote(chance.choice(BAD_VALUES)[:6_000], safe="") or "x"


def _send_form(client: Client, path: str, form: Form, chance: random.Random) -> Any:
    target = form.action if form.action.startswith("/") else path
    body = query_of(fill_form(form, chance))
    if form.is_post:
        return client.post(target, body.encode(), content_type=FORM)
    return client.get(f"{target.partition('?')[0]}?{body}")


def _expect_no_error(response: Any, request: object) -> None:
    response.close()  # it may be a file
    error = getattr(response, "exc_info", None)
    assert response.status_code < 500, (response.request["PATH_INFO"], request, error)
