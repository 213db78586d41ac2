"""The paths that a policy excludes, and the repositories that may be indexed under it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caret.contracts.content_exclusion import (
    _compile_globs,
    exclusion_names,
    is_excluded,
    is_indexing_allowed,
    matching_globs,
)
from tests.exclusion_cases import EXCLUSION_CASES
from tests.fakes.cpu_guard import cpu_guard
from tests.fakes.tenants import make_policy

# Letters with unusual case mappings, and characters with a meaning in globs.
glob_parts = st.sampled_from(
    [
        *("a", "i", "I", "s", "S", "k", "K", "ss", "ffi"),
        *("*", "?", "/", "\\", ".", "[a-k]", "[!s]"),
        *("\u00df", "\u1e9e", "\u0130", "\u0131", "\u017f", "\u212a", "\u0307", "\ufb03"),
        *("\u00e9", "e\u0301", "E\u0301", "\u0345", "\u03b9"),
    ]
)


@pytest.mark.parametrize(
    ("globs", "repository", "expected"),
    [
        ((), "shop", False),
        (("shop",), "shop", True),
        (("shop",), "shopping", False),
        (("acme/*",), "acme/shop", True),
        (("acme/*",), "globex/shop", False),
        (("blog", "sh?p"), "shop", True),
        (("*",), "shop", True),
        (("*",), "", False),
        (("Shop",), "shop", False),  # unlike exclusion rules, these globs are case-sensitive
    ],
)
def test_a_repository_may_be_indexed_if_a_glob_matches_its_name(
    globs: tuple[str, ...], repository: str, expected: bool
) -> None:
    assert is_indexing_allowed(make_policy(retrieval=globs), repository=repository) is expected


@pytest.mark.parametrize(("glob", "path", "excluded"), EXCLUSION_CASES)
@pytest.mark.parametrize("name", ["*", "shop"])
def test_a_glob_excludes_the_paths_that_it_matches(
    name: str, glob: str, path: str, excluded: bool
) -> None:
    policy = make_policy(content_exclusion={name: ("other/*", glob)})

    assert is_excluded(policy, repository="shop", path=path) is excluded


def test_a_path_without_a_repository_is_matched_with_the_general_globs_only() -> None:
    policy = make_policy(content_exclusion={"*": ("*.env",), "shop": ("*.key",)})

    excluded = [is_excluded(policy, repository="", path=path) for path in ("a.env", "a.key")]

    assert excluded == [True, False]


@pytest.mark.parametrize(("glob", "path", "excluded"), EXCLUSION_CASES)
def test_the_matching_glob_is_reported(glob: str, path: str, excluded: bool) -> None:
    matches = matching_globs({"*": (glob,)}, repository="shop", path=path)

    assert matches == ([("*", glob)] if excluded else [])


@given(st.lists(glob_parts, max_size=4).map("".join), st.lists(glob_parts, max_size=6).map("".join))
def test_the_literal_prefilter_never_changes_the_result(glob: str, path: str) -> None:
    """Paths without the glob's literal text are not matched with its regular expression."""
    policy = make_policy(content_exclusion={"*": (glob,)})

    matches = matching_globs(policy.content_exclusion, repository="", path=path)

    assert is_excluded(policy, repository="", path=path) is bool(matches)


@pytest.mark.parametrize("repository", ["Payments", "PAYMENTS", "payments"])
def test_exclusion_rules_ignore_the_case_of_repository_names(repository: str) -> None:
    exclusion: dict[str, tuple[str, ...]] = {
        "payments": ("a",),
        "*": ("b",),
        "PayMents": ("c",),
        "shop": ("d",),
    }

    assert exclusion_names(exclusion, repository) == ("*", "payments", "PayMents")
    assert is_excluded(make_policy(content_exclusion=exclusion), repository=repository, path="c")


def test_long_paths_and_globs_are_matched_in_linear_time() -> None:
    policy = make_policy(content_exclusion={"*": ("*a" * 60 + "\u00df", "**/" * 60 + "b")})

    with cpu_guard():
        for number in range(100):
            is_excluded(policy, repository="shop", path="aA\u00df/" * 120 + str(number))


def test_the_globs_of_a_policy_are_compiled_once() -> None:
    policy = make_policy(content_exclusion={"*": ("compiled/once/*",)})
    before = _compile_globs.cache_info().misses

    for number in range(20):
        is_excluded(policy, repository="shop", path=f"{number}.py")

    assert _compile_globs.cache_info().misses - before <= 1  # the list of the rule "*"
