"""One tenant for operators: they give a reason first, then see its setup and can change it."""

from datetime import date, datetime, timedelta
from types import MappingProxyType
from typing import Final
from uuid import UUID, uuid4

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET, require_POST

from caret.contracts.snapshot import TenantStatus
from caret.foundation.ids import TenantId
from console.operator_admin import session
from console.operator_admin.site import operator_required, page
from console.operator_admin.step_up import check_code
from console.operator_admin.tenants import presenters
from console.sign_in.current_member import client_address
from console.texts.error_messages import translate_error
from tenants.base.errors import DomainError, Forbidden, InvalidValue, NotFound
from tenants.billing.plans.queries import list_plans
from tenants.fleet.operators.accounts import OperatorView
from tenants.fleet.operators.operations import (
    change_limits,
    change_name,
    change_plan,
    change_region,
    change_status,
    operator_actor,
    required_reason,
)
from tenants.fleet.operators.queries import find_in_directory, read_tenant_details
from tenants.fleet.snapshots.platform_limits import PlatformLimits
from tenants.identity import tenant_lifecycle
from tenants.security.authorization.actor import Actor

_DONE: Final = MappingProxyType(
    {
        "name": _("Name changed."),
        "status": _("Status changed. Gateways apply it within a second."),
        "plan": _("Plan changed."),
        "region": _("Region changed."),
        "limits": _("Limits changed. Gateways apply them within a second."),
    }
)
_QUESTIONS: Final = MappingProxyType(
    {
        "name": _("Change the name of %(tenant)s?"),
        "status": _("Change the status of %(tenant)s?"),
        "plan": _("Change the plan of %(tenant)s?"),
        "region": _("Change the region of %(tenant)s?"),
        "limits": _("Change the limits of %(tenant)s?"),
    }
)
_FIELDS: Final = MappingProxyType(
    {
        "name": _("Name"),
        "status": _("Status"),
        "plan": _("Plan"),
        "starts_on": _("From"),
        "region": _("Region"),
        "max_concurrent_completions": _("Concurrent completions per gateway"),
        "max_requests_per_minute": _("Requests per minute, all gateways"),
        "slug": _("Slug"),
        "reason": _("Your reason"),
    }
)
_NOT_REPEATED: Final = frozenset({"csrfmiddlewaretoken", "code"})


@require_GET
@operator_required
def tenant(request: HttpRequest, operator: OperatorView, tenant_id: UUID) -> HttpResponse:
    return _show_tenant(request, operator, TenantId(str(tenant_id)))


@require_POST
@operator_required
def give_reason(request: HttpRequest, operator: OperatorView, tenant_id: UUID) -> HttpResponse:
    tenant = TenantId(str(tenant_id))
    try:
        reason = required_reason(request.POST.get("reason", ""))
    except InvalidValue as error:
        return _ask_for_reason(request, tenant, translate_error(error))
    session.record_access_reason(request, tenant, reason)
    return redirect("operators:tenant", tenant_id)


@require_POST
@operator_required
def change(
    request: HttpRequest, operator: OperatorView, tenant_id: UUID, field: str
) -> HttpResponse:
    tenant = TenantId(str(tenant_id))
    if field not in _DONE:
        raise Http404
    if session.access_reason(request, tenant) is None:
        return _ask_for_reason(request, tenant)
    if (code_form := _code_form_if_required(request, operator, tenant, field)) is not None:
        return code_form
    try:
        _apply_change(field, request, _operator_as_actor(request, operator, tenant))
    except Forbidden as error:
        return _show_tenant(request, operator, tenant, translate_error(error), status=403)
    except DomainError as error:
        return _show_tenant(request, operator, tenant, translate_error(error), status=400)
    return redirect(reverse("operators:tenant", args=[tenant_id]) + f"?done={field}")


@require_POST
@operator_required
def invite_owner(request: HttpRequest, operator: OperatorView, tenant_id: UUID) -> HttpResponse:
    """Invite an owner, and show the link once."""
    tenant = TenantId(str(tenant_id))
    if session.access_reason(request, tenant) is None:
        return _ask_for_reason(request, tenant)
    if not operator.can_change:
        raise PermissionDenied
    if (code_error := check_code(request, operator)) is not None:
        return _show_tenant(request, operator, tenant, code_error, status=400)
    actor = _operator_as_actor(request, operator, tenant)
    email = request.POST.get("email", "")
    try:
        invitation = tenant_lifecycle.invite_owner(actor=actor, email=email, now=timezone.now())
    except DomainError as error:
        return _show_tenant(request, operator, tenant, translate_error(error), status=400)
    context = {
        "title": gettext("Owner invited"),
        "invitation": invitation,
        "tenant_id": tenant,
    }
    return page(request, "tenants/owner_invitation.html", context, status=201)


def _code_form_if_required(
    request: HttpRequest, operator: OperatorView, tenant_id: TenantId, field: str
) -> HttpResponse | None:
    """Return a form for a code of the operator's authenticator app, with the entered values.

    Return None if the operator has confirmed already, or if the change would be refused anyway.
    """
    if not (operator.can_change and request.POST.get("reason", "").strip()):
        return None
    code_error = check_code(request, operator)
    if code_error is None:
        return None
    form_values = [(name, text) for name, text in request.POST.items() if name not in _NOT_REPEATED]
    row = find_in_directory(tenant_id)
    is_tried = "code" in request.POST
    context = {
        "title": row.name,
        "tenant": row,
        "field": field,
        "question": _QUESTIONS[field] % {"tenant": row.name},
        "shown_values": [(_FIELDS[name], text) for name, text in form_values if name in _FIELDS],
        "form_values": form_values,
        "code_error": code_error if is_tried else "",
    }
    return page(request, "tenants/confirm_change.html", context, status=400 if is_tried else 200)


def _apply_change(field: str, request: HttpRequest, actor: Actor) -> None:
    """Apply the change. Raises DomainError."""
    form, now = request.POST, timezone.now()
    reason = form.get("reason", "")
    if field == "name":
        change_name(actor=actor, name=form.get("name", ""), reason=reason, now=now)
    elif field == "status":
        _change_status(form, actor, now)
    elif field == "plan":
        starts_on = _read_date(form.get("starts_on", ""))
        change_plan(
            actor=actor, plan=form.get("plan", ""), starts_on=starts_on, reason=reason, now=now
        )
    elif field == "region":
        change_region(actor=actor, region=form.get("region", ""), reason=reason, now=now)
    else:
        ceiling = PlatformLimits(
            _read_count("max_concurrent_completions", request),
            _read_count("max_requests_per_minute", request),
        )
        change_limits(actor=actor, ceiling=ceiling, reason=reason, now=now)


def _change_status(form: QueryDict, actor: Actor, now: datetime) -> None:
    """Apply the change. Raises DomainError."""
    status = _read_status(form.get("status", ""))
    slug = find_in_directory(actor.tenant_id).slug
    if status is TenantStatus.CLOSED and form.get("slug", "").strip() != slug:
        raise InvalidValue("slug", "To close the tenant, enter its slug: {slug}.", slug=slug)
    change_status(actor=actor, status=status, reason=form.get("reason", ""), now=now)


def _show_tenant(
    request: HttpRequest,
    operator: OperatorView,
    tenant_id: TenantId,
    error: str | None = None,
    *,
    status: int = 200,
) -> HttpResponse:
    reason = session.access_reason(request, tenant_id)
    if reason is None:
        return _ask_for_reason(request, tenant_id)
    try:
        actor = _operator_as_actor(request, operator, tenant_id)
        details = read_tenant_details(actor=actor, reason=reason, now=timezone.now())
    except NotFound as error:
        raise Http404 from error
    context = {
        "title": details.tenant.name,
        "details": details,
        "reason": reason,
        "error": error,
        "done": _DONE.get(request.GET.get("done", "")),
        "members": presenters.build_members_table(details),
        "keys": presenters.build_keys_table(details),
        "num_hidden_keys": details.num_keys - len(details.keys),
        "versions": presenters.build_versions_table(details),
        "plans": [plan.slug for plan in list_plans()],
        "status_changes": presenters.list_status_changes(details.tenant.status),
        "can_invite": details.tenant.status is TenantStatus.ACTIVE,
        "needs_code": not session.is_confirmed(request),
        "tomorrow": (timezone.now() + timedelta(days=1)).date().isoformat(),
    }
    return page(request, "tenants/detail.html", context, status=status)


def _ask_for_reason(request: HttpRequest, tenant_id: TenantId, message: str = "") -> HttpResponse:
    try:
        row = find_in_directory(tenant_id)
    except NotFound as error:
        raise Http404 from error
    context = {"title": row.name, "tenant": row, "message": message}
    return page(request, "tenants/access_reason.html", context, status=400 if message else 200)


def _operator_as_actor(request: HttpRequest, operator: OperatorView, tenant_id: TenantId) -> Actor:
    return operator_actor(
        operator,
        tenant_id=tenant_id,
        address=client_address(request),
        request_id=str(uuid4()),
    )


def _read_status(text: str) -> TenantStatus:
    """Return the status. Raises InvalidValue."""
    try:
        return TenantStatus(text)
    except ValueError as error:
        raise InvalidValue("status", "Choose one of these statuses.") from error


def _read_date(text: str) -> date:
    """Return the date. Raises InvalidValue."""
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise InvalidValue("starts_on", "Enter a date such as 2026-01-31.") from error


def _read_count(name: str, request: HttpRequest) -> int | None:
    """Return the limit; None, no limit, if empty. Raises InvalidValue."""
    text = request.POST.get(name, "").strip()
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise InvalidValue(name, "Enter a whole number, or leave empty for no limit.")
    return int(text)
