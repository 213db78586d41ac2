"""Content exclusion globs, matched as the gateway matches them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caret.contracts import content_exclusion as contract
from caret_ls.content_exclusion import is_excluded
from tests.exclusion_cases import EXCLUSION_CASES
from tests.fakes.tenants import make_policy

# Letters with unusual case mappings, and characters with a meaning in globs.
glob_parts = st.sampled_from(
    ["a", "b.py", ".env", "*", "**", "*.py", "?", "[ab]", "A b", "", "\u00df", "\u0130"]
)
globs = st.lists(glob_parts, min_size=1, max_size=5).map("/".join)
paths = st.lists(
    st.sampled_from(["A", "b.py", ".ENV", "c", "ss", "i\u0307", ".."]), min_size=1, max_size=5
).map("/".join)


@given(st.lists(globs, max_size=3), paths)
def test_any_glob_is_matched_as_at_the_gateway(excluded_globs: list[str], path: str) -> None:
    policy = make_policy(content_exclusion={"*": tuple(excluded_globs)})

    is_excluded_at_gateway = contract.is_excluded(policy, repository="", path=path)

    assert is_excluded(path, excluded_globs) is is_excluded_at_gateway


# `tests/unit/contracts/test_content_exclusion.py` tests the gateway's function with the same cases.
@pytest.mark.parametrize(("glob", "path", "excluded"), EXCLUSION_CASES)
def test_each_example_glob_is_matched_as_at_the_gateway(
    glob: str, path: str, excluded: bool
) -> None:
    assert is_excluded(path, [glob]) is excluded
