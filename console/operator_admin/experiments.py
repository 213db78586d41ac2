"""Experiments of the installation: creation, start and stop. Each tenant's own page shows results.

Each change needs a reason and a code of the operator's authenticator app.
"""

from types import MappingProxyType
from typing import Any, Final

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from caret.contracts.experiments import FILTERS, LAYOUTS, RANKINGS, VariantEntry
from console.operator_admin import session
from console.operator_admin.site import operator_required, render_operator_page
from console.operator_admin.step_up import check_code
from console.texts.error_messages import translate_error
from tenants.base.errors import DomainError, InvalidValue
from tenants.base.redis_connection import connect_to_redis
from tenants.fleet.experiments import (
    CONTROL,
    ExperimentState,
    NewExperiment,
    read_experiment_state,
    set_experiment_running,
    start_new_experiment,
)
from tenants.fleet.operators.accounts import OperatorView

_DONE: Final = MappingProxyType(
    {
        "create": _("Experiment started. Gateways follow within a second."),
        "start": _("Experiment started. Gateways follow within a second."),
        "stop": _("Experiment stopped. Gateways follow within a second."),
    }
)
_ROWS: Final = range(1, 4)  # of variants besides the control
_BAD_REQUEST: Final = 400


@require_GET
@operator_required
def experiments(request: HttpRequest, operator: OperatorView) -> HttpResponse:
    return _render_page(request)


@never_cache
@require_POST
@operator_required
def change(request: HttpRequest, operator: OperatorView, action: str) -> HttpResponse:
    """Create, start or stop an experiment."""
    if action not in _DONE:
        raise Http404
    if not operator.can_change:
        raise PermissionDenied
    if (code_error := check_code(request, operator)) is not None:
        return _render_page(request, code_error, status=_BAD_REQUEST)
    try:
        _apply_change(request, operator, action)
    except DomainError as error:
        return _render_page(request, translate_error(error), status=_BAD_REQUEST)
    return redirect(reverse("operators:experiments") + f"?done={action}")


def _apply_change(request: HttpRequest, operator: OperatorView, action: str) -> None:
    """Apply the change. Raises DomainError."""
    form, reason, now = request.POST, request.POST.get("reason", ""), timezone.now()
    if action != "create":
        set_experiment_running(
            connect_to_redis(),
            operator=operator,
            name=form.get("name", ""),
            is_running=action == "start",
            reason=reason,
            now=now,
        )
        return
    weight = _read_number(form.get("weight_0", "") or "1")
    others = [variant for row in _ROWS if (variant := _read_variant(request, row)) is not None]
    new = NewExperiment(
        name=form.get("name", "").strip(),
        variants=(VariantEntry(CONTROL, weight=weight), *others),
        tenants=tuple(form.get("tenants", "").replace(",", " ").split()),
    )
    start_new_experiment(connect_to_redis(), operator=operator, new=new, reason=reason, now=now)


def _render_page(request: HttpRequest, error: str = "", *, status: int = 200) -> HttpResponse:
    state = _read_state()
    context: dict[str, Any] = {
        "title": _("Experiments"),
        "done": _DONE.get(request.GET.get("done", "")),
        "error": error,
        "state": state,
        "experiments": [] if state is None else list(state.entries.values()),
        "rows": [_read_row(request, row) for row in _ROWS],
        "layouts": LAYOUTS,
        "rankings": RANKINGS,
        "filters": FILTERS,
        "form_data": request.POST,
        "reason": request.POST.get("reason", ""),
        "needs_code": not session.is_confirmed(request),
    }
    return render_operator_page(request, "experiments.html", context, status=status)


def _read_state() -> ExperimentState | None:
    """Return the experiments; None if Redis is unreachable."""
    try:
        return read_experiment_state(connect_to_redis())
    except DomainError:
        return None


def _read_row(request: HttpRequest, row: int) -> dict[str, Any]:
    names = ("variant", "weight", "layout", "ranking", "filter", "files_share", "suffix_share")
    return {"number": row} | {name: request.POST.get(f"{name}_{row}", "") for name in names}


def _read_variant(request: HttpRequest, row: int) -> VariantEntry | None:
    """Return the variant of a row; None if the row has no name. Raises InvalidValue."""
    fields = _read_row(request, row)
    if not fields["variant"].strip():
        return None
    return VariantEntry(
        name=fields["variant"].strip(),
        weight=_read_number(fields["weight"] or "1"),
        layout=fields["layout"] or None,
        ranking=fields["ranking"] or None,
        filter=fields["filter"] or None,
        files_share=_read_share(fields["files_share"]),
        suffix_share=_read_share(fields["suffix_share"]),
    )


def _read_number(text: str) -> int:
    """Return the number. Raises InvalidValue."""
    text = text.strip()
    if not (text.isascii() and text.isdigit() and len(text) <= 4):
        raise InvalidValue("variants", "Enter weights as whole numbers.")
    return int(text)


def _read_share(text: str) -> float | None:
    """Return the share; None if empty. Raises InvalidValue."""
    text = text.strip().replace(",", ".")
    if not text:
        return None
    try:
        share = float(text)
    except ValueError as error:
        raise InvalidValue("variants", "Enter shares from 0 to 1.") from error
    if not 0 <= share <= 1:
        raise InvalidValue("variants", "Enter shares from 0 to 1.")
    return share
