"""The capacity planner: the replicas that a load needs, and the latency of first tokens.

Its inputs are measured by the gateways, entered by the operator, or defaults.
"""

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.safestring import mark_safe
from django.utils.translation import gettext, gettext_lazy, ngettext
from django.views.decorators.http import require_GET

from caret.capacity.inputs import CapacityInputs, InvalidInput, Queue
from caret.capacity.plan import CapacityPlan, compute_plan
from caret.capacity.plot import Drawing, PlotLabels, draw_plot
from caret.contracts.policy import Mode
from console.operator_admin.site import operator_required, render_operator_page
from console.usage_filters.number_format import format_number
from tenants.fleet.operators.accounts import OperatorView
from tenants.fleet.pools.capacity_inputs import compute_measured_inputs
from tenants.fleet.pools.pool_status import FirstToken
from tenants.fleet.pools.scraping.installation_status import (
    InstallationStatus,
    compute_key_figures,
    read_installation_status,
)

# Enough for a smooth curve. Ten times as many steps would take 0.1 s to compute.
_CURVE_STEPS: Final = 240
# Labels by the name of the input in CapacityInputs, where a replica counts as one GPU.
_FIELDS: Final = {
    "requests_per_s": gettext_lazy("Requests per second"),
    "burst": gettext_lazy("Peak, as a multiple of this rate"),
    "num_gpus": gettext_lazy("Replicas"),
    "hit_rate": gettext_lazy("Prefix-cache hit rate (0 to 1)"),
    "context_tokens": gettext_lazy("Tokens per prompt"),
    "warm_tokens": gettext_lazy("Tokens prefilled by a warm request"),
    "output_tokens": gettext_lazy("Tokens per completion"),
    "prefill_tokens_per_s": gettext_lazy("Prefill per replica (tokens/s)"),
    "decode_tokens_per_s": gettext_lazy("Decoding per replica (tokens/s)"),
    "stream_tokens_per_s": gettext_lazy("Decoding per stream (tokens/s)"),
    "overhead_ms": gettext_lazy("First-token overhead (ms)"),
    "utilisation": gettext_lazy("Target utilisation of a replica (0 to 1)"),
    "target_ms": gettext_lazy("p99 target (ms)"),
    "acceptance": gettext_lazy("Share of tokens that are accepted (0 to 1)"),
    "dollars_per_gpu_hour": gettext_lazy("Price per replica hour"),
}
# The load if none is measured or entered.
_DEFAULT_REQUESTS_PER_S: Final = 1.0
_WARM_TOKENS: Final = CapacityInputs.__dataclass_fields__["warm_tokens"].default
_MIN_WITHOUT_DECIMALS: Final = 1_000.0  # numbers from here on are shown as whole numbers
_MAX_ENTRY_CHARS: Final = 32  # the `maxlength` of the fields in the template
# Inputs that describe the load. If the operator enters one of them, the plan is for another load
# than the measured one, so the plan is not compared with the measurements.
_LOAD_FIELDS: Final = frozenset(
    {"requests_per_s", "num_gpus", "hit_rate", "context_tokens", "output_tokens"}
)
# With fewer requests, a measured p99 is too uncertain to be compared with the model.
_MIN_REQUESTS: Final = 100
# The model disagrees with a measurement if one of them is more than this many times the other.
_MAX_RATIO: Final = 1.5


@dataclass(frozen=True, slots=True)
class ModelCheck:
    """The latency of first tokens at the measured load: as measured, and by the queueing model."""

    mode: Mode  # the mode with most requests; only its requests are compared
    num_requests: int
    measured_p50_ms: float
    measured_p99_ms: float
    model_p50_ms: float
    model_p99_ms: float

    @property
    def has_enough_requests(self) -> bool:
        return self.num_requests >= _MIN_REQUESTS

    @property
    def agrees(self) -> bool:
        return _is_near(self.model_p50_ms, self.measured_p50_ms) and _is_near(
            self.model_p99_ms, self.measured_p99_ms
        )


def check_model(plan: CapacityPlan, first_tokens: Iterable[FirstToken]) -> ModelCheck | None:
    """Compare a plan for the measured load with the measurements. None: there are none."""
    most_frequent = max(first_tokens, key=lambda first_token: first_token.count, default=None)
    if most_frequent is None:
        return None
    # Exactly one row has the hit rate of the plan.
    (predicted,) = (
        row.sustained for row in plan.hit_rates if row.hit_rate == plan.figures.hit_rate
    )
    assert predicted is not None, "compute_plan raises if the replicas cannot serve the load"
    return ModelCheck(
        mode=most_frequent.mode,
        num_requests=most_frequent.count,
        measured_p50_ms=most_frequent.p50_ms,
        measured_p99_ms=most_frequent.p99_ms,
        model_p50_ms=predicted.p50_ms,
        model_p99_ms=predicted.p99_ms,
    )


def _is_near(model_ms: float, measured_ms: float) -> bool:
    return model_ms <= measured_ms * _MAX_RATIO and measured_ms <= model_ms * _MAX_RATIO


@dataclass(frozen=True, slots=True)
class CapacityField:
    """An input in the form."""

    name: str  # of the field of CapacityInputs
    label: str
    entered: str  # as typed; "": nothing
    default: str  # used if nothing is entered; "": as many replicas as the load needs
    is_measured: bool  # whether `default` is a measured value
    error: str  # "": none


@require_GET
@operator_required
def capacity(request: HttpRequest, operator: OperatorView) -> HttpResponse:
    installation = read_installation_status(now=timezone.now())
    pools = [pool.name for pool in installation.pools]
    pool = request.GET.get("pool", "")
    measured = compute_measured_inputs(installation, pool=pool if pool in pools else None)
    entered, errors = _read_numbers(request)
    plan, picture = None, None
    if not errors:
        try:
            plan = compute_plan(_to_inputs(measured | entered, request.GET.get("queue", "")))
            picture = draw_plot(plan, steps=_CURVE_STEPS, labels=_plot_labels(plan.num_gpus))
        except InvalidInput as error:
            errors = _errors_by_field(str(error))
    is_for_measured_load = "requests_per_s" in measured and _LOAD_FIELDS.isdisjoint(entered)
    context = {
        "title": gettext("Capacity"),
        "fields": [_build_field(name, request, measured, errors) for name in _FIELDS],
        "pools": [(name, name == pool) for name in pools],
        "queues": [(queue.value, queue.value == request.GET.get("queue")) for queue in Queue],
        "has_measured": bool(measured),
        "message": errors.get(""),
        # True: according to the model, the replicas cannot take the measured load.
        "is_overloaded": bool(errors.get("")) and not entered,
        "plan": plan,
        "check": check_model(plan, _first_tokens_of(installation, pool))
        if plan is not None and is_for_measured_load
        else None,
        **({} if plan is None or picture is None else _plot_context(plan, picture)),
    }
    # At the default rates, the replicas may be too slow for the measured load. This is not an
    # error of the operator, unless they entered a value. `errors` then has only the key "" (the
    # whole form), so `any(errors)` is false.
    is_wrong = any(errors) or bool(errors and entered)
    return render_operator_page(request, "capacity.html", context, status=400 if is_wrong else 200)


def _first_tokens_of(installation: InstallationStatus, pool: str) -> list[FirstToken]:
    """Return the latencies of first tokens by mode.

    They are of the pool with this name, or of all pools together if there is none.
    """
    pool_first_tokens = [
        pool_status.first_tokens for pool_status in installation.pools if pool_status.name == pool
    ]
    return (
        pool_first_tokens[0]
        if pool_first_tokens
        else compute_key_figures(installation).first_tokens
    )


def _read_numbers(request: HttpRequest) -> tuple[dict[str, float], dict[str, str]]:
    """Return the valid numbers, and the error messages of invalid ones, both by input."""
    entered: dict[str, float] = {}
    errors: dict[str, str] = {}
    for name in _FIELDS:
        text = request.GET.get(name, "").strip()
        if not text:
            continue
        try:
            entered[name] = float(text)
        except ValueError:
            errors[name] = gettext("Enter a number, such as 0.95.")
            continue
        if name == "num_gpus" and (not math.isfinite(entered[name]) or entered[name] % 1):
            errors[name] = gettext("Enter a whole number.")
            del entered[name]
    return entered, errors


def _to_inputs(figures: dict[str, float], queue: str) -> CapacityInputs:
    """Return the planner's inputs. Raises InvalidInput."""
    numbers: dict[str, Any] = {"requests_per_s": _DEFAULT_REQUESTS_PER_S, **figures}
    # The default must not exceed the measured size of whole prompts, or the plan is refused.
    numbers.setdefault(
        "warm_tokens", min(_WARM_TOKENS, numbers.get("context_tokens", _WARM_TOKENS))
    )
    if "num_gpus" in numbers:
        numbers["num_gpus"] = int(numbers["num_gpus"])
    queue_name = queue if queue in set(Queue) else Queue.PINNED
    return CapacityInputs(**numbers, queue=Queue(queue_name))


def _errors_by_field(message: str) -> dict[str, str]:
    """Return the message of an InvalidInput by the input whose name is the message's first word.

    If the first word names no input, the key is "", for the whole form.
    """
    name = message.split(" ", 1)[0]
    return {name if name in _FIELDS else "": message}


def _build_field(
    name: str, request: HttpRequest, measured: dict[str, float], errors: dict[str, str]
) -> CapacityField:
    default = _DEFAULT_REQUESTS_PER_S if name == "requests_per_s" else _default_of(name)
    value = measured.get(name, default)
    return CapacityField(
        name=name,
        label=str(_FIELDS[name]),
        entered=request.GET.get(name, "").strip()[:_MAX_ENTRY_CHARS],
        default="" if value is None else format_number(value, _count_decimals(value)),
        is_measured=name in measured,
        error=errors.get(name, ""),
    )


def _count_decimals(value: float) -> int:
    """Return the number of decimals: none for whole and large numbers, otherwise three."""
    return 0 if value == int(value) or value >= _MIN_WITHOUT_DECIMALS else 3


def _default_of(name: str) -> float | None:
    """Return the default of an input; None: it is computed, or required."""
    value = CapacityInputs.__dataclass_fields__[name].default
    return float(value) if isinstance(value, int | float) else None


def _plot_context(plan: CapacityPlan, picture: Drawing) -> dict[str, Any]:
    return {
        # The SVG contains only numbers and our own texts, escaped when it is drawn.
        "svg": mark_safe(picture.svg),  # noqa: S308
        "curve": json.dumps(_curve_points(picture), separators=(",", ":")),
        "picture": picture,
        "figures": plan.figures,
        "keeps_target": plan.min_hit_rate == 0,  # even if nothing is cached
        "current_percent": f"{plan.figures.hit_rate * 100:.1f}",
        "rows": [(row, row.hit_rate == plan.figures.hit_rate) for row in plan.hit_rates],
        "loads": [(gettext("sustained"), plan.sustained), (gettext("peak"), plan.burst)],
    }


def _plot_labels(num_replicas: int) -> PlotLabels:
    # draw_plot fills in the placeholders.
    load = ngettext(
        "%(requests_per_s)s requests/s on one replica, %(context_tokens)s tokens per "
        "prompt, queue: %(queue)s",
        "%(requests_per_s)s requests/s on %(num_gpus)s replicas, %(context_tokens)s "
        "tokens per prompt, queue: %(queue)s",
        num_replicas,
    )
    return PlotLabels(
        title=gettext("First token by prefix-cache hit rate"),
        load=load,
        x_axis=gettext("prefix-cache hit rate, in percent"),
        y_axis=gettext("first token (ms)"),
        overloaded=gettext("overloaded"),
    )


def _curve_points(picture: Drawing) -> list[list[float | None]]:
    """Return hit rate, p50, p95 and p99 in ms for each point; null: overloaded."""
    return [
        [
            round(point.hit_rate, 5),
            *(
                (None, None, None)
                if point.sustained is None
                else (
                    round(point.sustained.p50_ms, 2),
                    round(point.sustained.p95_ms, 2),
                    round(point.sustained.p99_ms, 2),
                )
            ),
        ]
        for point in picture.curve
    ]
