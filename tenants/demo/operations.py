"""Seeding of a demonstration tenant with generated data.

    the week before     members and teams: each step is committed, because an invitation is sent
                        only after a commit
    the period          all events in order of time: one transaction
    the last hours      rollups, content capture, erasures, a purge, exports: each step is
                        committed, because most of them also change other stores

The period is one transaction, because workers run at the same time: their tasks for billing,
signatures and rollups see all of the period or nothing. If the process is killed before the commit,
the tenant is marked as begun, and has members and teams but no usage.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Conflict, InvalidValue
from tenants.base.signatures.signing_keys import load_signing_keys
from tenants.demo.api_keys import ActiveDevelopers, plan_keys
from tenants.demo.billing import add_price_of_first_day, plan_billing
from tenants.demo.compliance import build_exports, erase_one_user, purge_expired_data
from tenants.demo.consent import plan_consents, store_example_content
from tenants.demo.demo_marker import (
    BEGUN,
    FILLED,
    is_marked,
    mark_begun,
    mark_filled,
    require_demonstration,
)
from tenants.demo.members import DemoCompany, create_company, plan_membership_changes
from tenants.demo.policies import plan_policies
from tenants.demo.sign_in import plan_sign_in_settings, set_sink_states
from tenants.demo.traffic.personas import MAX_PEOPLE, MIN_PEOPLE, make_personas
from tenants.demo.traffic.timeline import DemoTimeline, TimelineEvent, get_midnight, run_events
from tenants.demo.usage import plan_usage
from tenants.models import AuditEntry, Outcome, TypingReport, UsageRecord
from tenants.security.audit.signed_heads import sign_head
from tenants.usage.rollups.operations import roll_up_tenant

MIN_DAYS: Final = 8
MAX_DAYS: Final = 366
ReportProgress = Callable[[str], None]  # gets the name of each step that begins


class DemoDataExists(Conflict):
    pass


@dataclass(frozen=True, slots=True)
class SeedOptions:
    slug: str  # of the tenant
    num_days: int  # full days of the period before today, MIN_DAYS to MAX_DAYS
    num_people: int  # generated users, MIN_PEOPLE to MAX_PEOPLE
    seed: int  # of the random numbers


def seed_tenant(
    options: SeedOptions, *, now: datetime, report_progress: ReportProgress
) -> dict[str, int]:
    """Seed a tenant and return the numbers of its rows, by kind.

    Raises InvalidValue, NotFound, DemoDataExists, and Conflict for a tenant that is not a
    demonstration tenant.
    """
    _check_options(options)
    tenant_id = require_demonstration(options.slug)
    if is_marked(tenant_id, FILLED):
        raise DemoDataExists("{slug} already has demo data.", slug=options.slug)
    if is_marked(tenant_id, BEGUN):
        raise Conflict(
            "The demo tenant {slug} was only partly created. Start again with an empty "
            "home directory.",
            slug=options.slug,
        )
    begins_at = get_midnight(now) - timedelta(days=options.num_days)
    timeline = DemoTimeline(tenant_id, options.slug, begins_at, now, options.seed)
    report_progress("People and teams")
    mark_begun(timeline)
    add_price_of_first_day(timeline)
    personas = make_personas(
        options.num_people,
        domain=f"{options.slug}.example",
        random=timeline.make_random("characters"),
    )
    company = create_company(timeline, personas)
    report_progress(f"{options.num_days} days of work")
    with tenant_scope(tenant_id):
        run_events(_plan_period(company), until=now)
    report_progress("Hours and days are counted")
    roll_up_tenant(tenant_id=tenant_id, arrived_until=now)
    report_progress("Erasures and exports")
    store_example_content(company, now - timedelta(hours=12))
    erase_one_user(company, now - timedelta(hours=10))
    purge_expired_data(company, now - timedelta(hours=8))
    build_exports(company, now - timedelta(hours=6))
    return _finish_tenant(timeline)


def _plan_period(company: DemoCompany) -> list[TimelineEvent]:
    active_developers = ActiveDevelopers(company)
    # Usage comes first among events of the same time, because billing depends on it.
    return [
        *plan_usage(active_developers, spender_id=company.spender.user_id),
        *plan_membership_changes(company),
        *plan_keys(active_developers),
        *plan_policies(company),
        *plan_consents(company),
        *plan_sign_in_settings(company),
        *plan_billing(company),
        *_plan_signatures(company.timeline),
    ]


def _finish_tenant(timeline: DemoTimeline) -> dict[str, int]:
    row_counts = _count_rows(timeline)
    mark_filled(timeline, row_counts)
    sign_head(tenant_id=timeline.tenant_id, keys=load_signing_keys(), now=timeline.now)
    set_sink_states(timeline)
    return row_counts


def _plan_signatures(timeline: DemoTimeline) -> list[TimelineEvent]:
    """Return the events that sign the audit chain each evening."""
    evenings = (
        timeline.begins_at + timedelta(days=number, hours=23, minutes=59)
        for number in range(timeline.num_days)
    )
    return [
        TimelineEvent(
            at,
            lambda now: sign_head(tenant_id=timeline.tenant_id, keys=load_signing_keys(), now=now),
        )
        for at in evenings
    ]


def _count_rows(timeline: DemoTimeline) -> dict[str, int]:
    models = {
        "requests": UsageRecord,
        "outcomes": Outcome,
        "typed": TypingReport,
        "audit_entries": AuditEntry,
    }
    with tenant_scope(timeline.tenant_id):
        return {
            name: model._default_manager.filter(tenant_id=timeline.tenant_id).count()
            for name, model in models.items()
        }


def _check_options(options: SeedOptions) -> None:
    """Check the options. Raises InvalidValue."""
    if not MIN_DAYS <= options.num_days <= MAX_DAYS:
        raise InvalidValue("days", "Enter {least} to {most} days.", least=MIN_DAYS, most=MAX_DAYS)
    if not MIN_PEOPLE <= options.num_people <= MAX_PEOPLE:
        raise InvalidValue(
            "people", "Enter {least} to {most} users.", least=MIN_PEOPLE, most=MAX_PEOPLE
        )
