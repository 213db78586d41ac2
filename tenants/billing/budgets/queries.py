"""Queries of budgets, with spending and alerts."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from uuid import UUID

from caret.contracts.pricing import BudgetScope, HardBudget, SpendingLimits, encode_indexes
from caret.foundation.ids import TenantId, UserId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.billing_periods import start_of_month, utc_day
from tenants.base.errors import NotFound
from tenants.base.money import Currency
from tenants.base.pagination import Page, PagePosition, build_page, decode_cursor, fetch_page_rows
from tenants.base.permissions import Permission
from tenants.billing.budgets.exhaustion import is_exhausted, read_min_reservation
from tenants.billing.budgets.month_spend import (
    TenantMonthSpend,
    build_month_spend,
    read_month_spend,
)
from tenants.billing.budgets.webhook import derive_webhook_secret
from tenants.billing.plans.queries import find_currency, read_price_book
from tenants.models import AlertDelivery, Budget, BudgetAlert, Team, User
from tenants.security.audit.operations import record_read
from tenants.security.authorization.actor import Actor


@dataclass(frozen=True, slots=True)
class DeliveryView:
    channel: str  # mail or webhook
    address: str  # an e-mail address, or the URL of a webhook
    num_attempts: int
    delivered_at: datetime | None  # None: not yet, or never
    next_attempt_at: datetime | None  # None: no further attempt
    last_error: str  # "": none


@dataclass(frozen=True, slots=True)
class AlertView:
    percent: int  # the crossed threshold
    spent_micros: int  # at the time of the alert
    limit_micros: int  # of the month, at the time of the alert
    created_at: datetime
    deliveries: tuple[DeliveryView, ...]


@dataclass(frozen=True, slots=True)
class BudgetView:
    id: UUID
    scope: BudgetScope
    holder_id: UUID | None  # the team or the user; None: the whole tenant
    # The team's name or the user's e-mail address. None: the whole tenant, or a deleted holder.
    holder_name: str | None
    limit_micros: int  # for each seat, if is_per_seat
    is_per_seat: bool
    month_limit_micros: int  # limit_micros; times the number of current seats if is_per_seat
    currency: Currency
    is_hard: bool
    webhook_url: str  # "": alerts by e-mail only
    version: int
    created_at: datetime
    month: date  # the current month
    spent_micros: int  # in the current month
    is_exhausted: bool  # a hard budget that is used up stops completions
    alerts: tuple[AlertView, ...]  # of this month, lowest threshold first


def read_page_of_budgets(
    *, actor: Actor, limit: int, cursor: str | None, now: datetime
) -> Page[BudgetView]:
    """Return a page of budgets, newest first. Up to ten queries.

    Raises Forbidden, InvalidValue.
    """
    actor.require(Permission.READ_BILLING)
    with tenant_scope(actor.tenant_id):
        budgets = Budget.objects.filter(tenant_id=actor.tenant_id)
        rows = fetch_page_rows(budgets, limit=limit, after=decode_cursor(cursor))
        page = build_page(
            rows, limit=limit, get_position=lambda row: PagePosition(row.created_at, row.id)
        )
        return Page(_to_views(actor.tenant_id, page.rows, now), page.next_cursor)


def find_budget(*, actor: Actor, budget_id: UUID, now: datetime) -> BudgetView:
    """Return one budget. Raises Forbidden, NotFound."""
    actor.require(Permission.READ_BILLING)
    with tenant_scope(actor.tenant_id):
        rows = list(Budget.objects.filter(tenant_id=actor.tenant_id, id=budget_id))
        if not rows:
            raise NotFound("This budget does not exist.")
        return _to_views(actor.tenant_id, rows, now)[0]


def read_spending_limits(tenant_id: TenantId, *, now: datetime) -> SpendingLimits:
    """Return the prices and hard budgets that gateways need.

    If there is no hard budget, the result is empty. Must run inside the tenant's scope.
    """
    hard_rows = list(Budget.objects.filter(tenant_id=tenant_id, is_hard=True).order_by("id"))
    if not hard_rows:
        return SpendingLimits()
    # Gateways count the spending in Redis, so it is left out. Only the current members are needed.
    month_spend = build_month_spend(tenant_id, {})
    return SpendingLimits(
        prices=read_price_book(tenant_id).list_prices_from(utc_day(now)),
        budgets=tuple(_to_hard_budget(budget, month_spend) for budget in hard_rows),
        budgets_of=_index_budgets_by_user(hard_rows, month_spend),
    )


def _to_hard_budget(budget: Budget, month_spend: TenantMonthSpend) -> HardBudget:
    return HardBudget(
        budget_id=str(budget.id),
        scope=BudgetScope(budget.scope),
        limit_micros=month_spend.limit_of_budget(budget),
    )


def _index_budgets_by_user(
    budgets: Sequence[Budget], month_spend: TenantMonthSpend
) -> dict[UserId, bytes]:
    """Return for each user the encoded indexes in `budgets` of the budgets that apply to the user.

    These are the user's own budget and the budgets of the user's teams, not the tenant's. The
    result is sorted by user, so that equal rows give equal bytes in the snapshot.
    """
    indexes: defaultdict[str, list[int]] = defaultdict(list)
    for index, budget in enumerate(budgets):
        for user in month_spend.users_of_budget(budget):
            indexes[user].append(index)
    return {UserId(user): encode_indexes(indexes[user]) for user in sorted(indexes)}


def _to_views(tenant_id: TenantId, rows: list[Budget], now: datetime) -> list[BudgetView]:
    today = utc_day(now)
    month = start_of_month(today)
    price = read_price_book(tenant_id).price_on(today)
    min_reservation_micros = read_min_reservation(tenant_id, price, on=today)
    month_spend, names = read_month_spend(tenant_id, month), _find_holder_names(tenant_id, rows)
    alerts = _find_alerts(tenant_id, [row.id for row in rows], month)
    currency = find_currency(tenant_id)
    if currency is None:
        assert not rows, "only tenants with a plan have budgets"
        return []
    return [
        BudgetView(
            id=row.id,
            scope=BudgetScope(row.scope),
            holder_id=row.holder_id,
            holder_name=names.get(row.holder_id),
            limit_micros=row.limit_micros,
            is_per_seat=row.is_per_seat,
            month_limit_micros=month_spend.limit_of_budget(row),
            currency=currency,
            is_hard=row.is_hard,
            webhook_url=row.webhook_url,
            version=row.version,
            created_at=row.created_at,
            month=month,
            spent_micros=month_spend.spent_of_budget(row),
            is_exhausted=is_exhausted(
                row, month_spend, min_reservation_micros=min_reservation_micros
            ),
            alerts=alerts[row.id],
        )
        for row in rows
    ]


def _find_holder_names(tenant_id: TenantId, rows: Iterable[Budget]) -> dict[UUID | None, str]:
    """Return the names of teams and the e-mail addresses of users by ID. One query."""
    ids = {row.holder_id for row in rows if row.holder_id is not None}
    teams = Team.objects.filter(tenant_id=tenant_id, id__in=ids).values_list("id", "name")
    users = User.objects.filter(id__in=ids).values_list("id", "email")
    return dict(teams.union(users, all=True))


def _find_alerts(
    tenant_id: TenantId, budget_ids: list[UUID], month: date
) -> dict[UUID, tuple[AlertView, ...]]:
    rows = BudgetAlert.objects.filter(tenant_id=tenant_id, budget_id__in=budget_ids, month=month)
    alerts = list(rows.order_by("percent"))
    deliveries: defaultdict[UUID, list[DeliveryView]] = defaultdict(list)
    delivery_rows = AlertDelivery.objects.filter(
        tenant_id=tenant_id, alert_id__in=[alert.id for alert in alerts]
    )
    for row in delivery_rows.order_by("channel", "address"):
        deliveries[row.alert_id].append(_to_delivery_view(row))
    views: defaultdict[UUID, tuple[AlertView, ...]] = defaultdict(tuple)
    for alert in alerts:
        views[alert.budget_id] += (_to_alert_view(alert, deliveries[alert.id]),)
    return views


def _to_alert_view(alert: BudgetAlert, deliveries: list[DeliveryView]) -> AlertView:
    return AlertView(
        percent=alert.percent,
        spent_micros=alert.spent_micros,
        limit_micros=alert.limit_micros,
        created_at=alert.created_at,
        deliveries=tuple(deliveries),
    )


def _to_delivery_view(row: AlertDelivery) -> DeliveryView:
    return DeliveryView(
        channel=row.channel,
        address=row.address,
        num_attempts=row.num_attempts,
        delivered_at=row.delivered_at,
        next_attempt_at=row.next_attempt_at,
        last_error=row.last_error,
    )


def find_webhook_secret(*, actor: Actor, budget_id: UUID, now: datetime) -> str:
    """Return the secret with which the receiver of a webhook verifies the sender.

    The read is recorded in the audit log. Raises Forbidden, NotFound.
    """
    actor.require(Permission.WRITE_BUDGETS)
    with tenant_scope(actor.tenant_id):
        if not Budget.objects.filter(tenant_id=actor.tenant_id, id=budget_id).exists():
            raise NotFound("This budget does not exist.")
        target = f"budget:{budget_id}"
        record_read(actor=actor, action="budget.webhook_secret_read", target=target, now=now)
    return derive_webhook_secret(actor.tenant_id, str(budget_id))
