"""Why something is, or would be, refused: which rule of which layer decides. Pure.

Knows what gateways know of policies, and asks `caret.contracts` as they do, so that both agree.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from caret.contracts.content_exclusion import excluding_globs, may_index
from caret.contracts.policy import Feature, Mode, PolicyLayer, TenantPolicy
from caret.contracts.policy_override import features_of, restrict_all

TENANT = "tenant"


@dataclass(frozen=True, slots=True)
class Question:
    mode: Mode
    repository: str  # "": none was named
    path: str  # "": none was named


@dataclass(frozen=True, slots=True)
class NamedLayer:
    name: str  # "team:Platform", "user:ada@example.com"
    layer: PolicyLayer
    version: int | None = None  # None: not told


@dataclass(frozen=True, slots=True)
class Rule:
    """One that is against it."""

    layer: str  # TENANT, or a layer's name
    field: str  # of the policy or the layer
    code: str  # as gateways refuse
    detail: str  # for people
    version: int | None = None  # of the policy or the layer; None: not told


@dataclass(frozen=True, slots=True)
class Explanation:
    rules: list[Rule]  # empty: it is allowed; the tenant's first
    may_retrieve: bool  # whether what was indexed of the repository may be in the prompt
    policy: TenantPolicy  # as it holds for the user


def explain_question(
    policy: TenantPolicy,
    layers: Iterable[NamedLayer],
    question: Question,
    version: int | None = None,
) -> Explanation:
    listed = list(layers)
    narrowed = restrict_all(policy, (each.layer for each in listed))
    rules = [replace(rule, version=version) for rule in _rules_of_policy(policy, question)]
    for each in listed:
        rules += [replace(rule, version=each.version) for rule in _rules_of_layer(each, question)]
    return Explanation(
        rules=rules,
        may_retrieve=may_index(narrowed, repository=question.repository),
        policy=narrowed,
    )


def _rules_of_policy(policy: TenantPolicy, question: Question) -> list[Rule]:
    off = _feature_rules(TENANT, features_of(policy), question)
    unnamed = []
    if policy.requires_path and not question.path:
        unnamed = [Rule(TENANT, "requires_path", "path_required", "No file is named.")]
    return off + unnamed + _exclusion_rules(TENANT, policy.content_exclusion, question)


def _rules_of_layer(named: NamedLayer, question: Question) -> list[Rule]:
    layer = named.layer
    off = [] if layer.features is None else _feature_rules(named.name, layer.features, question)
    return off + _exclusion_rules(named.name, layer.content_exclusion, question)


def _feature_rules(name: str, on: frozenset[Feature], question: Question) -> list[Rule]:
    if Feature(question.mode.value) in on:
        return []
    return [Rule(name, "features", "feature_disabled", f"{question.mode.value} is off.")]


def _exclusion_rules(
    name: str, exclusion: dict[str, tuple[str, ...]], question: Question
) -> list[Rule]:
    found = excluding_globs(exclusion, repository=question.repository, path=question.path)
    return [
        Rule(name, "content_exclusion", "path_excluded", f'"{repository}": "{glob}"')
        for repository, glob in found
    ]
