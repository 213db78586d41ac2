"""Undo of the last change of a budget. The terms before it are in the audit log."""

from datetime import datetime
from uuid import UUID

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import NotFound
from tenants.base.permissions import Permission
from tenants.billing.budgets.operations import CHANGED, BudgetTerms, change_budget, target_of
from tenants.billing.budgets.queries import BudgetView
from tenants.models import AuditEntry
from tenants.security.authorization.actor import Actor


def revert_last_change(*, actor: Actor, budget_id: UUID, version: int, now: datetime) -> BudgetView:
    """Undo the change that made `version`, if it is still in force.

    Raises Forbidden, NotFound, Conflict.
    """
    actor.require(Permission.WRITE_BUDGETS)
    terms = _terms_before_the_last(actor, budget_id)
    # Read without a lock: change_budget raises if the budget has changed meanwhile.
    return change_budget(actor=actor, budget_id=budget_id, terms=terms, version=version, now=now)


def _terms_before_the_last(actor: Actor, budget_id: UUID) -> BudgetTerms:
    with tenant_scope(actor.tenant_id):
        entries = AuditEntry.objects.filter(
            tenant_id=actor.tenant_id, target=target_of(budget_id), action=CHANGED
        )
        found = entries.order_by("-sequence").first()
    if found is None or found.before is None:
        raise NotFound("There is nothing to undo.")
    before = found.before
    return BudgetTerms(before["limit_micros"], bool(before["is_hard"]), before["webhook_url"])
