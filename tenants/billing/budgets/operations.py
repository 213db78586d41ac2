"""Operations on budgets. Gateways enforce a hard budget within a second."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django.db import IntegrityError, transaction

from caret.contracts.pricing import BudgetScope
from caret.foundation.ids import UserId, uuid7
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Conflict, InvalidValue, NotFound, VersionConflict
from tenants.base.money import MAX_MICROS
from tenants.base.permissions import Permission
from tenants.billing.budgets.limits import require_budget_limit_per_user
from tenants.billing.budgets.queries import BudgetView, find_budget
from tenants.billing.budgets.redis_sync import try_sync_spend_to_redis
from tenants.billing.budgets.webhook import check_webhook_address
from tenants.models import AuditEntry, BillingState, Budget, Membership, Team
from tenants.policy.snapshot_version import mark_snapshot_stale
from tenants.security.audit.operations import ChangeFields, record_change
from tenants.security.authorization.actor import Actor

CHANGED: Final = "budget.changed"  # the action in the audit log
MAX_BUDGETS: Final = 1_000  # per tenant: gateways keep the hard ones in memory


@dataclass(frozen=True, slots=True)
class BudgetTerms:
    limit_micros: int  # for a UTC month, in the currency of the ledger
    is_hard: bool = True  # False: alerts only
    webhook_url: str = ""  # "": alerts by e-mail only
    is_per_seat: bool = False  # True: the limit of the month is limit_micros for each seat


@dataclass(frozen=True, slots=True)
class BudgetTarget:
    """The holder of a budget: the whole tenant, a team or a user."""

    scope: BudgetScope
    id: UUID | None = None  # of the team or the user; None: the whole tenant


def create_budget(
    *, actor: Actor, holder: BudgetTarget, terms: BudgetTerms, now: datetime
) -> BudgetView:
    """Create a budget. Raises Forbidden, InvalidValue, Conflict."""
    actor.require(Permission.WRITE_BUDGETS)
    _check_terms(terms)
    with tenant_scope(actor.tenant_id):
        # This is registered first, so it runs before the snapshot is published. So when gateways
        # begin to enforce the budget, Redis has the amount that was already spent this month.
        transaction.on_commit(
            lambda: try_sync_spend_to_redis(actor.tenant_id, now=now), robust=True
        )
        mark_snapshot_stale(tenant_id=actor.tenant_id)  # locks the tenant
        if not BillingState.objects.filter(tenant_id=actor.tenant_id).exists():
            raise Conflict("The tenant has no plan, so usage has no price.")
        if Budget.objects.filter(tenant_id=actor.tenant_id).count() >= MAX_BUDGETS:
            raise Conflict("You already have {most} budgets, which is the limit.", most=MAX_BUDGETS)
        _check_holder(actor, holder)
        budget_id = uuid7()
        try:
            with transaction.atomic():
                Budget.objects.create(
                    tenant_id=actor.tenant_id,
                    id=budget_id,
                    scope=holder.scope,
                    holder_id=holder.id,
                    limit_micros=terms.limit_micros,
                    is_per_seat=terms.is_per_seat,
                    is_hard=terms.is_hard,
                    webhook_url=terms.webhook_url,
                    created_at=now,
                )
        except IntegrityError as error:
            raise Conflict("This budget already exists.") from error
        require_budget_limit_per_user(actor.tenant_id)
        _record_change(
            actor, "budget.created", budget_id, (None, _to_change_fields(terms, holder)), now
        )
        return find_budget(actor=actor, budget_id=budget_id, now=now)


def change_budget(
    *, actor: Actor, budget_id: UUID, terms: BudgetTerms, version: int, now: datetime
) -> BudgetView:
    """Change a budget. `version` is the version that the actor has seen.

    Raises Forbidden, InvalidValue, NotFound, Conflict.
    """
    actor.require(Permission.WRITE_BUDGETS)
    _check_terms(terms)
    with tenant_scope(actor.tenant_id):
        # Registered before mark_snapshot_stale is called, as in create_budget: the budget may
        # become hard, and may already be used up.
        transaction.on_commit(
            lambda: try_sync_spend_to_redis(actor.tenant_id, now=now), robust=True
        )
        mark_snapshot_stale(tenant_id=actor.tenant_id)
        budget = _find_budget_row(actor, budget_id, version)
        Budget.objects.filter(tenant_id=actor.tenant_id, id=budget_id).update(
            limit_micros=terms.limit_micros,
            is_per_seat=terms.is_per_seat,
            is_hard=terms.is_hard,
            webhook_url=terms.webhook_url,
            version=version + 1,
        )
        require_budget_limit_per_user(actor.tenant_id)
        holder = BudgetTarget(BudgetScope(budget.scope), budget.holder_id)
        change = (_to_change_fields(_to_terms(budget), holder), _to_change_fields(terms, holder))
        _record_change(actor, CHANGED, budget_id, change, now)
        return find_budget(actor=actor, budget_id=budget_id, now=now)


def delete_budget(*, actor: Actor, budget_id: UUID, version: int, now: datetime) -> None:
    """Delete a budget. Raises Forbidden, NotFound, Conflict."""
    actor.require(Permission.WRITE_BUDGETS)
    with tenant_scope(actor.tenant_id):
        mark_snapshot_stale(tenant_id=actor.tenant_id)
        budget = _find_budget_row(actor, budget_id, version)
        Budget.objects.filter(tenant_id=actor.tenant_id, id=budget_id).delete()
        old_fields = _to_change_fields(
            _to_terms(budget), BudgetTarget(BudgetScope(budget.scope), budget.holder_id)
        )
        _record_change(actor, "budget.deleted", budget_id, (old_fields, None), now)


def _find_budget_row(actor: Actor, budget_id: UUID, version: int) -> Budget:
    """Return the budget if it has this version. Raises NotFound, Conflict."""
    budget = Budget.objects.filter(tenant_id=actor.tenant_id, id=budget_id).first()
    if budget is None:
        raise NotFound("This budget does not exist.")
    if budget.version != version:
        raise VersionConflict(current_version=budget.version, expected_version=version)
    return budget


def _check_terms(terms: BudgetTerms) -> None:
    """Check limit and webhook address. Raises InvalidValue."""
    if not 1 <= terms.limit_micros <= MAX_MICROS:
        raise InvalidValue("limit_micros", "Enter 1 to {most} micros.", most=MAX_MICROS)
    if terms.webhook_url:
        check_webhook_address(terms.webhook_url)


def _check_holder(actor: Actor, holder: BudgetTarget) -> None:
    """Check that the team or user belongs to the tenant. Raises InvalidValue."""
    if (holder.id is None) != (holder.scope is BudgetScope.TENANT):
        raise InvalidValue(
            "scope",
            "A budget for the whole tenant must not name a team or user. Any other budget "
            "must name exactly one.",
        )
    if holder.id is None:
        return
    if holder.scope is BudgetScope.TEAM:
        if not Team.objects.filter(tenant_id=actor.tenant_id, id=holder.id).exists():
            raise InvalidValue("team_id", "This team does not exist.")
    else:
        members = Membership.objects.filter(tenant_id=actor.tenant_id, ended_at__isnull=True)
        if not members.filter(user_id=UserId(str(holder.id))).exists():
            raise InvalidValue("user_id", "This member does not exist.")


def _to_terms(budget: Budget) -> BudgetTerms:
    return BudgetTerms(budget.limit_micros, budget.is_hard, budget.webhook_url, budget.is_per_seat)


def _to_change_fields(terms: BudgetTerms, holder: BudgetTarget) -> ChangeFields:
    """Return a budget as an audit entry contains it: 1 is true and 0 is false."""
    return {
        "scope": holder.scope.value,
        "holder_id": None if holder.id is None else str(holder.id),
        "limit_micros": terms.limit_micros,
        "is_per_seat": int(terms.is_per_seat),
        "is_hard": int(terms.is_hard),
        "webhook_url": terms.webhook_url,
    }


def _record_change(
    actor: Actor,
    action: str,
    budget_id: UUID,
    change: tuple[ChangeFields | None, ChangeFields | None],  # before and after
    now: datetime,
) -> None:
    target = format_audit_target(budget_id)
    record_change(actor=actor, action=action, target=target, change=change, now=now)


def format_audit_target(budget_id: UUID) -> str:
    """Return the target of audit entries about a budget."""
    return f"budget:{budget_id}"


def revert_last_change(*, actor: Actor, budget_id: UUID, version: int, now: datetime) -> BudgetView:
    """Undo the change that made `version`. Raises Conflict if there was a later change.

    Raises Forbidden, InvalidValue, NotFound, Conflict.
    """
    actor.require(Permission.WRITE_BUDGETS)
    # This reads without a lock: change_budget raises Conflict if the budget changes meanwhile.
    terms = _read_previous_terms(actor, budget_id)
    return change_budget(actor=actor, budget_id=budget_id, terms=terms, version=version, now=now)


def _read_previous_terms(actor: Actor, budget_id: UUID) -> BudgetTerms:
    """Return the terms before the last change, from the audit log. Raises NotFound."""
    with tenant_scope(actor.tenant_id):
        entries = AuditEntry.objects.filter(
            tenant_id=actor.tenant_id, target=format_audit_target(budget_id), action=CHANGED
        )
        last_change = entries.order_by("-sequence").first()
    if last_change is None or last_change.before is None:
        raise NotFound("There is nothing to undo.")
    before = last_change.before
    return BudgetTerms(
        before["limit_micros"],
        bool(before["is_hard"]),
        before["webhook_url"],
        bool(before.get("is_per_seat", 0)),  # audit entries of earlier releases lack the field
    )
