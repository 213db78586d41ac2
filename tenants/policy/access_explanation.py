"""Finds the rules of a policy and its overrides that block a request. Pure.

Considers features, required paths and content exclusions, but neither models nor regions. Gateways
use the same functions of `caret.contracts`, so the results agree with their decisions.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from caret.contracts.content_exclusion import is_indexing_allowed, matching_globs
from caret.contracts.policy import Feature, Mode, PolicyOverride, TenantPolicy
from caret.contracts.policy_override import apply_overrides, features_of

TENANT = "tenant"  # the level of the tenant's policy itself, not of an override


@dataclass(frozen=True, slots=True)
class AccessQuery:
    mode: Mode
    repository: str  # "": the request names none
    path: str  # "": the request names none


@dataclass(frozen=True, slots=True)
class NamedOverride:
    name: str  # "team:Platform", "user:ada@example.com"
    override: PolicyOverride
    version: int | None = None  # None: unknown


@dataclass(frozen=True, slots=True)
class BlockingRule:
    """A rule that blocks the request."""

    policy_level: str  # TENANT, or the name of the override that contains the rule
    field: str  # of the policy or the override
    code: str  # the error code with which gateways refuse the request
    detail: str  # an English text that states the rule
    version: int | None = None  # of the policy or the override; None: unknown


@dataclass(frozen=True, slots=True)
class AccessExplanation:
    rules: list[BlockingRule]  # the tenant's rules first; empty: none blocks the request
    may_retrieve: bool  # whether indexed code of the repository may be in the prompt
    policy: TenantPolicy  # the effective policy, with the overrides


def explain_access(
    policy: TenantPolicy,
    overrides: Iterable[NamedOverride],
    access_query: AccessQuery,
    version: int | None = None,
) -> AccessExplanation:
    """Find the rules that block a request.

    `overrides` are those that apply to the user. `version` is the version of the policy; None:
    unknown.
    """
    named_overrides = list(overrides)
    effective = apply_overrides(policy, (named.override for named in named_overrides))
    rules = [replace(rule, version=version) for rule in _find_policy_rules(policy, access_query)]
    for named_override in named_overrides:
        rules += [
            replace(rule, version=named_override.version)
            for rule in _find_override_rules(named_override, access_query)
        ]
    return AccessExplanation(
        rules=rules,
        may_retrieve=is_indexing_allowed(effective, repository=access_query.repository),
        policy=effective,
    )


def _find_policy_rules(policy: TenantPolicy, access_query: AccessQuery) -> list[BlockingRule]:
    feature_rules = _find_feature_rules(TENANT, features_of(policy), access_query)
    path_rules = []
    if policy.requires_path and not access_query.path:
        path_rules = [
            BlockingRule(TENANT, "requires_path", "path_required", "A file path is required.")
        ]
    return (
        feature_rules
        + path_rules
        + _find_exclusion_rules(TENANT, policy.content_exclusion, access_query)
    )


def _find_override_rules(
    named_override: NamedOverride, access_query: AccessQuery
) -> list[BlockingRule]:
    override = named_override.override
    feature_rules = []
    if override.features is not None:
        feature_rules = _find_feature_rules(named_override.name, override.features, access_query)
    return feature_rules + _find_exclusion_rules(
        named_override.name, override.content_exclusion, access_query
    )


def _find_feature_rules(
    policy_level: str, enabled_features: frozenset[Feature], access_query: AccessQuery
) -> list[BlockingRule]:
    mode = access_query.mode.value
    if Feature(mode) in enabled_features:
        return []
    return [BlockingRule(policy_level, "features", "feature_disabled", f"{mode} is off.")]


def _find_exclusion_rules(
    policy_level: str, exclusion: dict[str, tuple[str, ...]], access_query: AccessQuery
) -> list[BlockingRule]:
    matches = matching_globs(exclusion, repository=access_query.repository, path=access_query.path)
    return [
        BlockingRule(
            policy_level, "content_exclusion", "path_excluded", f'"{repository}": "{glob}"'
        )
        for repository, glob in matches
    ]
