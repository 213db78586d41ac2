"""Explanation of why a policy refuses a request: the blocking rules and their levels. Pure.

It covers features, required paths and content exclusions, but neither models nor regions. It uses
the functions of `caret.contracts` that gateways use, so that both agree.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from caret.contracts.content_exclusion import is_indexing_allowed, matching_globs
from caret.contracts.policy import Feature, Mode, PolicyOverride, TenantPolicy
from caret.contracts.policy_override import apply_overrides, features_of

TENANT = "tenant"


@dataclass(frozen=True, slots=True)
class AccessQuery:
    mode: Mode
    repository: str  # "": unnamed
    path: str  # "": unnamed


@dataclass(frozen=True, slots=True)
class NamedOverride:
    name: str  # "team:Platform", "user:ada@example.com"
    override: PolicyOverride
    version: int | None = None  # None: unknown


@dataclass(frozen=True, slots=True)
class BlockingRule:
    """A rule that blocks the request."""

    policy_level: str  # TENANT, or the name of an override
    field: str  # of the policy or the override
    code: str  # the error code of the gateways
    detail: str  # for people
    version: int | None = None  # of the policy or the override; None: unknown


@dataclass(frozen=True, slots=True)
class AccessExplanation:
    rules: list[BlockingRule]  # the tenant's rules first; empty: no covered rule blocks it
    may_retrieve: bool  # whether indexed code of the repository may be in the prompt
    policy: TenantPolicy  # as it applies to the user


def explain_access(
    policy: TenantPolicy,
    overrides: Iterable[NamedOverride],
    access_query: AccessQuery,
    version: int | None = None,
) -> AccessExplanation:
    override_list = list(overrides)
    effective = apply_overrides(policy, (override.override for override in override_list))
    rules = [replace(rule, version=version) for rule in _rules_of_policy(policy, access_query)]
    for override in override_list:
        rules += [
            replace(rule, version=override.version)
            for rule in _rules_of_override(override, access_query)
        ]
    return AccessExplanation(
        rules=rules,
        may_retrieve=is_indexing_allowed(effective, repository=access_query.repository),
        policy=effective,
    )


def _rules_of_policy(policy: TenantPolicy, access_query: AccessQuery) -> list[BlockingRule]:
    feature_rules = _feature_rules(TENANT, features_of(policy), access_query)
    path_rules = []
    if policy.requires_path and not access_query.path:
        path_rules = [
            BlockingRule(TENANT, "requires_path", "path_required", "A file path is required.")
        ]
    return (
        feature_rules
        + path_rules
        + _exclusion_rules(TENANT, policy.content_exclusion, access_query)
    )


def _rules_of_override(
    named_override: NamedOverride, access_query: AccessQuery
) -> list[BlockingRule]:
    override = named_override.override
    feature_rules = []
    if override.features is not None:
        feature_rules = _feature_rules(named_override.name, override.features, access_query)
    return feature_rules + _exclusion_rules(
        named_override.name, override.content_exclusion, access_query
    )


def _feature_rules(
    name: str, enabled_features: frozenset[Feature], access_query: AccessQuery
) -> list[BlockingRule]:
    if Feature(access_query.mode.value) in enabled_features:
        return []
    return [
        BlockingRule(name, "features", "feature_disabled", f"{access_query.mode.value} is off.")
    ]


def _exclusion_rules(
    name: str, exclusion: dict[str, tuple[str, ...]], access_query: AccessQuery
) -> list[BlockingRule]:
    matches = matching_globs(exclusion, repository=access_query.repository, path=access_query.path)
    return [
        BlockingRule(name, "content_exclusion", "path_excluded", f'"{repository}": "{glob}"')
        for repository, glob in matches
    ]
