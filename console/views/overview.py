"""The first page: the tenant, how to use the gateway, keys, policy, the last day's usage."""

from dataclasses import dataclass
from typing import Final

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET

from caret.contracts.policy import Isolation, Mode
from console.charts import Bar, hourly_bars
from console.keys_table import KeyLine, key_lines
from console.member import Member, for_members
from tenants.keys.queries import first_keys
from tenants.members.permissions import Permission
from tenants.paging import MAX_PAGE
from tenants.policies.queries import PolicyInForce, get_policy
from tenants.usage.queries import RecentUsage, recent_usage

_EVERY_REPOSITORY: Final = "Every repository"
_ISOLATION: Final = {
    Isolation.SHARED: "Shared by the members of this tenant, by nobody else",
    Isolation.STRICT: "One for each user",
}


@dataclass(frozen=True, slots=True)
class Keys:
    lines: list[KeyLine]
    total: int
    num_hidden: int  # beyond the first page
    only_own: bool
    can_create: bool


@dataclass(frozen=True, slots=True)
class Usage:
    figures: RecentUsage
    cached_percent: int | None  # of the prompt tokens; None: there were none
    bars: list[Bar]
    only_own: bool


@dataclass(frozen=True, slots=True)
class Feature:
    name: str
    is_on: bool


@dataclass(frozen=True, slots=True)
class Policy:
    in_force: PolicyInForce
    features: list[Feature]
    exclusions: list[tuple[str, tuple[str, ...]]]  # repositories by name, "every repository" first
    isolation_text: str


@require_GET
@for_members
def overview(request: HttpRequest, member: Member) -> HttpResponse:
    context = {
        "member": member,
        "gateway_url": settings.GATEWAY_URL,
        "keys": _keys(member),
        "policy": _policy(member),
        "usage": _usage(member),
    }
    return render(request, "console/overview.html", context)


def _keys(member: Member) -> Keys | None:
    """None for who sees no keys."""
    actor = member.actor
    sees_all = actor.may(Permission.READ_KEYS)
    if not sees_all and not actor.may(Permission.READ_OWN_KEYS):
        return None
    page = first_keys(actor=actor, limit=MAX_PAGE, now=timezone.now())
    return Keys(
        lines=key_lines(page.keys, can_revoke=actor.may(Permission.REVOKE_KEYS)),
        total=page.total,
        num_hidden=page.total - len(page.keys),
        only_own=not sees_all,
        can_create=actor.may(Permission.CREATE_KEYS),
    )


def _policy(member: Member) -> Policy | None:
    if not member.actor.may(Permission.READ_POLICY):
        return None
    in_force = get_policy(actor=member.actor)
    policy = in_force.policy
    exclusions = [
        (_EVERY_REPOSITORY if name == "*" else name, globs)
        for name, globs in sorted(policy.content_exclusion.items())
    ]
    return Policy(
        in_force=in_force,
        features=[Feature(mode.value, mode in policy.features) for mode in Mode],
        exclusions=exclusions,
        isolation_text=_ISOLATION[policy.isolation],
    )


def _usage(member: Member) -> Usage | None:
    actor = member.actor
    sees_all = actor.may(Permission.READ_USAGE)
    if not sees_all and not actor.may(Permission.READ_OWN_USAGE):
        return None
    figures = recent_usage(actor=actor, now=timezone.now())
    cached = None
    if figures.told_prompt_tokens:
        cached = round(100 * figures.cached_tokens / figures.told_prompt_tokens)
    return Usage(figures, cached, hourly_bars(figures.hourly_requests), only_own=not sees_all)
