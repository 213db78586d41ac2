"""Each destructive URL, and each URL that grants access, requires a step-up from permitted
users."""

import pytest

from tenants.base.permissions import Role
from tests.browser.client import client_with
from tests.browser.destructive_urls import (
    DESTROYS_OR_OPENS,
    NEITHER,
    SOMETIMES,
    has_page,
    path_in,
    patterns_of_forms,
)
from tests.browser.sample_data import Scene
from tests.browser.sessions import session_of


def test_of_each_form_it_is_said_whether_it_destroys_or_opens() -> None:
    assert patterns_of_forms() == DESTROYS_OR_OPENS | SOMETIMES | NEITHER


def test_it_is_said_once() -> None:
    lists = (DESTROYS_OR_OPENS, SOMETIMES, NEITHER)

    assert sum(map(len, lists)) == len(frozenset.union(*lists))


@pytest.mark.parametrize("pattern", sorted(DESTROYS_OR_OPENS))
def test_what_destroys_or_opens_asks_first_who_is_there(scene: Scene, pattern: str) -> None:
    client = client_with(session_of(scene.company.people[Role.OWNER], confirmed=False))
    path = path_in(scene, pattern)

    answers = [client.post(path), *([client.get(path)] if has_page(pattern) else [])]

    for answer in answers:
        assert answer.status_code == 302
        assert answer["Location"].startswith("/account/confirm?next=")


@pytest.mark.parametrize("pattern", sorted(DESTROYS_OR_OPENS))
def test_who_may_not_is_refused_before_he_is_asked(scene: Scene, pattern: str) -> None:
    """Users without the permission are rejected before they are asked to sign in again."""
    client = client_with(session_of(scene.company.people[Role.AUDITOR], confirmed=False))

    assert client.post(path_in(scene, pattern)).status_code == 403
