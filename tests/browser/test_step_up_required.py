"""Each destructive URL, and each URL that grants access, requires a step-up from permitted
users."""

import pytest

from tenants.base.permissions import Role
from tests.browser.client import client_with
from tests.browser.destructive_urls import (
    NEVER_REQUIRE_STEP_UP,
    REQUIRE_STEP_UP,
    SOMETIMES_REQUIRE_STEP_UP,
    is_page_guarded,
    path_in,
    patterns_of_forms,
)
from tests.browser.sample_data import Scene
from tests.browser.sessions import session_of


def test_each_form_is_listed_with_its_step_up_requirement() -> None:
    assert (
        patterns_of_forms() == REQUIRE_STEP_UP | SOMETIMES_REQUIRE_STEP_UP | NEVER_REQUIRE_STEP_UP
    )


def test_no_form_is_listed_twice() -> None:
    lists = (REQUIRE_STEP_UP, SOMETIMES_REQUIRE_STEP_UP, NEVER_REQUIRE_STEP_UP)

    assert sum(map(len, lists)) == len(frozenset.union(*lists))


@pytest.mark.parametrize("pattern", sorted(REQUIRE_STEP_UP))
def test_a_destructive_or_granting_url_requires_a_step_up(scene: Scene, pattern: str) -> None:
    client = client_with(session_of(scene.company.people[Role.OWNER], confirmed=False))
    path = path_in(scene, pattern)

    responses = [client.post(path), *([client.get(path)] if is_page_guarded(pattern) else [])]

    for response in responses:
        assert response.status_code == 302
        assert response["Location"].startswith("/account/confirm?next=")


@pytest.mark.parametrize("pattern", sorted(REQUIRE_STEP_UP))
def test_a_user_without_permission_is_refused_before_the_step_up(
    scene: Scene, pattern: str
) -> None:
    client = client_with(session_of(scene.company.people[Role.AUDITOR], confirmed=False))

    assert client.post(path_in(scene, pattern)).status_code == 403
