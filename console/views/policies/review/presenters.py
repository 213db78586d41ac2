"""Presentation of a dry run, which previews the effect of a policy change."""

from dataclasses import dataclass
from typing import Final

from console.views.policies.diff import titles_of
from console.views.policies.presenters import FEATURES
from tenants.policy.dry_run import DryRun

_MAX_SHOWN_MEMBERS: Final = 50


@dataclass(frozen=True, slots=True)
class MemberCount:
    """A feature or a field of the policy, and the number of members that its change affects."""

    title: str  # of the feature or field
    num: int


@dataclass(frozen=True, slots=True)
class DryRunSummary:
    num_members: int
    num_affected: int  # members whose effective policy changes
    affected: list[str]  # the first e-mail addresses; empty if the user may not see members
    num_hidden: int  # affected members who are not in `affected`
    lost: list[MemberCount]  # features
    gained: list[MemberCount]  # features
    fields: list[MemberCount]  # changed fields of the policy
    # Numbers of keys; see `DryRun`.
    keys_beyond_lifetime: int
    keys_to_be_revoked: int


def summarize_dry_run(dry_run: DryRun) -> DryRunSummary:
    difference = dry_run.difference
    visible_members = difference.affected[:_MAX_SHOWN_MEMBERS] if dry_run.has_member_details else []
    titles = titles_of(difference.fields)
    return DryRunSummary(
        num_members=difference.num_members,
        num_affected=len(difference.affected),
        affected=visible_members,
        num_hidden=len(difference.affected) - len(visible_members),
        lost=[
            MemberCount(str(FEATURES[name]), num) for name, num in difference.features_lost.items()
        ],
        gained=[
            MemberCount(str(FEATURES[name]), num)
            for name, num in difference.features_gained.items()
        ],
        fields=[
            MemberCount(title, num)
            for title, num in zip(titles, difference.fields.values(), strict=True)
        ],
        keys_beyond_lifetime=dry_run.keys_beyond_lifetime,
        keys_to_be_revoked=dry_run.keys_to_be_revoked,
    )
