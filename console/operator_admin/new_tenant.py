"""The form that creates a tenant, and the link of its first owner's invitation, shown once."""

from typing import Final
from uuid import uuid4

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from console.operator_admin import session
from console.operator_admin.site import operator_required, page
from console.operator_admin.step_up import check_code
from console.sign_in.current_member import client_address
from console.texts.error_messages import translate_error
from tenants.base.errors import DomainError, InvalidValue
from tenants.billing.plans.queries import list_plans
from tenants.fleet.operators.accounts import OperatorView
from tenants.fleet.operators.operations import operator_actor
from tenants.identity.tenant_lifecycle import NewTenant, OnboardedTenant, onboard_tenant

_BAD: Final = 400
_CONFLICT: Final = 409
_TEXTS: Final = ("slug", "name", "owner_email", "region")


@never_cache
@require_http_methods(["GET", "POST"])
@operator_required
def new_tenant(request: HttpRequest, operator: OperatorView) -> HttpResponse:
    if not operator.can_change:
        raise PermissionDenied
    if request.method == "GET":
        return _show_form(request, {})
    if (wrong := check_code(request, operator)) is not None:
        return _show_form(request, {"code": wrong}, status=_BAD)
    try:
        created = _create_tenant(request, operator)
    except InvalidValue as error:
        return _show_form(request, {error.field: translate_error(error)}, status=_BAD)
    except DomainError as error:
        return _show_form(request, {"": translate_error(error)}, status=_CONFLICT)
    context = {
        "title": gettext("Tenant %(slug)s created") % {"slug": created.slug},
        "tenant_id": created.tenant_id,
        "invitation": created.owner_invitation,
    }
    return page(request, "owner_invitation.html", context, status=201)


def _create_tenant(request: HttpRequest, operator: OperatorView) -> OnboardedTenant:
    """Create the tenant that the form describes. Raises DomainError."""
    texts = {name: request.POST.get(name, "").strip() for name in _TEXTS}
    request_id = str(uuid4())
    return onboard_tenant(
        new=NewTenant(
            slug=texts["slug"],
            name=texts["name"],
            owner_email=texts["owner_email"],
            plan=request.POST.get("plan") or None,
            region=texts["region"] or None,
        ),
        actor_for=lambda tenant_id: operator_actor(
            operator, tenant_id=tenant_id, address=client_address(request), request_id=request_id
        ),
        now=timezone.now(),
    )


def _show_form(request: HttpRequest, wrong: dict[str, str], *, status: int = 200) -> HttpResponse:
    chosen = request.POST.get("plan", "")
    context = {
        "title": gettext("New tenant"),
        "entered": {name: request.POST.get(name, "") for name in _TEXTS},
        "plans": [(plan.slug, plan.name, plan.slug == chosen) for plan in list_plans()],
        "default_region": settings.REGION,
        "needs_code": not session.is_confirmed(request),
        "message": wrong.get(""),
        "wrong": wrong,
    }
    return page(request, "new_tenant.html", context, status=status)
