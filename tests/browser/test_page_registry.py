"""The registry of pages (`pages.py`) agrees with the URL configuration."""

import pytest

from tests.browser.client import client_with
from tests.browser.pages import ACTIONS, all_pages, unknown_patterns, vanished_patterns
from tests.browser.sample_data import Scene, Visitor


def test_each_url_with_arguments_has_an_example() -> None:
    assert unknown_patterns() == []


def test_the_registry_names_no_removed_url() -> None:
    assert vanished_patterns() == []


def test_page_names_are_unique() -> None:
    names = [page.name for page in all_pages()]

    assert sorted(set(names)) == sorted(names)


@pytest.mark.parametrize("pattern", sorted(ACTIONS))
def test_an_action_url_cannot_be_opened(scene: Scene, pattern: str) -> None:
    visitor = Visitor.OPERATOR if pattern.startswith("operators/") else Visitor.MEMBER

    response = client_with(scene.session(visitor)).get(ACTIONS[pattern](scene))

    assert response.status_code == 405
