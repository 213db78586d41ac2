"""Billing of a demo company: plan, budgets, nightly rating, invoices, credit and credit note.

`moment_at(0.62)` is a time at 62% of the demo period.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final
from uuid import UUID

from caret.contracts.pricing import BudgetScope
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.billing_periods import start_of_day, start_of_next_month, utc_day
from tenants.base.money import MICROS, to_cents
from tenants.base.permissions import Role
from tenants.billing.budgets.operations import (
    BudgetTarget,
    BudgetTerms,
    change_budget,
    create_budget,
)
from tenants.billing.budgets.queries import read_page_of_budgets
from tenants.billing.invoices.billing_profile import set_billing_profile
from tenants.billing.invoices.document import InvoiceParty, InvoiceTax
from tenants.billing.invoices.operations import GRACE, issue_credit_note, issue_due_invoices
from tenants.billing.invoices.queries import find_invoice
from tenants.billing.ledger.credits import grant_credit
from tenants.billing.plans.operations import NewPrice, add_price, subscribe_tenant
from tenants.billing.plans.queries import list_plans
from tenants.billing.rating.operations import rate_tenant
from tenants.demo.members import DemoCompany
from tenants.demo.tenants import PLAN, PRICES, SEAT_MONTH_MICROS
from tenants.demo.traffic.personas import TEAMS
from tenants.demo.traffic.timeline import DemoTimeline, TimelineEvent
from tenants.models import AlertDelivery, BillingState

_RATING_OFFSET: Final = timedelta(days=1, minutes=20)  # after the beginning of the rated day
_SEAT_CENTS: Final = to_cents(SEAT_MONTH_MICROS)
_INVOICE_DELAY: Final = timedelta(minutes=20)  # after the grace period
# The approximate cost of a developer's tokens in a month, in the plan's currency.
_TOKEN_COST_PER_DEVELOPER: Final = Decimal("0.24")


def add_price_of_first_day(timeline: DemoTimeline) -> None:
    """Add a price from the first day of the period, unless the plan has a price on this day."""
    first = utc_day(timeline.begins_at)
    plan = next(plan for plan in list_plans() if plan.slug == PLAN)
    if not any(price.effective_on <= first for price in plan.prices):
        new = NewPrice(first, SEAT_MONTH_MICROS, PRICES)
        add_price(plan=PLAN, new=new, now=timeline.moment_before(days=2))


def plan_billing(company: DemoCompany) -> list[TimelineEvent]:
    timeline = company.timeline
    return [
        TimelineEvent(
            timeline.begins_at + timedelta(hours=8), lambda now: _subscribe_tenant(timeline, now)
        ),
        *_plan_budgets(company),
        *_plan_nights(timeline),
        *_plan_invoices(timeline),
        TimelineEvent(timeline.moment_at(0.62, hour=12), lambda now: _grant_credit(timeline, now)),
        TimelineEvent(
            timeline.now - timedelta(days=3), lambda now: _correct_invoice(timeline, now)
        ),
        TimelineEvent(timeline.now, lambda _: _mark_alerts_delivered(timeline)),
    ]


def _subscribe_tenant(timeline: DemoTimeline, now: datetime) -> None:
    """Subscribe the tenant, and set its billing profile.

    The tenant may already have seats posted for later days. They stay, and rating begins again with
    the first day of the new subscription.
    """
    subscribe_tenant(
        actor=timeline.platform,
        plan=PLAN,
        starts_on=utc_day(now) + timedelta(days=1),
        now=now,
        reason="Demo data.",
    )
    with tenant_scope(timeline.tenant_id):
        BillingState.objects.filter(tenant_id=timeline.tenant_id).update(seats_booked_on=None)
    set_billing_profile(
        actor=timeline.platform,
        customer=InvoiceParty(
            name=f"{timeline.slug.title()} (demonstration)",
            address=("1 Example Street", "12345 Exampleville"),
            tax_id="XX000000000",
            email=f"billing@{timeline.slug}.example",
            country="DE",
        ),
        tax=InvoiceTax("VAT", basis_points=1_900),
        now=now,
    )


def _plan_budgets(company: DemoCompany) -> list[TimelineEvent]:
    timeline, spender = company.timeline, company.spender
    actor, num_people = company.find_actor(Role.BILLING), len(company.people)
    team = company.teams[spender.persona.team]

    def plan_budget(
        scope: BudgetScope, holder: UUID, developer_months: str, *, is_hard: bool
    ) -> TimelineEvent:
        """Return the event that creates a budget. Its limit is the cost of `developer_months`."""
        terms = BudgetTerms(_compute_limit(Decimal(developer_months)), is_hard=is_hard)
        return TimelineEvent(
            timeline.moment_at(0.15, hour=13),
            lambda now: create_budget(
                actor=actor, holder=BudgetTarget(scope, holder), terms=terms, now=now
            ),
        )

    # The limits are low, so that the budgets have alerts.
    return [
        TimelineEvent(
            timeline.moment_at(0.12, hour=13),
            _make_budget_cut(company, _compute_limit(Decimal(num_people) * Decimal("0.75"))),
        ),
        plan_budget(BudgetScope.TEAM, team, str(num_people / len(TEAMS) * 0.75), is_hard=False),
        plan_budget(BudgetScope.USER, UUID(spender.user_id), "1.05", is_hard=True),
    ]


def _compute_limit(developer_months: Decimal) -> int:
    """Return the cost of the tokens that this number of developers uses in a month, in micros.

    The cost is rounded up to whole cents.
    """
    return int(developer_months * _TOKEN_COST_PER_DEVELOPER * 100 + 1) * (MICROS // 100)


def _make_budget_cut(company: DemoCompany, limit_micros: int) -> Callable[[datetime], None]:
    """Return a function that lowers the limit of the tenant's budget, for an event."""

    def lower_limit(now: datetime) -> None:
        actor = company.find_actor(Role.BILLING)
        budgets = read_page_of_budgets(actor=actor, limit=100, cursor=None, now=now).rows
        for budget in budgets:
            if budget.scope is BudgetScope.TENANT:
                terms = BudgetTerms(limit_micros, is_hard=False)
                change_budget(
                    actor=actor, budget_id=budget.id, terms=terms, version=budget.version, now=now
                )

    return lower_limit


def _plan_nights(timeline: DemoTimeline) -> list[TimelineEvent]:
    nights = (
        timeline.begins_at + timedelta(days=number) + _RATING_OFFSET
        for number in range(timeline.num_days)
    )
    moments = (*nights, timeline.now)
    return [
        TimelineEvent(at, lambda now: rate_tenant(timeline.tenant_id, now=now)) for at in moments
    ]


def _plan_invoices(timeline: DemoTimeline) -> list[TimelineEvent]:
    month, events = start_of_next_month(utc_day(timeline.begins_at)), []
    while start_of_day(month) <= timeline.now:
        at = start_of_day(month) + GRACE + _INVOICE_DELAY
        events.append(
            TimelineEvent(at, lambda now: issue_due_invoices(timeline.tenant_id, now=now))
        )
        month = start_of_next_month(month)
    return events


def _grant_credit(timeline: DemoTimeline, now: datetime) -> None:
    grant_credit(
        actor=timeline.platform,
        amount_micros=25 * MICROS,
        reason="Credit for slow completions.",
        now=now,
    )


def _correct_invoice(timeline: DemoTimeline, now: datetime) -> None:
    """Issue a credit note for the first invoice, if there is one.

    Its amount is the price of a seat, but at most half of the invoice's net amount.
    """
    with tenant_scope(timeline.tenant_id):
        state = BillingState.objects.get(tenant_id=timeline.tenant_id)
    if not state.last_invoice_number:
        return
    document = find_invoice(actor=timeline.platform, number=1).document
    net_cents = min(_SEAT_CENTS, (document.subtotal_cents - document.credit_cents) // 2)
    if net_cents:
        issue_credit_note(
            actor=timeline.platform,
            number=1,
            net_cents=net_cents,
            reason="A seat was billed for a former member.",
            now=now,
        )


def _mark_alerts_delivered(timeline: DemoTimeline) -> None:
    """Mark budget alerts as delivered: nobody is to receive alerts about generated spending."""
    with tenant_scope(timeline.tenant_id):
        pending = AlertDelivery.objects.filter(tenant_id=timeline.tenant_id, delivered_at=None)
        pending.update(delivered_at=timeline.now, next_attempt_at=None, num_attempts=1)
