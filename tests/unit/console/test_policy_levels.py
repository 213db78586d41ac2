"""The titles of policy levels: the tenant, a team or a user."""

import pytest

from console.templatetags.policies import policy_level_title


@pytest.mark.parametrize(
    ("policy_level", "title"),
    [
        ("tenant", "Tenant"),
        ("team:Platform", "Team Platform"),
        ("team:Platform: core", "Team Platform: core"),
        ("user:ada@example.com", "ada@example.com"),
    ],
)
def test_a_policy_level_has_a_title_for_people(policy_level: str, title: str) -> None:
    assert policy_level_title(policy_level) == title
