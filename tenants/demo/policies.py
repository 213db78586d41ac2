"""A demonstration company's decisions during the period of its generated data.

These are policies, overrides, retention rules, legal holds and the minimum group size.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import msgspec

from caret.contracts.policy import ContentCapturePolicy, PolicyLimits, RateLimit, Tier
from caret.foundation.ids import UserId
from tenants.base.permissions import Role
from tenants.demo.members import DemoCompany
from tenants.demo.traffic.timeline import TimelineEvent
from tenants.policy.data_classes import DataClass
from tenants.policy.document import serialize_policy
from tenants.policy.operations import set_policy
from tenants.policy.overrides.operations import set_override
from tenants.policy.overrides.queries import OverrideSubject, SubjectKind
from tenants.policy.queries import load_active_policy
from tenants.privacy.consent.consent_texts import TENANT_CONSENT_VERSION
from tenants.privacy.retention.operations import NewHold, place_hold, release_hold, set_rule
from tenants.usage.reports.operations import set_min_group_users

# Short enough to purge usage records of the first week of a period of 92 days, the default.
_USAGE_RETENTION_DAYS: Final = 85
_EXCLUDED: Final = {  # globs of files, by repository
    "*": ("**/.env", "**/*.pem", "**/*.key", "**/id_rsa*", "**/secrets/**", "**/*.tfstate"),
    "firmware/keys": ("**",),
}
# For each change: its day as a share of the period, the changed fields, and the reason.
_CHANGES: Final[tuple[tuple[float, dict[str, Any], str], ...]] = (
    (0.02, {"content_exclusion": _EXCLUDED}, "Exclude infrastructure keys and state."),
    (0.1, {"has_public_code_filter": True}, "Requested by legal until licences are cleared."),
    (
        0.18,
        {
            "content_capture": ContentCapturePolicy(
                consent_text=TENANT_CONSENT_VERSION, retention_days=30, training=True
            )
        },
        "The works council agreed to opt-in content capture.",
    ),
    (0.38, {"retrieval": ("web/*", "platform/*")}, "Two teams try retrieval."),
    (
        0.75,
        {
            "limits": PolicyLimits(
                user=RateLimit(per_minute=600, burst=150),
                tokens_per_day={Tier.QUALITY: 40_000_000},
            )
        },
        "Lower rate limits after last week's slowdown.",
    ),
    (0.9, {"max_concurrent_completions": 96}, "Our team has grown."),
)


def plan_policies(company: DemoCompany) -> list[TimelineEvent]:
    return [
        *(_plan_change(company, *change) for change in _CHANGES),
        *_plan_overrides(company),
        *_plan_retention(company),
        *_plan_holds(company),
        TimelineEvent(
            company.timeline.moment_at(0.25, hour=15), lambda now: _set_min_group_size(company, now)
        ),
    ]


def _plan_change(
    company: DemoCompany, share: float, changed_fields: dict[str, Any], reason: str
) -> TimelineEvent:
    def change(now: datetime) -> None:
        policy = load_active_policy(tenant_id=company.timeline.tenant_id)
        document = serialize_policy(msgspec.structs.replace(policy, **changed_fields))
        actor = company.find_actor(Role.ADMINISTRATOR)
        set_policy(actor=actor, document=document, reason=reason, now=now)

    return TimelineEvent(company.timeline.moment_at(share, hour=11), change)


def _plan_overrides(company: DemoCompany) -> list[TimelineEvent]:
    team = SubjectKind.TEAM, company.teams["Security"]
    user = SubjectKind.USER, UUID(company.spender.user_id)
    return [
        _plan_override(company, 0.22, team, {"features": ["inline", "fim", "block", "docstring"]}),
        _plan_override(
            company,
            0.5,
            team,
            {
                "features": ["inline", "fim", "block"],
                "content_exclusion": {"*": ["**/exploits/**"]},
                "max_key_lifetime_days": 180,
            },
        ),
        _plan_override(company, 0.4, user, {"user_limit": {"per_minute": 120, "burst": 30}}),
    ]


def _plan_override(
    company: DemoCompany,
    share: float,
    subject_kind_and_id: tuple[SubjectKind, UUID],
    document: dict[str, Any],
) -> TimelineEvent:
    def change(now: datetime) -> None:
        set_override(
            actor=company.find_actor(Role.ADMINISTRATOR),
            subject=OverrideSubject(*subject_kind_and_id),
            document=document,
            reason="Agreed with the team.",
            now=now,
        )

    return TimelineEvent(company.timeline.moment_at(share, hour=12), change)


def _plan_retention(company: DemoCompany) -> list[TimelineEvent]:
    def make_rule_change(
        data_class: DataClass, days: int, reason: str
    ) -> Callable[[datetime], object]:
        return lambda now: set_rule(
            actor=company.find_actor(Role.ADMINISTRATOR),
            data_class=data_class,
            days=days,
            reason=reason,
            now=now,
        )

    timeline = company.timeline
    return [
        TimelineEvent(
            timeline.moment_at(0.3, hour=10),
            make_rule_change(DataClass.AUDIT, 1_095, "Our auditors require three years."),
        ),
        TimelineEvent(
            timeline.moment_at(0.5, hour=10),
            make_rule_change(DataClass.USAGE, _USAGE_RETENTION_DAYS, "Older invoices are settled."),
        ),
        TimelineEvent(
            timeline.moment_at(0.6, hour=10),
            make_rule_change(DataClass.RETRIEVAL, 14, "Branches are short-lived."),
        ),
    ]


def _plan_holds(company: DemoCompany) -> list[TimelineEvent]:
    """Return the events of two legal holds. One is released on the same day; the other stays."""
    timeline = company.timeline

    def make_placement(name: str, reason: str, user_id: UserId) -> Callable[[datetime], UUID]:
        hold = NewHold(
            name,
            reason,
            UUID(user_id),
            since=timeline.moment_at(0.1),
            until=timeline.moment_at(0.9),
        )
        return lambda now: place_hold(actor=company.find_actor(Role.OWNER), new=hold, now=now)

    def place_and_release(now: datetime) -> None:
        place = make_placement("Export review", "Requested by customs.", company.leaver.user_id)
        hold_id = place(now)
        release_hold(
            actor=company.find_actor(Role.OWNER),
            hold_id=hold_id,
            reason="Customs closed the case.",
            now=now.replace(hour=17),
        )

    place_hold_in_force = make_placement(
        "Case 2041", "A dispute with a supplier.", company.spender.user_id
    )
    return [
        TimelineEvent(timeline.moment_at(0.35, hour=9), place_and_release),
        TimelineEvent(timeline.moment_at(0.7, hour=9), place_hold_in_force),
    ]


def _set_min_group_size(company: DemoCompany, now: datetime) -> None:
    set_min_group_users(
        actor=company.find_actor(Role.ADMINISTRATOR),
        min_users=3,
        reason="Our smallest team has three people.",
        now=now,
    )
