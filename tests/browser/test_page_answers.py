"""Each page without a browser: how many queries it takes, and what roles and neighbours get."""

import pytest

from tenants.members.permissions import Role
from tests.browser.client import client_with
from tests.browser.pages import ACTIONS, Page, all_pages
from tests.browser.scene import Scene, Visitor
from tests.browser.sessions import Session, session_of
from tests.cast import make_company
from tests.integration.console.pages.queries import few_queries

MEMBERS = [page for page in all_pages() if page.visitor is Visitor.MEMBER]


def has_id(pattern: str) -> bool:
    """Somebody's or something's. Numbers and kinds are the same words in each tenant."""
    return "<uuid:" in pattern or "<lookup_id>" in pattern


OF_A_TENANT = [page for page in MEMBERS if has_id(page.pattern)]
ACTIONS_OF_A_TENANT = [
    pattern
    for pattern in ACTIONS
    if has_id(pattern) and not pattern.startswith(("operators/", "sign-in/"))
]


@pytest.fixture(scope="module")
def neighbour(scene: Scene) -> Session:
    """Who owns another company."""
    return session_of(make_company("globex", {Role.OWNER: "gina"}).people[Role.OWNER])


@pytest.mark.parametrize("page", all_pages(), ids=lambda page: page.name)
def test_it_takes_few_queries(scene: Scene, page: Page) -> None:
    client, path = client_with(scene.session(page.visitor)), page.path_in(scene)

    with few_queries(page.max_queries):
        answer = client.get(path)

    assert answer.status_code in (page.status, 302)


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize("page", MEMBERS, ids=lambda page: page.name)
def test_each_role_gets_it_or_is_refused(scene: Scene, page: Page, role: Role) -> None:
    answer = client_with(scene.role(role)).get(page.path_in(scene))

    refused = set() if role is Role.OWNER else {403, 404} if "<" in page.pattern else {403}
    assert answer.status_code in {page.status} | refused


@pytest.mark.parametrize("page", MEMBERS, ids=lambda page: page.name)
def test_nobody_gets_it_without_signing_in(scene: Scene, page: Page) -> None:
    answer = client_with(None).get(page.path_in(scene))

    is_sent_to_sign_in = answer.headers.get("Location", "").startswith("/sign-in?")
    assert is_sent_to_sign_in or answer.status_code == page.status == 404


@pytest.mark.parametrize("page", OF_A_TENANT, ids=lambda page: page.name)
def test_the_neighbour_does_not_find_it(scene: Scene, neighbour: Session, page: Page) -> None:
    assert client_with(neighbour).get(page.path_in(scene)).status_code == 404


@pytest.mark.parametrize("pattern", ACTIONS_OF_A_TENANT)
def test_the_neighbour_does_nothing_there(scene: Scene, neighbour: Session, pattern: str) -> None:
    assert client_with(neighbour).post(ACTIONS[pattern](scene)).status_code == 404
