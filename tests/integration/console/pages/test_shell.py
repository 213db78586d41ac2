"""The parts of every page: navigation, search, the user's preferences, and signing in again."""

import re
from http.cookies import SimpleCookie

import pytest
from django.test import Client

from console.layout.navigation import ACCOUNT_ITEMS, SECTIONS
from console.layout.search_entries import ENTRIES, SearchEntry, is_form_of
from tenants.base.permissions import Role
from tests.fixtures.companies import Cast
from tests.integration.console.conftest import SignIn

PREFERENCES = "/account/preferences"
HTMX_HEADERS = {"HX-Request": "true"}


def search(client: Client, query: str, headers: dict[str, str]) -> str:
    return client.get("/search", {"q": query}, headers=headers).content.decode()


@pytest.mark.parametrize("path", [PREFERENCES, "/search", "/account/reauthenticate"])
def test_anonymous_visitors_are_redirected_to_sign_in(path: str) -> None:
    assert Client().get(path)["Location"] == f"/sign-in?next={path}"


@pytest.mark.parametrize("role", list(Role))
def test_every_link_in_the_sidebar_opens(cast: Cast, sign_in: SignIn, role: Role) -> None:
    client = sign_in(cast.acme.people[role])
    page = client.get("/").content.decode()

    links = re.findall(r'class="side-link" href="([^"]+)"', page)

    assert links[0] == "/"
    assert {link: client.get(link).status_code for link in links} == dict.fromkeys(links, 200)


def test_the_sidebar_marks_the_current_page(cast: Cast, sign_in: SignIn) -> None:
    page = sign_in(cast.acme.administrator).get("/").content.decode()

    assert re.findall(r'side-link" href="([^"]+)" aria-current="page"', page) == ["/"]


def test_every_navigation_item_has_its_own_area() -> None:
    """The sidebar finds the current item by its area, which begins the URL names of its pages."""
    areas = [item.area for section in SECTIONS for item in section.items]
    areas += [item.area for item in ACCOUNT_ITEMS]

    assert len(set(areas)) == len(areas)


def test_the_search_finds_a_page_by_word_prefixes(cast: Cast, sign_in: SignIn) -> None:
    client = sign_in(cast.acme.developer)

    assert "Preferences" in search(client, "time ZO", HTMX_HEADERS)
    assert "Preferences" not in search(client, "zzz", HTMX_HEADERS)


@pytest.mark.parametrize(
    ("query", "title"),
    [
        ("policy", "Policies"),
        ("policies", "Edit the policy"),
        ("password", "Change password"),
        ("passwords", "Change password"),
        ("usage csv", "Download usage as CSV"),
        ("revoking keys", "Rotate or revoke a key"),
        ("2fa", "Passkeys and two-factor authentication"),
        ("two-factor", "Require two-factor authentication"),
        ("okta", "Set up SAML"),
        ("swagger", "REST API reference"),
        ("language server", "Editors with the language server"),
    ],
)
def test_the_search_finds_settings_and_actions_by_synonyms_and_stems(
    cast: Cast, sign_in: SignIn, query: str, title: str
) -> None:
    assert title in search(sign_in(cast.acme.people[Role.OWNER]), query, HTMX_HEADERS)


@pytest.mark.parametrize("query", ["policy", "richtlinie", "Richtlinien"])
def test_the_search_understands_german_and_english(cast: Cast, sign_in: SignIn, query: str) -> None:
    client = sign_in(cast.acme.administrator)
    client.cookies["caret-language"] = "de"

    assert "Richtlinie bearbeiten" in search(client, query, HTMX_HEADERS)


def test_the_search_finds_only_what_the_role_may_open(cast: Cast, sign_in: SignIn) -> None:
    assert "New budget" in search(sign_in(cast.acme.administrator), "budget", HTMX_HEADERS)
    assert "New budget" not in search(sign_in(cast.acme.developer), "budget", HTMX_HEADERS)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: str(entry.title))
def test_each_search_entry_opens(
    cast: Cast, sign_in_with_step_up: SignIn, entry: SearchEntry
) -> None:
    client = sign_in_with_step_up(cast.acme.people[Role.OWNER])

    assert client.get(entry.url.partition("#")[0]).status_code == 200


@pytest.mark.parametrize(
    ("word", "known_word", "is_form"),
    [
        ("policy", "policies", True),
        ("keys", "key", True),
        ("deleting", "delete", True),
        ("pass", "password", True),
        ("model", "modes", False),
        ("password", "pass", False),
        ("team", "tea", False),
        ("en", "entra", True),
        ("en", "audit", False),
        ("s", "key", False),
    ],
)
def test_forms_of_a_word_begin_with_it_or_differ_in_their_endings(
    word: str, known_word: str, *, is_form: bool
) -> None:
    assert is_form_of(word, known_word) == is_form


def test_htmx_gets_the_search_results_without_the_page_around_them(
    cast: Cast, sign_in: SignIn
) -> None:
    client = sign_in(cast.acme.developer)
    whole_page = client.get("/search")

    assert whole_page["Vary"].count("HX-Request") == 1
    assert "<html" in whole_page.content.decode()
    assert "<html" not in search(client, "", HTMX_HEADERS)
    # A boosted link replaces the whole page.
    assert "<html" in search(client, "", HTMX_HEADERS | {"HX-Boosted": "true"})


@pytest.mark.parametrize(("role", "is_found"), [(Role.ADMINISTRATOR, True), (Role.AUDITOR, False)])
def test_only_members_who_may_change_content_capture_find_its_settings(
    cast: Cast, sign_in: SignIn, role: Role, is_found: bool
) -> None:
    results = search(sign_in(cast.acme.people[role]), "telemetry", HTMX_HEADERS)

    assert ("/privacy/content-capture" in results) == is_found


def test_the_search_text_is_escaped(cast: Cast, sign_in: SignIn) -> None:
    results = search(sign_in(cast.acme.developer), "<script>", HTMX_HEADERS)

    assert "&lt;script&gt;" in results
    assert "<script>" not in results


def test_saved_preferences_take_effect(cast: Cast, sign_in: SignIn) -> None:
    client = sign_in(cast.acme.developer)
    preferences = {"language": "de", "zone": "Asia/Kolkata", "theme": "dark"}

    page = client.post(PREFERENCES, preferences, follow=True).content.decode()

    assert '<html lang="de" data-theme="dark">' in page
    assert "Asia/Kolkata" in page
    assert "+05:30" in page


@pytest.mark.parametrize(
    ("field", "value"), [("language", "xx"), ("zone", "Mars/Olympus"), ("theme", "pink")]
)
def test_an_unknown_preference_gets_an_error_at_its_field(
    cast: Cast, sign_in: SignIn, field: str, value: str
) -> None:
    preferences = {"language": "en", "zone": "UTC", "theme": "", field: value}

    answer = sign_in(cast.acme.developer).post(PREFERENCES, preferences)

    assert answer.status_code == 400
    assert answer.content.decode().count('class="wrong"') == 1
    assert set(answer.cookies) == {"caret-csrf"}  # no preference is saved


# posixrules is a file of the time zone database, but not a zone.
@pytest.mark.parametrize("zone", ["Mars/Olympus", "../../etc/passwd", "x" * 4000, "posixrules"])
def test_forged_preference_cookies_are_ignored(cast: Cast, sign_in: SignIn, zone: str) -> None:
    client = sign_in(cast.acme.developer)
    client.cookies.update(SimpleCookie({"caret-zone": zone, "caret-theme": '"><script>'}))

    page = client.get(PREFERENCES).content.decode()

    assert '<html lang="en">' in page
    assert "Times are in UTC" in page


def test_reauthenticating_ends_the_session_and_returns_to_the_page(
    cast: Cast, sign_in: SignIn
) -> None:
    client = sign_in(cast.acme.developer)

    answer = client.post("/account/reauthenticate", {"next": PREFERENCES})

    assert answer["Location"] == "/sign-in?next=%2Faccount%2Fpreferences"
    assert client.get("/").status_code == 302


def test_reauthenticating_never_redirects_to_another_site(cast: Cast, sign_in: SignIn) -> None:
    client = sign_in(cast.acme.developer)

    answer = client.post("/account/reauthenticate", {"next": "https://evil.example/"})

    assert answer["Location"] == "/sign-in?next=%2F"
