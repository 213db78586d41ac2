"""The cached policy of each repository."""

from caret_ls.mode_choice import CompletionMode
from caret_ls.policy_cache import MAX_AGE_S, EditorPolicy, PolicyCache

ANSWER = {
    "type": "policy",
    "repository": "shop",
    "excluded_globs": ["legal/**"],
    "modes": ["inline"],
}

# The modes that are allowed until the policy is known.
PRESUMED = frozenset(CompletionMode) - {CompletionMode.EDIT}


def recording_policies() -> tuple[PolicyCache, list[str]]:
    """Return a policy cache and the list of its requests."""
    requests: list[str] = []

    def request(repository: str) -> bool:
        requests.append(repository)
        return True

    return PolicyCache(request), requests


def test_everything_but_edits_is_allowed_until_the_policy_arrives() -> None:
    policies, requests = recording_policies()

    assert policies.get("shop", 0.0) == EditorPolicy()
    assert policies.get("shop", 1.0) == EditorPolicy((), PRESUMED)
    assert requests == ["shop"], "the policy must be requested only once"


def test_a_policy_applies_to_its_repository() -> None:
    policies = PolicyCache(lambda _: True)
    policies.update(ANSWER)

    assert policies.get("shop", 0.0) == EditorPolicy(("legal/**",), frozenset({"inline"}))
    assert policies.get("mill", 0.0) == EditorPolicy()


def test_a_mode_that_the_policy_does_not_list_is_not_allowed() -> None:
    policies = PolicyCache(lambda _: True)
    policies.update(ANSWER | {"modes": ["chat"]})

    assert policies.automatic_modes("shop", 0.0) == {"chat"}


def test_a_mode_without_a_model_is_not_requested_until_the_next_connection() -> None:
    policies = PolicyCache(lambda _: True)
    policies.mark_unserved("block")

    without = policies.automatic_modes("shop", 0.0)
    policies.on_reconnect()

    assert without == PRESUMED - {CompletionMode.BLOCK}
    assert policies.automatic_modes("shop", 0.0) == PRESUMED


def test_the_policy_is_requested_again_when_old_or_invalidated() -> None:
    policies, requests = recording_policies()
    policies.get("shop", 0.0)
    policies.update(ANSWER)
    policies.get("shop", MAX_AGE_S + 1)
    policies.invalidate()

    assert policies.get("shop", MAX_AGE_S + 2).excluded_globs == ("legal/**",)
    assert len(requests) == 3


def test_a_request_that_could_not_be_sent_is_repeated() -> None:
    requests: list[str] = []

    def request(repository: str) -> bool:
        requests.append(repository)
        return False

    policies = PolicyCache(request)
    policies.get("shop", 0.0)
    policies.get("shop", 1.0)

    assert len(requests) == 2
