"""The indexes of public code: build, start and stop. Tenants' policies decide who is compared.

Each change needs a reason and a code of the operator's authenticator app.
"""

from types import MappingProxyType
from typing import Any, Final

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from caret.contracts.public_code import repositories_folder
from console.operator_admin import session
from console.operator_admin.site import operator_required, render_operator_page
from console.operator_admin.step_up import Apply, change_with_code
from tenants.base.errors import DomainError
from tenants.base.redis_connection import connect_to_redis
from tenants.fleet.operators.accounts import OperatorView
from tenants.fleet.public_code import (
    PublicCodeState,
    list_source_folders,
    read_public_code_state,
    request_index,
    set_running,
)
from tenants.policy.availability.enforcement import Capability, read_capabilities

_DONE: Final = MappingProxyType(
    {
        "create": _("A worker builds the index. Reload this page to see its progress."),
        "start": _("Index started. Gateways follow within a second."),
        "stop": _("Index stopped. Gateways follow within a second."),
    }
)


@require_GET
@operator_required
def public_code(request: HttpRequest, operator: OperatorView) -> HttpResponse:
    return _render_page(request)


@never_cache
@require_POST
@operator_required
def change(request: HttpRequest, operator: OperatorView, action: str) -> HttpResponse:
    """Build, start or stop an index."""
    if (apply := _CHANGES.get(action)) is None:
        raise Http404
    done_url = reverse("operators:public_code") + f"?done={action}"
    return change_with_code(request, operator, apply, done_url=done_url, page=_render_page)


def _create(request: HttpRequest, operator: OperatorView) -> None:
    request_index(
        connect_to_redis(),
        operator=operator,
        name=request.POST.get("name", "").strip(),
        folder=request.POST.get("folder", ""),
        reason=request.POST.get("reason", ""),
        now=timezone.now(),
    )


def _start(request: HttpRequest, operator: OperatorView) -> None:
    _set_running(request, operator, is_running=True)


def _stop(request: HttpRequest, operator: OperatorView) -> None:
    _set_running(request, operator, is_running=False)


def _set_running(request: HttpRequest, operator: OperatorView, *, is_running: bool) -> None:
    """Start or stop an index. Raises DomainError."""
    set_running(
        connect_to_redis(),
        operator=operator,
        name=request.POST.get("name", ""),
        is_running=is_running,
        reason=request.POST.get("reason", ""),
        now=timezone.now(),
    )


def _render_page(request: HttpRequest, error: str = "") -> HttpResponse:
    state = _read_state()
    context: dict[str, Any] = {
        "title": _("Public code"),
        "done": _DONE.get(request.GET.get("done", "")),
        "error": error,
        "state": state,
        "records": [] if state is None else list(state.records.values()),
        "is_missing": Capability.PUBLIC_CODE_FILTER in read_capabilities().missing,
        "folders": list_source_folders(),
        "repositories": repositories_folder(settings.PUBLIC_CODE_FOLDER),
        "form_data": request.POST,
        "reason": request.POST.get("reason", ""),
        "needs_code": not session.is_confirmed(request),
    }
    return render_operator_page(request, "public_code.html", context)


def _read_state() -> PublicCodeState | None:
    """Return the indexes; None if Redis is unreachable."""
    try:
        return read_public_code_state(connect_to_redis())
    except DomainError:
        return None


_CHANGES: Final[dict[str, Apply]] = {"create": _create, "start": _start, "stop": _stop}
