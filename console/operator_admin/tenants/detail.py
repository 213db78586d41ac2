"""The page of a tenant for operators: they enter a reason first, then see and change its setup."""

from datetime import timedelta
from typing import Final
from uuid import UUID, uuid4

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_POST

from caret.contracts.snapshot import TenantStatus
from caret.foundation.ids import TenantId
from console.downloads.file_response import file_response
from console.operator_admin import session
from console.operator_admin.site import operator_required, render_operator_page
from console.operator_admin.step_up import check_code
from console.operator_admin.tenants import presenters
from console.operator_admin.tenants.changes import CHANGE_FORMS, FIELD_NAMES
from console.sign_in.current_member import client_address
from console.texts.error_messages import translate_error
from tenants.base.errors import DomainError, Forbidden, InvalidValue, NotFound
from tenants.billing.plans.queries import list_plans
from tenants.compliance.tenant_closing import find_closure
from tenants.fleet.operators.accounts import OperatorView
from tenants.fleet.operators.operations import build_operator_actor, require_tenant_reason
from tenants.fleet.operators.queries import find_in_directory, read_tenant_details
from tenants.identity import tenant_lifecycle
from tenants.security.authorization.actor import Actor

# Fields that the form for a code does not copy from the form of the change.
_FIELDS_NOT_REPEATED: Final = frozenset({"csrfmiddlewaretoken", "code"})


@require_GET
@operator_required
def tenant(request: HttpRequest, operator: OperatorView, tenant_id: UUID) -> HttpResponse:
    return _show_tenant(request, operator, TenantId(str(tenant_id)))


@require_POST
@operator_required
def give_reason(request: HttpRequest, operator: OperatorView, tenant_id: UUID) -> HttpResponse:
    target_id = TenantId(str(tenant_id))
    try:
        reason = require_tenant_reason(request.POST.get("reason", ""))
    except InvalidValue as error:
        return _ask_for_reason(request, target_id, translate_error(error))
    session.record_access_reason(request, target_id, reason)
    return redirect("operators:tenant", tenant_id)


@require_POST
@operator_required
def change(
    request: HttpRequest, operator: OperatorView, tenant_id: UUID, form_name: str
) -> HttpResponse:
    target_id = TenantId(str(tenant_id))
    if (change_form := CHANGE_FORMS.get(form_name)) is None:
        raise Http404
    if session.find_access_reason(request, target_id) is None:
        return _ask_for_reason(request, target_id)
    if (code_form := _code_form_if_required(request, operator, target_id, form_name)) is not None:
        return code_form
    try:
        actor = _operator_as_actor(request, operator, target_id)
        change_form.apply(request.POST, actor, timezone.now())
    except Forbidden as error:
        return _show_tenant(request, operator, target_id, translate_error(error), status=403)
    except DomainError as error:
        message = translate_error(error)
        return _show_tenant(request, operator, target_id, message, status=400, opened=form_name)
    return redirect(reverse("operators:tenant", args=[tenant_id]) + f"?done={form_name}")


@require_GET
@operator_required
def certificate(request: HttpRequest, operator: OperatorView, tenant_id: UUID) -> HttpResponse:
    """Return the deletion certificate as a file.

    No reason for access is needed, because the certificate contains no customer data.
    """
    try:
        row = find_in_directory(str(tenant_id))
    except NotFound as error:
        raise Http404 from error
    document = find_closure(tenant_id=row.tenant_id).certificate
    if document is None:
        raise Http404
    name = f"deletion-certificate-{row.slug}.json"
    return file_response(document, name=name, content_type="application/json")


@require_POST
@operator_required
def invite_owner(request: HttpRequest, operator: OperatorView, tenant_id: UUID) -> HttpResponse:
    """Invite an owner, and show the link of the invitation once."""
    target_id = TenantId(str(tenant_id))
    if session.find_access_reason(request, target_id) is None:
        return _ask_for_reason(request, target_id)
    if not operator.can_change:
        raise PermissionDenied
    if (code_error := check_code(request, operator)) is not None:
        return _show_tenant(
            request, operator, target_id, code_error, status=400, opened="invite_owner"
        )
    actor = _operator_as_actor(request, operator, target_id)
    email = request.POST.get("email", "")
    try:
        invitation = tenant_lifecycle.invite_owner(actor=actor, email=email, now=timezone.now())
    except DomainError as error:
        message = translate_error(error)
        return _show_tenant(
            request, operator, target_id, message, status=400, opened="invite_owner"
        )
    context = {
        "title": gettext("Owner invited"),
        "invitation": invitation,
        "tenant_id": target_id,
    }
    return render_operator_page(request, "tenants/owner_invitation.html", context, status=201)


def _code_form_if_required(
    request: HttpRequest, operator: OperatorView, tenant_id: TenantId, form_name: str
) -> HttpResponse | None:
    """Return a page that asks for an authenticator code and repeats the values of the form.

    Return None if no code is needed, or if the code is right. Also return None if the change will
    be refused anyway: the operator may not make changes, or gave no reason for the change.
    """
    if not (operator.can_change and request.POST.get("reason", "").strip()):
        return None
    code_error = check_code(request, operator)
    if code_error is None:
        return None
    form_values = [
        (name, text)
        for name, texts in request.POST.lists()
        for text in texts
        if name not in _FIELDS_NOT_REPEATED
    ]
    row = find_in_directory(tenant_id)
    has_code = "code" in request.POST
    context = {
        "title": row.name,
        "tenant": row,
        "form_name": form_name,
        "confirmation": CHANGE_FORMS[form_name].confirmation % {"tenant": row.name},
        "shown_values": [
            (FIELD_NAMES[name], text) for name, text in form_values if name in FIELD_NAMES
        ],
        "form_values": form_values,
        "code_error": code_error if has_code else "",
    }
    return render_operator_page(
        request, "tenants/confirm_change.html", context, status=400 if has_code else 200
    )


def _show_tenant(
    request: HttpRequest,
    operator: OperatorView,
    tenant_id: TenantId,
    error_message: str | None = None,
    *,
    status: int = 200,
    opened: str = "",
) -> HttpResponse:
    """Return the tenant's page. `opened` is the name of the form that is open; "": none."""
    reason = session.find_access_reason(request, tenant_id)
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
        "error": error_message,
        "opened": opened,
        "done": _done_text(request.GET.get("done", "")),
        "members": presenters.build_members_table(details),
        "keys": presenters.build_keys_table(details),
        "num_hidden_keys": details.num_keys - len(details.keys),
        "versions": presenters.build_versions_table(details),
        "plans": [plan.slug for plan in list_plans()],
        "status_changes": presenters.list_status_changes(details.tenant.status),
        "can_invite": details.tenant.status is TenantStatus.ACTIVE,
        "can_appoint": details.tenant.status is not TenantStatus.CLOSED,
        "default_grace_days": settings.CLOSING_GRACE_DAYS,
        "needs_code": not session.is_confirmed(request),
        "tomorrow": (timezone.now() + timedelta(days=1)).date().isoformat(),
    }
    return render_operator_page(request, "tenants/detail.html", context, status=status)


def _done_text(form_name: str) -> Promise | None:
    return CHANGE_FORMS[form_name].done if form_name in CHANGE_FORMS else None


def _ask_for_reason(request: HttpRequest, tenant_id: TenantId, message: str = "") -> HttpResponse:
    try:
        row = find_in_directory(tenant_id)
    except NotFound as error:
        raise Http404 from error
    context = {"title": row.name, "tenant": row, "message": message}
    return render_operator_page(
        request, "tenants/access_reason.html", context, status=400 if message else 200
    )


def _operator_as_actor(request: HttpRequest, operator: OperatorView, tenant_id: TenantId) -> Actor:
    return build_operator_actor(
        operator,
        tenant_id=tenant_id,
        address=client_address(request),
        request_id=str(uuid4()),  # the same in all audit entries of the request
    )
