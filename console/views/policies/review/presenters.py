"""Presentation of a dry run."""

from dataclasses import dataclass
from typing import Final

from console.views.policies.diff import titles_of
from console.views.policies.presenters import FEATURES
from tenants.policy.dry_run import DryRun

MAX_SHOWN: Final = 50  # members


@dataclass(frozen=True, slots=True)
class ItemCount:
    title: str
    num: int  # number of members


@dataclass(frozen=True, slots=True)
class DryRunSummary:
    num_members: int
    num_affected: int
    affected: list[str]  # the first ones; empty if the user may not see members
    num_hidden: int
    lost: list[ItemCount]
    gained: list[ItemCount]
    fields: list[ItemCount]
    keys_beyond_lifetime: int
    keys_to_be_revoked: int


def summarize_dry_run(dry_run: DryRun) -> DryRunSummary:
    difference = dry_run.difference
    visible_members = difference.affected[:MAX_SHOWN] if dry_run.has_member_details else []
    titles = titles_of(difference.fields)
    return DryRunSummary(
        num_members=difference.num_members,
        num_affected=len(difference.affected),
        affected=visible_members,
        num_hidden=len(difference.affected) - len(visible_members),
        lost=[
            ItemCount(str(FEATURES[name]), num) for name, num in difference.features_lost.items()
        ],
        gained=[
            ItemCount(str(FEATURES[name]), num) for name, num in difference.features_gained.items()
        ],
        fields=[
            ItemCount(title, num)
            for title, num in zip(titles, difference.fields.values(), strict=True)
        ],
        keys_beyond_lifetime=dry_run.keys_beyond_lifetime,
        keys_to_be_revoked=dry_run.keys_to_be_revoked,
    )
