"""The registry of pages agrees with the URL configuration."""

import pytest

from tests.browser.client import client_with
from tests.browser.pages import ACTIONS, all_pages, unknown_patterns, vanished_patterns
from tests.browser.sample_data import Scene, Visitor


def test_each_address_with_arguments_has_an_example() -> None:
    assert unknown_patterns() == []


def test_no_address_is_named_that_is_answered_no_more() -> None:
    assert vanished_patterns() == []


def test_no_two_pages_have_one_name() -> None:
    names = [page.name for page in all_pages()]

    assert sorted(set(names)) == sorted(names)


@pytest.mark.parametrize("pattern", sorted(ACTIONS))
def test_an_action_is_no_page(scene: Scene, pattern: str) -> None:
    visitor = Visitor.OPERATOR if pattern.startswith("operators/") else Visitor.MEMBER

    answer = client_with(scene.session(visitor)).get(ACTIONS[pattern](scene))

    assert answer.status_code == 405
