"""The retention of each data class, and the form that previews and saves another period."""

from typing import Any, Final

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from console.layout.htmx import render_page
from console.layout.permission_required import permission_required
from console.layout.step_up import step_up_required, step_up_required_to_save
from console.layout.tabs import Tab, tabs_of
from console.layout.toasts import toast
from console.sign_in.current_member import CurrentMember, member_required
from console.usage_filters.number_format import format_count
from console.views.policies.form_fields import add_refusal
from console.views.policies.review.review import ReasonForm
from console.views.policies.system_reasons import reason_of_undoing
from tenants.base.errors import Conflict, InvalidValue
from tenants.base.permissions import Permission
from tenants.policy.data_classes import DATA_CLASSES, DataClass, DataClassTerms
from tenants.privacy.retention.operations import set_rule, undo_rule
from tenants.privacy.retention.queries import find_rule, list_data_class_statuses, preview_purge

_PAGE: Final = "console/retention/detail.html"


class RetentionPeriodForm(forms.Form):
    """The field `days`, with the limits of a data class."""

    def __init__(self, terms: DataClassTerms, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["days"] = forms.IntegerField(
            label=_("Retention period in days"),
            help_text=gettext("From %(min)s to %(max)s days.")
            % {"min": format_count(terms.min_days), "max": format_count(terms.max_days)},
            min_value=terms.min_days,
            max_value=terms.max_days,
        )


class SaveForm(ReasonForm):
    """The fields that saving needs besides the days."""

    # The version of the rule that the user has seen; 0: the default.
    expected_version = forms.IntegerField(widget=forms.HiddenInput, min_value=0)


def tabs(request: HttpRequest) -> list[Tab]:
    return tabs_of(
        request,
        [
            ("retention", gettext("By data class")),
            ("retention-holds", gettext("Legal holds")),
            ("retention-runs", gettext("Purges")),
            ("retention-certificates", gettext("Certificates")),
            ("retention-verify", gettext("Verify")),
        ],
    )


@require_GET
@member_required
def list_data_classes(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    rows = list_data_class_statuses(actor=member.actor, now=timezone.now())
    context = {
        "tabs": tabs(request),
        "rows": rows,
        "overdue": sum(row.overdue for row in rows),
        "may_edit": member.actor.has_permission(Permission.WRITE_RETENTION),
    }
    return render_page(request, member, "console/retention/list.html", context)


@require_http_methods(["GET", "POST"])
@member_required
@permission_required(Permission.WRITE_RETENTION)
@step_up_required_to_save
def edit(request: HttpRequest, member: CurrentMember, data_class: str) -> HttpResponse:
    """Show the form. A GET with `days` previews the next purge; a POST saves the days."""
    chosen_class = _parse_data_class(data_class)
    if request.method == "POST":
        return _save_period(request, member, chosen_class)
    form = RetentionPeriodForm(
        DATA_CLASSES[chosen_class], request.GET if "days" in request.GET else None
    )
    return _render_page(request, member, chosen_class, form, save_form=None)


def _save_period(
    request: HttpRequest, member: CurrentMember, chosen_class: DataClass
) -> HttpResponse:
    form = RetentionPeriodForm(DATA_CLASSES[chosen_class], request.POST)
    save_form = SaveForm(request.POST)
    if not (form.is_valid() and save_form.is_valid()):
        return _render_page(request, member, chosen_class, form, save_form, status=400)
    try:
        rule = set_rule(
            actor=member.actor,
            data_class=chosen_class,
            days=form.cleaned_data["days"],
            reason=save_form.cleaned_data["reason"],
            expected_version=save_form.cleaned_data["expected_version"],
            now=timezone.now(),
        )
    except Conflict:
        text = gettext(
            "Someone changed this retention period while you were editing. Check the "
            "current value above."
        )
        save_form.add_error(None, text)
        return _render_page(request, member, chosen_class, form, save_form, status=409)
    except InvalidValue as error:
        add_refusal(save_form, error)
        return _render_page(request, member, chosen_class, form, save_form, status=400)
    text = gettext("%(title)s: retention set to %(days)s days. It applies from the next purge.")
    toast(
        request,
        text
        % {"title": gettext(DATA_CLASSES[chosen_class].title), "days": form.cleaned_data["days"]},
        undo_url=reverse("console:retention-undo", args=[chosen_class.value, rule.version]),
    )
    return redirect("console:retention")


@require_POST
@member_required
@permission_required(Permission.WRITE_RETENTION)
@step_up_required
def undo(
    request: HttpRequest, member: CurrentMember, data_class: str, version: int
) -> HttpResponse:
    """Restore the retention period that `version` replaced, if `version` is still in force."""
    chosen_class = _parse_data_class(data_class)
    try:
        rule = undo_rule(
            actor=member.actor,
            data_class=chosen_class,
            version=version,
            reason=reason_of_undoing(version),
            now=timezone.now(),
        )
    except Conflict:
        text = gettext("Not undone: someone has changed this retention period since.")
        messages.error(request, text)
    except InvalidValue:
        text = gettext("Not undone: the previous values are no longer valid.")
        messages.error(request, text)
    else:
        text = gettext("%(title)s: retention set back to %(days)s days.")
        toast(
            request, text % {"title": gettext(DATA_CLASSES[chosen_class].title), "days": rule.days}
        )
    return redirect("console:retention")


def _render_page(
    request: HttpRequest,
    member: CurrentMember,
    chosen_class: DataClass,
    form: RetentionPeriodForm,
    save_form: SaveForm | None,
    status: int = 200,
) -> HttpResponse:
    """Show the form, with a preview if it contains valid days.

    The form gets the version that is in force now. So if the user saves again after a conflict, the
    user's period replaces this version.
    """
    now = timezone.now()
    rule = find_rule(actor=member.actor, data_class=chosen_class)
    days = form.cleaned_data["days"] if form.is_valid() else None
    purge_preview = None
    if days is not None:
        purge_preview = preview_purge(
            actor=member.actor, data_class=chosen_class, days=days, now=now
        )
    context = {
        "terms": DATA_CLASSES[chosen_class],
        "rule": rule,
        "form": form
        if form.is_bound
        else RetentionPeriodForm(DATA_CLASSES[chosen_class], initial={"days": rule.days}),
        "save": SaveForm() if save_form is None else save_form,
        "expected_version": rule.version or 0,
        "preview": purge_preview,
        "days": days,
    }
    if form.errors:
        status = 400
    return render_page(request, member, _PAGE, context, status=status)


def _parse_data_class(text: str) -> DataClass:
    """Return the data class.

    Raises Http404 if it does not exist, or if tenants cannot change its retention.
    """
    try:
        data_class = DataClass(text)
    except ValueError as error:
        raise Http404 from error
    if not DATA_CLASSES[data_class].is_overridable:
        raise Http404
    return data_class
