"""The frame of every page: navigation, search, preferences, and the step-up."""

import re
from http.cookies import SimpleCookie

import pytest
from django.test import Client

from console.layout.navigation import OWN, SECTIONS
from tenants.base.permissions import Role
from tests.fixtures.companies import Cast
from tests.integration.console.conftest import SignIn

PREFERENCES = "/account/preferences"


PART = {"HX-Request": "true"}


def found(client: Client, asked: str, headers: dict[str, str]) -> str:
    return client.get("/search", {"q": asked}, headers=headers).content.decode()


@pytest.mark.parametrize("path", [PREFERENCES, "/search", "/account/reauthenticate"])
def test_a_stranger_is_sent_to_the_sign_in(path: str) -> None:
    assert Client().get(path)["Location"] == f"/sign-in?next={path}"


@pytest.mark.parametrize("role", list(Role))
def test_the_sidebar_leads_only_to_pages_that_answer(
    cast: Cast, sign_in: SignIn, role: Role
) -> None:
    client = sign_in(cast.acme.people[role])
    page = client.get("/").content.decode()

    links = re.findall(r'class="side-link" href="([^"]+)"', page)

    assert links[0] == "/"
    assert {link: client.get(link).status_code for link in links} == dict.fromkeys(links, 200)


def test_the_sidebar_says_where_one_is(cast: Cast, sign_in: SignIn) -> None:
    page = sign_in(cast.acme.administrator).get("/").content.decode()

    assert re.findall(r'href="([^"]+)" aria-current="page"', page) == ["/"]


def test_no_two_items_are_one_area() -> None:
    areas = [item.area for section in SECTIONS for item in section.items]
    areas += [item.area for item in OWN]

    assert len(set(areas)) == len(areas)


def test_a_page_is_found_by_the_beginning_of_its_words(cast: Cast, sign_in: SignIn) -> None:
    client = sign_in(cast.acme.developer)

    assert "Preferences" in found(client, "time ZO", PART)
    assert "Preferences" not in found(client, "zzz", PART)


def test_the_search_is_a_page_and_a_part_of_one(cast: Cast, sign_in: SignIn) -> None:
    client = sign_in(cast.acme.developer)
    whole = client.get("/search")

    assert whole["Vary"].count("HX-Request") == 1
    assert "<html" in whole.content.decode()
    assert "<html" not in found(client, "", PART)
    assert "<html" in found(client, "", PART | {"HX-Boosted": "true"})


def test_what_is_asked_for_is_escaped(cast: Cast, sign_in: SignIn) -> None:
    assert "<script>" not in found(sign_in(cast.acme.developer), "<script>", PART)


def test_preferences_are_kept_and_in_force(cast: Cast, sign_in: SignIn) -> None:
    client = sign_in(cast.acme.developer)
    wanted = {"language": "de", "zone": "Asia/Kolkata", "theme": "dark"}

    page = client.post(PREFERENCES, wanted, follow=True).content.decode()

    assert '<html lang="de" data-theme="dark">' in page
    assert "Asia/Kolkata" in page
    assert "+05:30" in page


@pytest.mark.parametrize(
    ("field", "value"), [("language", "xx"), ("zone", "Mars/Olympus"), ("theme", "pink")]
)
def test_unknown_preferences_are_told_beside_their_field(
    cast: Cast, sign_in: SignIn, field: str, value: str
) -> None:
    wanted = {"language": "en", "zone": "UTC", "theme": "", field: value}

    answer = sign_in(cast.acme.developer).post(PREFERENCES, wanted)

    assert answer.status_code == 400
    assert answer.content.decode().count('class="wrong"') == 1
    assert set(answer.cookies) == {"caret-csrf"}


@pytest.mark.parametrize("zone", ["Mars/Olympus", "../../etc/passwd", "x" * 4000, "posixrules"])
def test_cookies_that_somebody_made_up_change_nothing(
    cast: Cast, sign_in: SignIn, zone: str
) -> None:
    client = sign_in(cast.acme.developer)
    client.cookies.update(SimpleCookie({"caret-zone": zone, "caret-theme": '"><script>'}))

    page = client.get(PREFERENCES).content.decode()

    assert '<html lang="en">' in page
    assert "Times are in UTC" in page


def test_signing_in_again_ends_the_session_and_leads_back(cast: Cast, sign_in: SignIn) -> None:
    client = sign_in(cast.acme.developer)

    answer = client.post("/account/reauthenticate", {"next": PREFERENCES})

    assert answer["Location"] == "/sign-in?next=%2Faccount%2Fpreferences"
    assert client.get("/").status_code == 302


def test_nobody_is_led_elsewhere_afterwards(cast: Cast, sign_in: SignIn) -> None:
    client = sign_in(cast.acme.developer)

    answer = client.post("/account/reauthenticate", {"next": "https://evil.example/"})

    assert answer["Location"] == "/sign-in?next=%2F"
