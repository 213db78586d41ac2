"""The cached policy of each repository."""

from caret_ls.mode_choice import CompletionMode
from caret_ls.policy_cache import MAX_AGE_S, EditorPolicy, PolicyCache

POLICY_FRAME = {
    "type": "policy",
    "repository": "shop",
    "excluded_globs": ["legal/**"],
    "modes": ["inline"],
}

# The modes that are allowed until the policy is known.
PRESUMED = frozenset(CompletionMode) - {CompletionMode.EDIT}


def make_recording_cache() -> tuple[PolicyCache, list[str]]:
    """Return a policy cache and the list of its queries."""
    queries: list[str] = []

    def send_query(repository: str) -> bool:
        queries.append(repository)
        return True

    return PolicyCache(send_query), queries


def test_everything_but_next_edits_is_allowed_until_the_policy_arrives() -> None:
    policies, queries = make_recording_cache()

    policies_before_arrival = [policies.get("shop", now_s) for now_s in (0.0, 1.0)]

    assert policies_before_arrival == [EditorPolicy(excluded_globs=(), modes=PRESUMED)] * 2
    assert queries == ["shop"], "the policy must be queried only once"


def test_a_policy_applies_to_its_repository() -> None:
    policies = PolicyCache(lambda _: True)
    policies.update(POLICY_FRAME)

    assert policies.get("shop", 0.0) == EditorPolicy(("legal/**",), frozenset({"inline"}))
    assert policies.get("mill", 0.0) == EditorPolicy()  # not known yet


def test_a_mode_that_the_policy_does_not_list_is_not_allowed() -> None:
    policies = PolicyCache(lambda _: True)
    policies.update(POLICY_FRAME | {"modes": ["chat"]})

    assert policies.automatic_modes("shop", 0.0) == {"chat"}


def test_a_mode_without_a_model_is_not_requested_until_the_next_connection() -> None:
    policies = PolicyCache(lambda _: True)
    policies.mark_unserved("block")

    modes_until_reconnection = policies.automatic_modes("shop", 0.0)
    policies.on_reconnect()

    assert modes_until_reconnection == PRESUMED - {CompletionMode.BLOCK}
    assert policies.automatic_modes("shop", 0.0) == PRESUMED


def test_the_policy_is_queried_again_when_old_or_invalidated() -> None:
    policies, queries = make_recording_cache()
    policies.get("shop", 0.0)
    policies.update(POLICY_FRAME)
    policies.get("shop", MAX_AGE_S + 1)
    policies.invalidate()

    # The old policy applies until the new one arrives.
    assert policies.get("shop", MAX_AGE_S + 2).excluded_globs == ("legal/**",)
    assert len(queries) == 3  # at first, when too old, and after the invalidation


def test_a_query_that_could_not_be_sent_is_repeated() -> None:
    queries: list[str] = []

    def send_query(repository: str) -> bool:
        queries.append(repository)
        return False

    policies = PolicyCache(send_query)
    policies.get("shop", 0.0)
    policies.get("shop", 1.0)

    assert len(queries) == 2
