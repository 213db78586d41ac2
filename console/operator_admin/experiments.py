"""Experiments of the installation: create, start and stop them. Their results are on each tenant's
own page.

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
from console.operator_admin.site import operator_required, page
from console.operator_admin.step_up import check_code
from console.texts.error_messages import translate_error
from tenants.base.errors import DomainError, InvalidValue
from tenants.base.redis_connection import connect
from tenants.fleet.experiments import (
    CONTROL,
    ExperimentState,
    NewExperiment,
    read_experiment_state,
    set_running,
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
_BAD: Final = 400


@require_GET
@operator_required
def experiments(request: HttpRequest, operator: OperatorView) -> HttpResponse:
    return _show(request)


@never_cache
@require_POST
@operator_required
def change(request: HttpRequest, operator: OperatorView, what: str) -> HttpResponse:
    """Create, start or stop an experiment."""
    if what not in _DONE:
        raise Http404
    if not operator.can_change:
        raise PermissionDenied
    if (wrong := check_code(request, operator)) is not None:
        return _show(request, wrong, status=_BAD)
    try:
        _apply(request, operator, what)
    except DomainError as error:
        return _show(request, translate_error(error), status=_BAD)
    return redirect(reverse("operators:experiments") + f"?done={what}")


def _apply(request: HttpRequest, operator: OperatorView, what: str) -> None:
    """Apply the change. Raises DomainError."""
    form, reason, now = request.POST, request.POST.get("reason", ""), timezone.now()
    if what != "create":
        set_running(
            connect(),
            operator=operator,
            name=form.get("name", ""),
            is_running=what == "start",
            reason=reason,
            now=now,
        )
        return
    weight = _read_number(form.get("weight_0", "") or "1")
    others = [found for row in _ROWS if (found := _read_variant(request, row)) is not None]
    new = NewExperiment(
        name=form.get("name", "").strip(),
        variants=(VariantEntry(CONTROL, weight=weight), *others),
        tenants=tuple(form.get("tenants", "").replace(",", " ").split()),
    )
    start_new_experiment(connect(), operator=operator, new=new, reason=reason, now=now)


def _show(request: HttpRequest, error: str = "", *, status: int = 200) -> HttpResponse:
    state = _read_state()
    context: dict[str, Any] = {
        "title": _("Experiments"),
        "done": _DONE.get(request.GET.get("done", "")),
        "error": error,
        "state": state,
        "experiments": [] if state is None else list(state.entries.values()),
        "rows": [_sent_row(request, row) for row in _ROWS],
        "layouts": LAYOUTS,
        "rankings": RANKINGS,
        "filters": FILTERS,
        "sent": request.POST,
        "reason": request.POST.get("reason", ""),
        "needs_code": not session.is_confirmed(request),
    }
    return page(request, "experiments.html", context, status=status)


def _read_state() -> ExperimentState | None:
    """Return the experiments; None if Redis is unreachable."""
    try:
        return read_experiment_state(connect())
    except DomainError:
        return None


def _sent_row(request: HttpRequest, row: int) -> dict[str, Any]:
    names = ("variant", "weight", "layout", "ranking", "filter", "files_share", "suffix_share")
    return {"number": row} | {name: request.POST.get(f"{name}_{row}", "") for name in names}


def _read_variant(request: HttpRequest, row: int) -> VariantEntry | None:
    """Return the variant of a row; None if the row has no name. Raises InvalidValue."""
    sent = _sent_row(request, row)
    if not sent["variant"].strip():
        return None
    return VariantEntry(
        name=sent["variant"].strip(),
        weight=_read_number(sent["weight"] or "1"),
        layout=sent["layout"] or None,
        ranking=sent["ranking"] or None,
        filter=sent["filter"] or None,
        files_share=_read_share(sent["files_share"]),
        suffix_share=_read_share(sent["suffix_share"]),
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
