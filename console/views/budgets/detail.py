"""The pages of one budget: spending, alerts, terms, webhook secret and deletion."""

from typing import Any, Final
from uuid import UUID

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from console.layout.htmx import render_page
from console.layout.permission_required import permission_required
from console.layout.step_up import step_up_required
from console.layout.toasts import toast
from console.sign_in.current_member import CurrentMember, member_required
from console.texts.error_messages import translate_error
from console.views.budgets.forms import FIELDS, ChangeForm, build_initial_values
from console.views.budgets.presenters import list_thresholds, present_budget
from tenants.base.errors import Conflict, InvalidValue
from tenants.base.permissions import Permission
from tenants.billing.budgets.operations import (
    BudgetTarget,
    change_budget,
    delete_budget,
    revert_last_change,
)
from tenants.billing.budgets.queries import BudgetView, find_budget, find_webhook_secret

_PAGE: Final = "console/budgets/detail.html"


@require_GET
@member_required
@permission_required(Permission.READ_BILLING)
def budget(request: HttpRequest, member: CurrentMember, budget_id: UUID) -> HttpResponse:
    return _render_page(request, member, budget_id)


@require_POST
@member_required
@permission_required(Permission.WRITE_BUDGETS)
def change(request: HttpRequest, member: CurrentMember, budget_id: UUID) -> HttpResponse:
    """Change the terms. If users would lose completions, first show how many, for confirmation."""
    form = ChangeForm(request.POST)
    if not form.is_valid():
        return _render_page(request, member, budget_id, form=form, status=400)
    current = find_budget(actor=member.actor, budget_id=budget_id, now=timezone.now())
    holder = BudgetTarget(current.scope, current.holder_id)
    effect = form.find_unconfirmed_effect(member.actor, holder)
    if effect is not None:
        return _render_page(request, member, budget_id, form=form, effect=effect)
    changed_budget = _change_budget(member, budget_id, form)
    if changed_budget is None:
        return _render_page(request, member, budget_id, form=form, status=400)
    toast(
        request,
        gettext("Budget saved. It applies immediately."),
        undo_url=reverse("console:budgets-undo", args=[budget_id, changed_budget.version]),
    )
    return redirect("console:budgets-budget", budget_id)


@require_POST
@member_required
@permission_required(Permission.WRITE_BUDGETS)
def undo(
    request: HttpRequest, member: CurrentMember, budget_id: UUID, version: int
) -> HttpResponse:
    try:
        revert_last_change(
            actor=member.actor, budget_id=budget_id, version=version, now=timezone.now()
        )
    except Conflict:
        messages.error(request, gettext("Not undone: someone has changed the budget since."))
    except InvalidValue:  # for example, the operator no longer allows private webhook addresses
        messages.error(request, gettext("Not undone: the previous values are no longer valid."))
    else:
        toast(request, gettext("Change undone. The previous budget applies immediately."))
    return redirect("console:budgets-budget", budget_id)


@require_POST
@member_required
@permission_required(Permission.WRITE_BUDGETS)
def secret(request: HttpRequest, member: CurrentMember, budget_id: UUID) -> HttpResponse:
    """Show the webhook secret. This is a POST because it adds an entry to the audit log."""
    webhook_secret = find_webhook_secret(
        actor=member.actor, budget_id=budget_id, now=timezone.now()
    )
    return _render_page(request, member, budget_id, secret=webhook_secret)


@require_http_methods(["GET", "POST"])
@member_required
@permission_required(Permission.WRITE_BUDGETS)
@step_up_required
def delete(request: HttpRequest, member: CurrentMember, budget_id: UUID) -> HttpResponse:
    current = find_budget(actor=member.actor, budget_id=budget_id, now=timezone.now())
    if request.method == "GET":
        context = {"bar": present_budget(current, current.currency), "budget": current}
        return render_page(request, member, "console/budgets/delete.html", context)
    try:
        delete_budget(
            actor=member.actor,
            budget_id=budget_id,
            version=_read_version(request),
            now=timezone.now(),
        )
    except Conflict as error:
        messages.warning(request, translate_error(error))
        return redirect("console:budgets-budget", budget_id)
    toast(request, gettext("Budget deleted."))
    return redirect("console:budgets")


def _read_version(request: HttpRequest) -> int:
    """Return the version that the user has seen.

    Return 0 for invalid input. No budget has version 0, so the deletion is then rejected.
    """
    try:
        version: int = forms.IntegerField().clean(request.POST.get("version", ""))
    except ValidationError:
        return 0
    return version


def _change_budget(member: CurrentMember, budget_id: UUID, form: ChangeForm) -> BudgetView | None:
    """Change the budget. Return None, with an error in the form, if the change is rejected."""
    try:
        return change_budget(
            actor=member.actor,
            budget_id=budget_id,
            terms=form.to_terms(),
            version=form.cleaned_data["version"],
            now=timezone.now(),
        )
    except InvalidValue as error:
        field = FIELDS.get(error.field, error.field)
        form.add_error(field if field in form.fields else None, translate_error(error))
    except Conflict:
        form.add_error(
            None,
            gettext(
                "Someone changed this budget while you were editing. Check the "
                "current values, then submit your change again."
            ),
        )
    return None


def _render_page(
    request: HttpRequest,
    member: CurrentMember,
    budget_id: UUID,
    *,
    form: ChangeForm | None = None,
    status: int = 200,
    **extra_context: object,
) -> HttpResponse:
    current = find_budget(actor=member.actor, budget_id=budget_id, now=timezone.now())
    context: dict[str, Any] = {
        "budget": current,
        "currency": current.currency,
        "bar": present_budget(current, current.currency),
        "alerts": list_thresholds(current),
        "may_write": member.actor.has_permission(Permission.WRITE_BUDGETS),
        "form": form or ChangeForm(initial=build_initial_values(current)),
    }
    return render_page(request, member, _PAGE, context | extra_context, status=status)
