"""The page of one request: its stages with their time budgets, and why it was slow or failed."""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from caret.foundation.clock import from_unix_ms
from console.layout.htmx import render_page
from console.sign_in.current_member import CurrentMember, member_required
from console.texts.labels import FINISH_LABELS, MODE_LABELS
from console.usage_filters.number_format import format_count, format_milliseconds, format_share
from console.usage_filters.request_labels import PROTOCOLS, STAGES, TRIGGERS
from console.views.usage.requests.list import FINISH_BADGE_KINDS
from tenants.usage.requests.latency_explanation import LatencyStage, explain_latency
from tenants.usage.requests.lookup import find_display_ms, find_request

_PAGE: Final = "console/usage/requests/detail.html"
_WIDTH: Final = 1000  # of the timeline, in SVG user units; stands for the total time
_MIN_WIDTH: Final = 3.0  # keeps very short stages visible


@dataclass(frozen=True, slots=True)
class StageLine:
    name: str
    took: str  # the duration
    budget: str  # "": the stage has no time budget
    is_over: bool  # the duration exceeds the budget
    is_interrupted: bool  # the request ended in this stage
    # Of the bar in the timeline, in SVG user units.
    x: float
    width: float


@require_http_methods(["GET"])
@member_required
def show_request(request: HttpRequest, member: CurrentMember, request_id: UUID) -> HttpResponse:
    record = find_request(actor=member.actor, request_id=request_id, now=timezone.now())
    explanation = explain_latency(record)
    prompt, cached = record.prompt_tokens, record.cached_tokens
    first_ms = record.first_token_ms
    display_ms = find_display_ms(tenant_id=member.actor.tenant_id, request_id=request_id)
    context = {
        "record": record,
        "is_own": record.user_id == member.actor.user_id,
        "explanation": explanation,
        "at": from_unix_ms(record.occurred_at_ms),
        "mode": MODE_LABELS[record.mode],
        "trigger": TRIGGERS[record.trigger],
        "protocol": PROTOCOLS.get(record.protocol, record.protocol),
        "badge_kind": FINISH_BADGE_KINDS[record.finish_reason],
        "finish_reason": FINISH_LABELS[record.finish_reason],
        "stages": [_to_stage_line(stage, record.total_ms) for stage in explanation.stages],
        "width": _WIDTH,
        "first_token": "–" if first_ms is None else format_milliseconds(first_ms),
        "display": "–" if display_ms is None else format_milliseconds(display_ms),
        "tone": _first_token_tone(first_ms, is_slow=explanation.is_slow),
        "target": format_milliseconds(explanation.target_ms),
        "total": format_milliseconds(record.total_ms),
        "prompt": format_count(prompt),
        "cached": format_share(cached / prompt) if cached is not None and prompt else "–",
        "generated": format_count(record.generated_tokens),
    }
    return render_page(request, member, _PAGE, context)


def _first_token_tone(first_token_ms: float | None, *, is_slow: bool) -> str:
    """Return the color: "bad" if the target was missed, "good" for text within the target.

    "": the request ended within the target, without text.
    """
    if is_slow:
        return "bad"
    return "" if first_token_ms is None else "good"


def _to_stage_line(stage: LatencyStage, total_ms: float) -> StageLine:
    scale = _WIDTH / total_ms if total_ms > 0 else 0.0
    x = min(stage.start_ms * scale, _WIDTH - _MIN_WIDTH)
    return StageLine(
        name=str(STAGES.get(stage.name, stage.name)),
        took=format_milliseconds(stage.duration_ms),
        budget="" if stage.budget_ms is None else format_milliseconds(stage.budget_ms),
        is_over=stage.is_over,
        is_interrupted=stage.is_interrupted,
        x=round(x, 1),
        width=round(min(max(_MIN_WIDTH, stage.duration_ms * scale), _WIDTH - x), 1),
    )
