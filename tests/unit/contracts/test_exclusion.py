"""Which repositories a policy lets be indexed."""

import pytest

from caret.contracts.exclusion import may_index
from tests.fakes.tenants import make_policy


@pytest.mark.parametrize(
    ("globs", "repository", "may"),
    [
        ((), "shop", False),
        (("shop",), "shop", True),
        (("shop",), "shopping", False),
        (("acme/*",), "acme/shop", True),
        (("acme/*",), "globex/shop", False),
        (("blog", "sh?p"), "shop", True),
        (("*",), "shop", True),
        (("*",), "", False),
        (("Shop",), "shop", False),
    ],
)
def test_a_repository_is_indexed_when_a_glob_names_it(
    globs: tuple[str, ...], repository: str, may: bool
) -> None:
    assert may_index(make_policy(retrieval=globs), repository=repository) is may
