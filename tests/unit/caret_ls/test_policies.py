from caret_ls.policy_cache import MAX_AGE_S, EditorPolicy, PolicyCache

ANSWER = {"type": "policy", "repository": "shop", "excluded": ["legal/**"], "modes": ["inline"]}


def asking_policies() -> tuple[PolicyCache, list[str]]:
    """Return a policy cache and the list of its requests."""
    asked: list[str] = []

    def ask(repository: str) -> bool:
        asked.append(repository)
        return True

    return PolicyCache(ask), asked


def test_until_it_is_told_everything_may_be_asked() -> None:
    policies, asked = asking_policies()

    assert policies.get("shop", 0.0) == EditorPolicy()
    assert policies.get("shop", 1.0) == EditorPolicy()
    assert asked == ["shop"], "it must ask only once"


def test_what_is_told_holds_for_its_repository() -> None:
    policies = PolicyCache(lambda _: True)
    policies.update(ANSWER)

    assert policies.get("shop", 0.0) == EditorPolicy(("legal/**",), is_allowed=True)
    assert policies.get("mill", 0.0) == EditorPolicy()


def test_a_mode_that_is_not_named_is_not_allowed() -> None:
    policies = PolicyCache(lambda _: True)
    policies.update(ANSWER | {"modes": ["chat"]})

    assert not policies.get("shop", 0.0).is_allowed


def test_it_is_asked_again_after_minutes_and_when_in_doubt() -> None:
    policies, asked = asking_policies()
    policies.get("shop", 0.0)
    policies.update(ANSWER)
    policies.get("shop", MAX_AGE_S + 1)
    policies.invalidate()

    assert policies.get("shop", MAX_AGE_S + 2).excluded == ("legal/**",)
    assert len(asked) == 3


def test_what_could_not_be_sent_is_asked_again() -> None:
    asked: list[str] = []

    def ask(repository: str) -> bool:
        asked.append(repository)
        return False

    policies = PolicyCache(ask)
    policies.get("shop", 0.0)
    policies.get("shop", 1.0)

    assert len(asked) == 2
