"""The indexes of public code: operators build them, and choose the one that gateways use.

Each change needs a reason and a step-up (an authenticator code). A tenant's policy decides whether
gateways compare its completions with the index in use. To start or stop an index means to start or
stop its use: `is_running` is True while gateways use it, and not while a worker builds it.
"""

from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from caret.contracts.public_code import repositories_folder
from console.operator_admin.site import operator_required
from console.operator_admin.step_up import Change, ChangePage, build_switch
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


@require_GET
@operator_required
def public_code(request: HttpRequest, operator: OperatorView) -> HttpResponse:
    return _PAGE.render(request)


@never_cache
@require_POST
@operator_required
def change(request: HttpRequest, operator: OperatorView, action: str) -> HttpResponse:
    """Build an index, or start or stop using it."""
    return _PAGE.change(request, operator, action)


def _create(request: HttpRequest, operator: OperatorView) -> None:
    request_index(
        connect_to_redis(),
        operator=operator,
        name=request.POST.get("name", "").strip(),
        folder=request.POST.get("folder", ""),
        reason=request.POST.get("reason", ""),
        now=timezone.now(),
    )


def _page_context(request: HttpRequest) -> dict[str, Any]:
    state = _read_state()
    return {
        "state": state,
        "records": [] if state is None else list(state.records.values()),
        # True: a gateway says that it has no index. It cannot compare completions then.
        "is_index_missing": Capability.PUBLIC_CODE_FILTER in read_capabilities().missing,
        "folders": list_source_folders(),
        "repositories_folder": repositories_folder(settings.PUBLIC_CODE_FOLDER),
    }


def _read_state() -> PublicCodeState | None:
    """Return all indexes; None if Redis is unreachable."""
    try:
        return read_public_code_state(connect_to_redis())
    except DomainError:
        return None


_PAGE: Final = ChangePage(
    title=_("Public code"),
    template="public_code.html",
    url_name="public_code",
    changes={
        "create": Change(
            _create, _("A worker is building the index. Reload this page to see its progress.")
        ),
        "start": Change(
            build_switch(set_running, is_running=True),
            _("Index now in use. Gateways apply this within a second."),
        ),
        "stop": Change(
            build_switch(set_running, is_running=False),
            _("Index no longer in use. Gateways apply this within a second."),
        ),
    },
    context=_page_context,
)
