"""The effect of a policy change on members, and whether the change is destructive. Pure."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from caret.contracts.policy import Feature, TenantPolicy
from caret.contracts.policy_override import features_of
from tenants.policy.data_classes import DATA_CLASSES, DataClass


@dataclass(frozen=True, slots=True)
class MemberPolicies:
    """A member, with the effective policy before and after the change."""

    email: str
    before: TenantPolicy
    after: TenantPolicy


@dataclass(frozen=True, slots=True)
class PolicyDiff:
    num_members: int  # affected or not
    affected: list[str]  # e-mail addresses of affected members, sorted
    fields: dict[str, int]  # field of the policy -> number of members affected
    features_lost: dict[Feature, int]  # feature -> number of members who lose it
    features_gained: dict[Feature, int]
    # Content exclusions that any member gets: repository and glob, sorted.
    globs_added: list[tuple[str, str]]
    globs_removed: list[tuple[str, str]]  # content exclusions that any member loses


def diff_policies(members: Iterable[MemberPolicies]) -> PolicyDiff:
    """Compare the effective policies of all members before and after a change."""
    member_list = list(members)
    changed_members = [member for member in member_list if member.before != member.after]
    lost_features = Counter(
        f for m in changed_members for f in features_of(m.before) - features_of(m.after)
    )
    gained_features = Counter(
        f for m in changed_members for f in features_of(m.after) - features_of(m.before)
    )
    fields = Counter(name for member in changed_members for name in _list_changed_fields(member))
    return PolicyDiff(
        num_members=len(member_list),
        affected=sorted(member.email for member in changed_members),
        fields=dict(sorted(fields.items())),
        features_lost=dict(sorted(lost_features.items())),
        features_gained=dict(sorted(gained_features.items())),
        globs_added=sorted(
            {g for m in changed_members for g in _collect_globs(m.after) - _collect_globs(m.before)}
        ),
        globs_removed=sorted(
            {g for m in changed_members for g in _collect_globs(m.before) - _collect_globs(m.after)}
        ),
    )


def _list_changed_fields(member: MemberPolicies) -> list[str]:
    before, after = member.before, member.after
    names = before.__struct_fields__
    return [name for name in names if getattr(before, name) != getattr(after, name)]


def _collect_globs(policy: TenantPolicy) -> set[tuple[str, str]]:
    globs_by_repository = policy.content_exclusion
    return {
        (repository, glob) for repository, globs in globs_by_repository.items() for glob in globs
    }


def is_destructive(*, current: TenantPolicy, proposed: TenantPolicy) -> bool:
    """Return whether a change of policy is destructive.

    A change is destructive in these cases: content capture, training or the retrieval of some
    repositories ends; data is kept for less time; idle API keys are revoked for the first time, or
    sooner than before; a second factor is no longer required.
    """
    return (
        _reduces_content_capture(current, proposed)
        or not set(current.retrieval) <= set(proposed.retrieval)
        or any(
            _get_retention_days(proposed, data_class) < _get_retention_days(current, data_class)
            for data_class in DataClass
        )
        or _revokes_sooner(current, proposed)
        or (current.is_mfa_required and not proposed.is_mfa_required)
    )


def _reduces_content_capture(current: TenantPolicy, proposed: TenantPolicy) -> bool:
    """Return whether content capture or training ends, or content is kept for less time."""
    if current.content_capture is None:
        return False
    if (
        proposed.content_capture is None
        or proposed.content_capture.retention_days < current.content_capture.retention_days
    ):
        return True
    return current.content_capture.training and not proposed.content_capture.training


def _get_retention_days(policy: TenantPolicy, data_class: DataClass) -> int:
    return policy.retention_days.get(data_class.value, DATA_CLASSES[data_class].default_days)


def _revokes_sooner(current: TenantPolicy, proposed: TenantPolicy) -> bool:
    before, after = current.revoke_idle_keys_after_days, proposed.revoke_idle_keys_after_days
    return after is not None and (before is None or after < before)
