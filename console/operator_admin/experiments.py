"""Experiments of the installation: operators create, start and stop them.

Each change needs a reason and a step-up (an authenticator code). The results are shown on the
tenants' own pages.
"""

from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from caret.contracts.experiments import FILTERS, LAYOUTS, RANKINGS, VariantEntry
from console.operator_admin.site import operator_required
from console.operator_admin.step_up import Change, ChangePage, build_switch
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

# Numbers of the form's rows, one for each variant besides the control. The control has only a
# weight, in the field weight_0.
_ROWS: Final = range(1, 4)
# Fields of a row. Their names in the form end with the number of the row.
_FIELDS: Final = (
    *("variant", "weight", "layout", "ranking", "filter"),
    *("files_share", "suffix_share"),
)
_MAX_WEIGHT_DIGITS: Final = 4
_DEFAULT_WEIGHT: Final = "1"  # the text of an empty field
_STARTED: Final = _("Experiment started. Gateways apply this within a second.")


@require_GET
@operator_required
def experiments(request: HttpRequest, operator: OperatorView) -> HttpResponse:
    return _PAGE.render(request)


@never_cache
@require_POST
@operator_required
def change(request: HttpRequest, operator: OperatorView, action: str) -> HttpResponse:
    """Create, start or stop an experiment."""
    return _PAGE.change(request, operator, action)


def _create(request: HttpRequest, operator: OperatorView) -> None:
    """Create and start an experiment. Raises DomainError."""
    form, reason, now = request.POST, request.POST.get("reason", ""), timezone.now()
    weight = _read_weight(form.get("weight_0", "") or _DEFAULT_WEIGHT)
    others = [variant for row in _ROWS if (variant := _read_variant(request, row)) is not None]
    new = NewExperiment(
        name=form.get("name", "").strip(),
        variants=(VariantEntry(CONTROL, weight=weight), *others),
        tenants=tuple(form.get("tenants", "").replace(",", " ").split()),
    )
    start_new_experiment(connect_to_redis(), operator=operator, new=new, reason=reason, now=now)


def _page_context(request: HttpRequest) -> dict[str, Any]:
    state = _read_state()
    return {
        "state": state,
        "experiments": [] if state is None else list(state.entries.values()),
        "rows": [_read_row(request, row) for row in _ROWS],
        "layouts": LAYOUTS,
        "rankings": RANKINGS,
        "filters": FILTERS,
    }


def _read_state() -> ExperimentState | None:
    """Return all experiments; None if Redis is unreachable."""
    try:
        return read_experiment_state(connect_to_redis())
    except DomainError:
        return None


def _read_row(request: HttpRequest, row: int) -> dict[str, Any]:
    """Return the fields of a row as they were entered, and its number."""
    return {"number": row} | {name: request.POST.get(f"{name}_{row}", "") for name in _FIELDS}


def _read_variant(request: HttpRequest, row: int) -> VariantEntry | None:
    """Return the variant of a row; None if the row is empty. Raises InvalidValue.

    The weight does not count, because the page enters 1 in empty rows.
    """
    fields = _read_row(request, row)
    if not any(fields[name].strip() for name in _FIELDS if name != "weight"):
        return None
    return VariantEntry(
        name=fields["variant"].strip(),
        weight=_read_weight(fields["weight"] or _DEFAULT_WEIGHT),
        layout=fields["layout"] or None,
        ranking=fields["ranking"] or None,
        filter=fields["filter"] or None,
        files_share=_read_share(fields["files_share"]),
        suffix_share=_read_share(fields["suffix_share"]),
    )


def _read_weight(text: str) -> int:
    """Return the weight of a variant. Raises InvalidValue."""
    text = text.strip()
    # Only ASCII digits: isdigit alone accepts "²", for which int fails.
    if not (text.isascii() and text.isdigit() and len(text) <= _MAX_WEIGHT_DIGITS):
        raise InvalidValue("variants", "Enter weights as whole numbers.")
    return int(text)


def _read_share(text: str) -> float | None:
    """Return a share of the prompt's budget; None if the field is empty. Raises InvalidValue."""
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


_PAGE: Final = ChangePage(
    title=_("Experiments"),
    template="experiments.html",
    url_name="experiments",
    changes={
        "create": Change(_create, _STARTED),
        "start": Change(build_switch(set_experiment_running, is_running=True), _STARTED),
        "stop": Change(
            build_switch(set_experiment_running, is_running=False),
            _("Experiment stopped. Gateways apply this within a second."),
        ),
    },
    context=_page_context,
)
