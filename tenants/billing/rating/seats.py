"""Rating of seats. A seat of a day is a user who was a member at any time of that day."""

from contextlib import suppress
from datetime import date, datetime, timedelta
from typing import Final

from django.db.models import F, Q

from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.billing_periods import ONE_DAY, choose_booking_month, start_of_day, utc_day
from tenants.base.errors import NotFound
from tenants.billing.ledger.accounts import LedgerAccountCode
from tenants.billing.ledger.operations import (
    Posting,
    SourceKind,
    TransactionDraft,
    TransactionSource,
    lock_billing,
    post_transactions,
)
from tenants.billing.ledger.queries import find_open_month
from tenants.billing.plans.price_book import PlanPrice
from tenants.billing.plans.queries import read_price_book
from tenants.billing.pricing import price_seats
from tenants.billing.rating.clock import choose_billing_time
from tenants.models import BillingState, Membership, Subscription

LINE: Final = "seats"  # LedgerEntry.line
MAX_DAYS: Final = 62  # posted by one database transaction: about two months
_Period = tuple[datetime, datetime | None]  # begin and end of a membership; None: it has not ended


def post_seat_charges(tenant_id: TenantId, *, now: datetime) -> int:
    """Post the seats of past days that are not posted yet. Return the number of these days.

    One call posts at most MAX_DAYS days. A day without a price or seats gets no transaction.

    Raises NotFound for a tenant without a plan.
    """
    with tenant_scope(tenant_id):
        state = lock_billing(tenant_id)
        days = _list_due_days(state, now)
        if not days:
            return 0
        prices = read_price_book(tenant_id)
        periods = _read_membership_periods(state, days[0], days[-1])
        open_month = find_open_month(state)
        drafts: list[TransactionDraft] = []
        for day in days:
            price, num_seats = prices.price_on(day), _count_seats(periods, day)
            if price is not None and num_seats > 0:
                month = choose_booking_month(day, open_month=open_month, now=now)
                drafts.append(_draft_seats(day, num_seats, price, month))
        post_transactions(state, drafts, now=now)
        state.seats_booked_on = days[-1]
        state.save(update_fields=["seats_booked_on"])
    return len(days)


def post_pending_seat_charges(tenant_id: TenantId, *, now: datetime) -> None:
    """Post the seats of all past days that are not posted yet.

    Call this before a membership is reactivated, in the same transaction: the reactivation
    overwrites the membership's earlier period in its row.
    """
    with suppress(NotFound):  # without a plan nothing is posted
        # A call that posted MAX_DAYS days may have left further days.
        while post_seat_charges(tenant_id, now=choose_billing_time(now)) == MAX_DAYS:
            pass


def _list_due_days(state: BillingState, now: datetime) -> list[date]:
    """Return the first past days that are not posted yet, at most MAX_DAYS."""
    if state.seats_booked_on is None:
        starts = Subscription.objects.filter(tenant_id=state.tenant_id).order_by("starts_on")
        first = starts.values_list("starts_on", flat=True)[0]
    else:
        first = state.seats_booked_on + ONE_DAY
    num_days = min((utc_day(now) - first).days, MAX_DAYS)
    return [first + timedelta(days=number) for number in range(num_days)]


def _read_membership_periods(state: BillingState, first: date, last: date) -> list[_Period]:
    """Return the period of each membership that overlaps these days.

    The membership of a user who was provisioned as inactive ends when it begins. It is not a seat.
    """
    memberships = Membership.objects.filter(
        Q(ended_at__isnull=True)
        | Q(ended_at__gte=start_of_day(first), ended_at__gt=F("created_at")),
        tenant_id=state.tenant_id,
        created_at__lt=start_of_day(last + ONE_DAY),
    )
    return list(memberships.values_list("created_at", "ended_at"))


def _count_seats(periods: list[_Period], day: date) -> int:
    """Count the users who were members at any time of the day."""
    start, end = start_of_day(day), start_of_day(day + ONE_DAY)
    return sum(
        created_at < end and (ended_at is None or ended_at >= start)
        for created_at, ended_at in periods
    )


def _draft_seats(day: date, num_seats: int, price: PlanPrice, month: date) -> TransactionDraft:
    micros = price_seats(num_seats, day=day, month_micros=price.seat_month_micros)
    return TransactionDraft(
        source=TransactionSource(SourceKind.SEATS, day.isoformat()),
        day=day,
        month=month,
        memo=f"Seats of {day.isoformat()}",
        postings=[
            Posting(LedgerAccountCode.UNBILLED, micros),
            Posting(
                LedgerAccountCode.SEATS,
                -micros,
                line=LINE,
                quantity=num_seats,
                running=num_seats,  # the same: the line has one entry a day
                price_micros=price.seat_month_micros,
            ),
        ],
    )
