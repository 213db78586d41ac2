"""First steps for each role, and the search for keys, members and teams."""

import re

import pytest
from django.test import Client
from django.utils import timezone

from caret.foundation.postgres.tenant_scope import tenant_scope
from console.texts.editor_settings import EDITORS, list_editor_settings
from tenants.base.permissions import Role
from tenants.identity.api_keys.playground import create_playground_key
from tenants.identity.teams.operations import create_team
from tenants.models import ApiKey
from tests.fixtures.companies import (
    ACME_PEOPLE,
    GLOBEX_PEOPLE,
    Cast,
    Company,
    make_company,
    make_key,
)
from tests.integration.console.conftest import SignIn
from tests.integration.console.pages.queries import few_queries

HTMX_HEADERS = {"HX-Request": "true"}
# The settings of these editors contain no key: they ask for it, or the language server has it.
_EDITORS_WITHOUT_KEY = ("zed", "caret-vscode", "caret-neovim")
_CARD = "This card disappears when you complete all steps."


@pytest.fixture
def company() -> Company:
    return make_company("initech", GLOBEX_PEOPLE)


def list_done_steps(client: Client) -> list[str]:
    page = client.get("/onboarding").content.decode()
    return re.findall(r'step-done">.*?class="name">([^<]+?) *<', page, flags=re.DOTALL)


def search(client: Client, query: str) -> list[str]:
    page = client.get("/search", {"q": query}, headers=HTMX_HEADERS).content.decode()
    return re.findall(r'href="(/(?:keys|members|teams)/[^"]+)"', page)


@pytest.mark.parametrize(
    ("role", "num_steps"),
    [(Role.OWNER, 5), (Role.ADMINISTRATOR, 5), (Role.DEVELOPER, 3)],
)
def test_each_role_has_its_number_of_first_steps(
    cast: Cast, sign_in: SignIn, role: Role, num_steps: int
) -> None:
    client = sign_in(cast.acme.people[role])

    with few_queries():
        page = client.get("/onboarding").content.decode()

    assert page.count('class="step-mark"') == num_steps


@pytest.mark.parametrize("role", [Role.BILLING, Role.AUDITOR])
def test_roles_without_steps_are_refused_the_page(cast: Cast, sign_in: SignIn, role: Role) -> None:
    assert sign_in(cast.acme.people[role]).get("/onboarding").status_code == 403


def test_steps_are_marked_as_done_from_stored_facts(company: Company, sign_in: SignIn) -> None:
    client = sign_in(company.developer)
    before = list_done_steps(client)
    make_key(company, company.developer)
    done_steps = list_done_steps(client)
    create_playground_key(actor=company.developer.actor, now=timezone.now())
    steps_after_playground = list_done_steps(client)
    with tenant_scope(company.tenant_id):
        ApiKey.objects.filter(is_playground=False).update(last_used_at=timezone.now())

    assert before == []
    assert done_steps == ["Create a key"]
    assert steps_after_playground == [*done_steps, "Try the playground"]
    assert list_done_steps(client) == [*steps_after_playground, "Get a completion in your editor"]
    assert _CARD not in client.get("/").content.decode()


def test_a_second_member_completes_the_invitation_step(sign_in: SignIn) -> None:
    alone = make_company("hooli", {Role.OWNER: "gavin"})
    two = make_company("initech", {Role.OWNER: "bill", Role.DEVELOPER: "peter"})

    assert list_done_steps(sign_in(alone.people[Role.OWNER])) == []
    assert list_done_steps(sign_in(two.people[Role.OWNER])) == ["Invite members"]


@pytest.mark.parametrize("editor", [editor.code for editor in EDITORS])
def test_each_editor_has_a_tab_of_its_own(cast: Cast, sign_in: SignIn, editor: str) -> None:
    page = sign_in(cast.acme.developer).get("/editors", {"editor": editor}).content.decode()

    assert f'/editors?editor={editor}#settings" aria-current="page"' in page
    assert "http://127.0.0.1:8401" in page


def test_the_settings_of_an_editor_contain_the_gateways_url_and_the_key() -> None:
    for editor in list_editor_settings("cpk_live_x"):
        assert "http://127.0.0.1:8401" in editor.text
        assert "URL" not in editor.text  # the template's placeholder
        assert editor.code in _EDITORS_WITHOUT_KEY or "cpk_live_x" in editor.text


def test_settings_name_the_editor_unless_its_client_does() -> None:
    """Caret's clients, Tabby and Zed send their own name."""
    without_name = {"caret-vscode", "caret-ls", "caret-neovim", "tabby", "zed"}

    for editor in list_editor_settings("cpk_live_x"):
        if editor.code not in without_name:
            assert re.search(r"X-Caret-Editor|\?editor=", editor.text), editor.code


def test_the_overview_shows_the_card_until_it_is_dismissed(
    company: Company, sign_in: SignIn
) -> None:
    client = sign_in(company.developer)
    before = client.get("/").content.decode()

    page = client.post("/onboarding/dismiss", follow=True).content.decode()
    client.post("/onboarding/restore")
    after = client.get("/").content.decode()

    assert _CARD in before
    assert _CARD not in page
    assert "/onboarding/restore" in page
    assert _CARD in after


def test_the_search_finds_only_objects_that_the_user_may_see(
    company: Company, sign_in: SignIn
) -> None:
    # The developer's name is gus, so the search finds the member, too.
    lookup_id = make_key(company, company.developer, name="Gustav").key.lookup_id
    team = create_team(actor=company.platform, name="Gusto", now=timezone.now())
    member_path = f"/members/{company.developer.user_id}"

    administrator = search(sign_in(company.administrator), "gus")
    developer = search(sign_in(company.developer), "gus")

    assert set(administrator) == {f"/keys/{lookup_id}", member_path, f"/teams/{team.id}"}
    assert developer == [f"/keys/{lookup_id}"]


def test_the_search_finds_nothing_of_another_tenant(company: Company, sign_in: SignIn) -> None:
    lookup_id = make_key(company, company.developer, name="Zyzzyva").key.lookup_id
    administrator = sign_in(company.administrator)
    stranger = sign_in(make_company("hooli", ACME_PEOPLE).administrator)

    for query in ("zyzzyva", f"cpk_live_{lookup_id}"):
        assert search(administrator, query) == [f"/keys/{lookup_id}"]
        assert search(stranger, query) == []
