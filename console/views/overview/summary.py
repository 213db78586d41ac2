"""The overview for users with READ_USAGE: alerts, figures, charts and the open onboarding steps.

Other users get the performance page instead.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from console.layout.htmx import render_page
from console.sign_in.current_member import CurrentMember, member_required
from console.texts.money_format import format_amount
from console.usage_filters.filter_form import UsageFilters, filter_last_30_days
from console.usage_filters.number_format import describe_change, format_count
from console.usage_filters.time_buckets import count_suppressed
from console.views.onboarding.detail import is_dismissed
from console.views.onboarding.steps import SetupStep, build_onboarding_steps
from console.views.overview.performance import render_performance
from console.views.overview.presenters import (
    SOURCES,
    OverviewFigure,
    build_acceptance_figure,
    build_accepted_chart,
    build_requests_chart,
    overview_tabs,
)
from tenants.base.permissions import Permission
from tenants.billing.spending.month_cost import MonthCost
from tenants.billing.spending.queries import read_month_cost
from tenants.compliance.attention import Alert, AlertKind, list_alerts
from tenants.security.authorization.actor import Actor
from tenants.usage.reports.counters import CounterSource
from tenants.usage.reports.overview import SeatUse, UsageSummary, read_usage_summary

_PAGE: Final = "console/overview/summary.html"

# URL name (without `console:`), query string and label of the link.
_ALERT_LINKS: Final[dict[AlertKind, tuple[str, str, Promise]]] = {
    AlertKind.KEY_LEAKED: ("keys", "?concern=leaked", _("Check how it was used")),
    AlertKind.BUDGET_EXCEEDED: ("budgets", "", _("View budgets")),
    AlertKind.SINK_FAILING: ("sinks", "", _("View the error")),
    AlertKind.CERTIFICATE_EXPIRING: ("access", "", _("Update the metadata")),
    AlertKind.CERTIFICATE_UNKNOWN: ("access", "", _("Update the metadata")),
    AlertKind.KEY_EXPIRING: ("keys", "?kind=svc&sort=expires", _("Rotate")),
}
# Alerts whose time is the expiry, which may still be ahead.
_EXPIRIES: Final = {AlertKind.CERTIFICATE_EXPIRING, AlertKind.KEY_EXPIRING}


@dataclass(frozen=True, slots=True)
class AlertLine:
    text: str
    at: datetime | None  # when the problem began, or the expiry; None: unknown
    url: str
    action: str  # label of the link to `url`
    tone: str  # bad | warn


@require_http_methods(["GET"])
@member_required
def overview(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    actor = member.actor
    if not actor.has_permission(Permission.READ_USAGE):
        return render_performance(request, member)
    now = timezone.now()
    usage_filters = filter_last_30_days(now)
    summary = read_usage_summary(actor=actor, query=usage_filters.report_query)
    sees_cost = actor.has_permission(Permission.READ_BILLING)
    cost = read_month_cost(actor=actor, now=now) if sees_cost else None
    context = {
        "tabs": overview_tabs(request, actor),
        "figures": _list_figures(actor, usage_filters, summary, cost),
        "alerts": [_to_alert_line(alert, now) for alert in list_alerts(actor=actor, now=now)],
        "gateway_url": settings.GATEWAY_URL,
        **_build_charts(usage_filters, summary),
        **_setup_context(request, actor),
    }
    return render_page(request, member, _PAGE, context)


def _build_charts(usage_filters: UsageFilters, summary: UsageSummary) -> dict[str, Any]:
    """Return the charts; {} if there were no requests or the total is suppressed."""
    if summary.total.counts is None or not summary.total.counts.requests:
        return {}
    return {
        "has_hidden_days": count_suppressed(summary.days) > 0,
        "min_users": summary.min_users,
        "requests_chart": build_requests_chart(usage_filters, summary.days),
        "accepted_chart": build_accepted_chart(usage_filters, summary.days, summary.quality),
    }


def _setup_context(request: HttpRequest, actor: Actor) -> dict[str, Any]:
    """Return the open steps and the progress; no steps if the user has dismissed the card."""
    steps: list[SetupStep] = [] if is_dismissed(request) else build_onboarding_steps(actor)
    open_steps = [step for step in steps if not step.is_done]
    return {"steps": open_steps, "num_done": len(steps) - len(open_steps), "num_steps": len(steps)}


def _list_figures(
    actor: Actor, usage_filters: UsageFilters, summary: UsageSummary, cost: MonthCost | None
) -> list[OverviewFigure]:
    figures = [
        _build_seats_figure(actor, summary.seats),
        _build_requests_figure(usage_filters, summary),
    ]
    if summary.quality is not None and summary.quality_before is not None:
        figures.append(
            build_acceptance_figure(usage_filters, summary.quality, summary.quality_before)
        )
    if cost is not None:
        figures.append(_build_cost_figure(cost))
    return figures


def _build_seats_figure(actor: Actor, seats: SeatUse) -> OverviewFigure:
    idle = seats.num_seats - seats.num_active
    return OverviewFigure(
        label=gettext("Active seats"),
        value=gettext("%(active)s of %(all)s")
        % {"active": format_count(seats.num_active), "all": format_count(seats.num_seats)},
        change=None,
        definition=gettext(
            "Members who used Caret in the last 30 days. The other seats are idle; you pay for "
            "them, too."
        ),
        source=str(SOURCES[CounterSource.SERVER]),
        url=reverse("console:members") if actor.has_permission(Permission.READ_MEMBERS) else "",
        comparison=ngettext("%(num)s idle seat", "%(num)s idle seats", idle)
        % {"num": format_count(idle)},
    )


def _build_requests_figure(usage_filters: UsageFilters, summary: UsageSummary) -> OverviewFigure:
    now, before = (
        None if row.counts is None else row.counts.requests
        for row in (summary.total, summary.before)
    )
    return OverviewFigure(
        label=gettext("Requests"),
        value="" if now is None else format_count(now),
        change=describe_change(now, before),
        definition=gettext("Completions that clients requested in the last 30 days."),
        source=str(SOURCES[CounterSource.SERVER]),
        url=f"{reverse('console:usage')}?{usage_filters.query}",
    )


def _build_cost_figure(cost: MonthCost) -> OverviewFigure:
    forecast = cost.forecast_micros
    return OverviewFigure(
        label=gettext("Cost this month"),
        value=format_amount(cost.total_micros, cost.currency),
        change=None,
        definition=gettext(
            "Seats and tokens so far this month (UTC), before tax and credit, as on the "
            "Billing page. The forecast continues the average of the last four weeks to the "
            "end of the month."
        ),
        source=gettext("From the ledger"),
        url=reverse("console:billing"),
        comparison=""
        if forecast is None
        else gettext("forecast: %(amount)s") % {"amount": format_amount(forecast, cost.currency)},
    )


def _to_alert_line(alert: Alert, now: datetime) -> AlertLine:
    url_name, query, action = _ALERT_LINKS[alert.kind]
    expires_later = alert.kind in _EXPIRIES and alert.at is not None and alert.at > now
    return AlertLine(
        text=_describe_alert(alert, has_expired=not expires_later)
        % {"num": format_count(alert.num)},
        at=alert.at,
        url=reverse(f"console:{url_name}") + query,
        action=str(action),
        tone="warn" if expires_later else "bad",
    )


def _describe_alert(alert: Alert, *, has_expired: bool) -> str:
    """Return the text of the alert, which may contain the placeholder `num`.

    `has_expired` matters only for CERTIFICATE_EXPIRING, which comes last.
    """
    match alert.kind:
        case AlertKind.KEY_LEAKED:
            return ngettext(
                "%(num)s API key was found in public. We revoked it.",
                "%(num)s API keys were found in public. We revoked them.",
                alert.num,
            )
        case AlertKind.BUDGET_EXCEEDED:
            return ngettext("%(num)s budget is used up.", "%(num)s budgets are used up.", alert.num)
        case AlertKind.SINK_FAILING:
            return ngettext(
                "We cannot send the audit log to %(num)s destination.",
                "We cannot send the audit log to %(num)s destinations.",
                alert.num,
            )
        case AlertKind.KEY_EXPIRING:
            return ngettext(
                "%(num)s service key expires soon.", "%(num)s service keys expire soon.", alert.num
            )
        case AlertKind.CERTIFICATE_UNKNOWN:
            return ngettext(
                "We refused %(num)s sign-in: your identity provider signed with a certificate that "
                "its metadata does not contain.",
                "We refused %(num)s sign-ins: your identity provider signed with a certificate "
                "that its metadata does not contain.",
                alert.num,
            )
        case AlertKind.CERTIFICATE_EXPIRING if has_expired:
            return gettext("The certificate of your identity provider has expired.")
    return gettext("The certificate of your identity provider expires soon.")
