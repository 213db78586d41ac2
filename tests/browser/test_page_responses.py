"""Each page without a browser: its queries, its responses to each role, and its translation.

The default suite uses the weakest role that sees a page and the strongest that does not. The deep
suite uses every role.
"""

from collections.abc import Callable
from functools import cache
from html.parser import HTMLParser
from typing import Final

import pytest
from babel.messages.pofile import read_po
from django.conf import settings

from caret.local.paths import REPOSITORY
from tenants.base.permissions import Role
from tests.browser.client import client_with
from tests.browser.page_access import PAGE_STATUSES
from tests.browser.pages import ACTIONS, FILES, OTHER_INTERFACES, Page, all_pages
from tests.browser.routes import all_routes
from tests.browser.sample_data import Scene, Visitor
from tests.browser.sessions import Session, session_of
from tests.fixtures.companies import make_company
from tests.integration.console.pages.queries import few_queries
from tests.role_tables import only_for, role_cases

# Texts that stay English: the title of a plot that the command line writes, too, and a text of a
# certificate, which is shown as it was signed.
_STAYS_ENGLISH: Final = frozenset({"First token by prefix-cache hit rate", "row deletion"})
_GERMAN: Final = REPOSITORY / "console" / "locale" / "de" / "LC_MESSAGES" / "django.po"
MEMBER_PAGES = [page for page in all_pages() if page.visitor is Visitor.MEMBER]
# Their examples are links in e-mails, which redirect to the page.
REDIRECTED: Final = frozenset({"invitation", "reset-password", "sign-up-confirm"})
Example = Callable[[Scene], str]


def has_id(pattern: str) -> bool:
    """Return True if the URL contains the ID of a row that belongs to one tenant or one user.

    Version numbers, kinds and the like are no IDs, because they exist in each tenant. Operators'
    pages have their own tests. URLs of sign-in are used without a session.
    """
    return any(
        placeholder in pattern for placeholder in ("<uuid:", "<lookup_id>", "<int:pk>")
    ) and not (pattern.startswith((*OTHER_INTERFACES, "operators/", "sign-in/", "reset-password/")))


FILES_OF_A_TENANT: dict[str, Example] = {
    pattern: path for pattern, path in FILES.items() if path is not None
}
PAGES_OF_A_TENANT: dict[str, Example] = {
    page.pattern: page.path_in for page in all_pages() if has_id(page.pattern)
}
ACTIONS_OF_A_TENANT: dict[str, Example] = {
    pattern: path for pattern, path in ACTIONS.items() if has_id(pattern)
}


@pytest.fixture(scope="module")
def other_owner(scene: Scene) -> Session:
    """Return a session of the owner of another company. `scene` allows the database access."""
    return session_of(make_company("globex", {Role.OWNER: "gina"}).people[Role.OWNER])


@pytest.mark.parametrize("page", all_pages(), ids=lambda page: page.name)
def test_a_page_takes_few_queries_and_is_not_stored(scene: Scene, page: Page) -> None:
    client, path = client_with(scene.session(page.visitor)), page.path_in(scene)

    with few_queries(page.max_queries):
        response = client.get(path)

    assert response.status_code == (302 if page.name in REDIRECTED else page.status)
    assert response["Cache-Control"] == "no-store"


def test_each_page_of_a_member_has_expected_roles() -> None:
    assert set(PAGE_STATUSES) == {page.name for page in MEMBER_PAGES}


@pytest.mark.parametrize(
    ("page", "role"),
    role_cases(
        # The test above reports pages that are missing in PAGE_STATUSES.
        {page.name: (page, PAGE_STATUSES.get(page.name, only_for())) for page in MEMBER_PAGES}
    ),
)
def test_access_to_a_page_follows_the_expected_roles(scene: Scene, page: Page, role: Role) -> None:
    response = client_with(scene.session_of_role(role)).get(page.path_in(scene))

    assert response.status_code == PAGE_STATUSES[page.name][role]


@pytest.mark.parametrize("page", MEMBER_PAGES, ids=lambda page: page.name)
def test_anonymous_visitors_are_redirected_to_sign_in(scene: Scene, page: Page) -> None:
    response = client_with(None).get(page.path_in(scene))

    assert response["Cache-Control"] == "no-store"
    if page.status == 404:
        assert response.status_code == 404
    else:
        assert response.headers["Location"].startswith("/sign-in?")


@pytest.mark.parametrize("pattern", ACTIONS_OF_A_TENANT)
def test_anonymous_visitors_cannot_use_an_action(scene: Scene, pattern: str) -> None:
    response = client_with(None).post(ACTIONS_OF_A_TENANT[pattern](scene))

    assert response.headers["Location"].startswith("/sign-in?")


@pytest.mark.parametrize("pattern", PAGES_OF_A_TENANT | FILES_OF_A_TENANT)
def test_another_tenants_page_or_file_is_not_found(
    scene: Scene, other_owner: Session, pattern: str
) -> None:
    path = (PAGES_OF_A_TENANT | FILES_OF_A_TENANT)[pattern](scene)

    assert client_with(other_owner).get(path).status_code == 404


@pytest.mark.parametrize("pattern", PAGES_OF_A_TENANT | ACTIONS_OF_A_TENANT)
def test_another_tenants_page_accepts_no_form(
    scene: Scene, other_owner: Session, pattern: str
) -> None:
    path = (PAGES_OF_A_TENANT | ACTIONS_OF_A_TENANT)[pattern](scene)

    # 405: a page that accepts only GET.
    assert client_with(other_owner).post(path).status_code in (404, 405)


def test_the_isolation_tests_cover_every_url_with_an_id() -> None:
    tested_patterns = (
        PAGES_OF_A_TENANT.keys() | FILES_OF_A_TENANT.keys() | ACTIONS_OF_A_TENANT.keys()
    )

    assert tested_patterns == {route.pattern for route in all_routes() if has_id(route.pattern)}


@pytest.mark.parametrize("page", all_pages(), ids=lambda page: page.name)
def test_the_german_page_contains_no_english_text(scene: Scene, page: Page) -> None:
    client = client_with(scene.session(page.visitor))
    client.cookies[settings.LANGUAGE_COOKIE_NAME] = "de"

    response = client.get(page.path_in(scene))

    parser = _Texts()
    parser.feed(response.content.decode())
    english_texts = _translated_texts()
    assert english_texts
    assert response.headers["Content-Language"] == "de"
    assert parser.texts & english_texts <= _STAYS_ENGLISH


class _Texts(HTMLParser):
    """Collects the texts of a page, without elements that are marked as English (documents)."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: set[str] = set()
        # The tag of the outermost English element that is open, and the same tag once more for each
        # element with this tag inside it.
        self._english: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._english[:1] == [tag] or (not self._english and ("lang", "en") in attrs):
            self._english.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._english[:1] == [tag]:
            self._english.pop()

    def handle_data(self, data: str) -> None:
        if not self._english:
            self.texts.add(data.strip())


@cache
def _translated_texts() -> set[str]:
    """Return the catalogue's texts whose German translation differs.

    Single words are left out, because they may be names.
    """
    with _GERMAN.open("rb") as file:
        catalog = read_po(file, locale="de")
    return {
        message.id
        for message in catalog
        if isinstance(message.id, str) and " " in message.id and message.string != message.id
    }
