"""The directory of tenants, and the form that creates a tenant and invites its first owner."""

from typing import Final
from uuid import uuid4

from django import forms
from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, QueryDict
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods

from console.layout.lists.list_page import CsvFile, ListPage
from console.layout.lists.pagination import wants_csv
from console.operator_admin import session
from console.operator_admin.site import operator_required, render_operator_page
from console.operator_admin.step_up import check_code
from console.operator_admin.tenants.changes import read_optional_date
from console.operator_admin.tenants.presenters import build_pool_choices
from console.sign_in.current_member import client_address
from console.texts.error_messages import translate_error
from tenants.base.errors import DomainError, InvalidValue
from tenants.billing.plans.queries import list_plans
from tenants.fleet.operators.accounts import OperatorView
from tenants.fleet.operators.operations import build_operator_actor
from tenants.fleet.operators.queries import list_directory
from tenants.fleet.pools.assignments import onboard_in_pools
from tenants.identity.tenant_lifecycle import NewTenant, OnboardedTenant

_BAD_REQUEST: Final = 400
_CONFLICT: Final = 409
_TEXT_FIELDS: Final = ("slug", "name", "owner_email", "region", "trial_ends_on")


class _DirectoryForm(forms.Form):
    search = forms.CharField(required=False, max_length=63)  # the beginning of a slug


_DIRECTORY: Final = ListPage(
    template="operators/tenants/list.html",
    query=lambda query: list_directory(
        search=query.filters.get("search", "").lower(), limit=query.limit, cursor=query.cursor
    ),
    page_rows=50,
    form=_DirectoryForm,
    csv=CsvFile(
        "tenants",
        {
            "tenant": lambda row: row.slug,
            "name": lambda row: row.name,
            "status": lambda row: row.status,
            "region": lambda row: row.region,
            "created_at": lambda row: row.created_at,
            "id": lambda row: row.tenant_id,
        },
    ),
    shows_errors=True,
)


@require_GET
@operator_required
def tenants(request: HttpRequest, operator: OperatorView) -> HttpResponse:
    if wants_csv(request):
        return _DIRECTORY.file(request, None)
    context = _DIRECTORY.page_context(request, None)
    context |= {
        "title": gettext("Tenants"),
        "message": context.get("error"),
    }
    status = _BAD_REQUEST if "error" in context else 200
    return render_operator_page(request, "tenants/list.html", context, status=status)


@never_cache
@require_http_methods(["GET", "POST"])
@operator_required
def new_tenant(request: HttpRequest, operator: OperatorView) -> HttpResponse:
    if not operator.can_change:
        raise PermissionDenied
    if request.method == "GET":
        return _show_form(request, {})
    if (error_message := check_code(request, operator)) is not None:
        return _show_form(request, {"code": error_message}, status=_BAD_REQUEST)
    try:
        tenant = _create_tenant(request, operator)
    except InvalidValue as error:
        return _show_form(request, {error.field: translate_error(error)}, status=_BAD_REQUEST)
    except DomainError as error:
        return _show_form(request, {"": translate_error(error)}, status=_CONFLICT)
    context = {
        "title": gettext("Tenant %(slug)s created") % {"slug": tenant.slug},
        "tenant_id": tenant.tenant_id,
        "invitation": tenant.owner_invitation,
    }
    return render_operator_page(request, "tenants/owner_invitation.html", context, status=201)


def _create_tenant(request: HttpRequest, operator: OperatorView) -> OnboardedTenant:
    """Create the tenant that the form describes. Raises DomainError."""
    fields = {name: request.POST.get(name, "").strip() for name in _TEXT_FIELDS}
    request_id = str(uuid4())
    return onboard_in_pools(
        new=NewTenant(
            slug=fields["slug"],
            name=fields["name"],
            owner_email=fields["owner_email"],
            plan=request.POST.get("plan") or None,
            region=fields["region"] or None,
            trial_ends_on=read_optional_date("trial_ends_on", request.POST),
        ),
        pools=_read_pools(request.POST),
        actor_for=lambda tenant_id: build_operator_actor(
            operator, tenant_id=tenant_id, address=client_address(request), request_id=request_id
        ),
        now=timezone.now(),
    )


def _read_pools(form: QueryDict) -> list[str]:
    """Return the names of the chosen pools. The form has one field `pools` for each tier."""
    return [name for name in form.getlist("pools") if name]


def _show_form(request: HttpRequest, errors: dict[str, str], *, status: int = 200) -> HttpResponse:
    """Return the page. `errors` has messages by field; "": an error of the whole form."""
    plan_slug = request.POST.get("plan", "")
    context = {
        "title": gettext("New tenant"),
        "entered": {name: request.POST.get(name, "") for name in _TEXT_FIELDS},
        "plans": [(plan.slug, plan.name, plan.slug == plan_slug) for plan in list_plans()],
        "pool_choices": build_pool_choices(_read_pools(request.POST)),
        "default_region": settings.REGION,
        "needs_code": not session.is_confirmed(request),
        "message": errors.get(""),
        "errors": errors,
    }
    return render_operator_page(request, "tenants/create.html", context, status=status)
