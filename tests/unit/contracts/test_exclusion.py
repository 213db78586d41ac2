"""Which paths a policy excludes, and which repositories it lets be indexed."""

import pytest

from caret.contracts.exclusion import _compiled, is_excluded, may_index
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


@pytest.mark.parametrize(
    ("glob", "path", "excluded"),
    [
        ("**/.env", ".env", True),
        ("**/.env", "a/b/.env", True),
        ("**/.env", "a/b.env", False),
        ("a/**/[bc]?.py", "a/x/y/b1.py", True),
        ("a/**/[bc]?.py", "a/c2.py", True),
        ("a/**/[!b]?.py", "a/b2.py", False),
        ("*", "any/thing", True),
        ("[", "[", True),
        ("[x]longer.py", "xlonger.py", True),
    ],
)
@pytest.mark.parametrize("name", ["*", "shop"])
def test_a_glob_excludes_what_it_matches(name: str, glob: str, path: str, excluded: bool) -> None:
    policy = make_policy(content_exclusion={name: ("other/*", glob)})

    assert is_excluded(policy, repository="shop", path=path) is excluded


def test_a_policys_globs_are_compiled_once() -> None:
    policy = make_policy(content_exclusion={"*": ("compiled/once/*",)})
    before = _compiled.cache_info().misses

    for number in range(20):
        is_excluded(policy, repository="shop", path=f"{number}.py")

    assert _compiled.cache_info().misses - before <= 2  # this one, and none
