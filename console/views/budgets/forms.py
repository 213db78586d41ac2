"""Forms of budgets. Users enter units of the currency, such as euros; the database has micros."""

import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from django import forms
from django.core.exceptions import ValidationError
from django.utils import timezone
from django.utils.formats import get_format
from django.utils.translation import gettext_lazy as _

from caret.contracts.pricing import BudgetScope
from tenants.base.errors import InvalidValue
from tenants.base.money import MAX_MICROS, MICROS
from tenants.billing.budgets.operations import BudgetTarget, BudgetTerms
from tenants.billing.budgets.queries import BudgetView
from tenants.billing.budgets.status_queries import BudgetEffect, preview_budget
from tenants.identity.teams.queries import TeamView
from tenants.security.authorization.actor import Actor
from tenants.security.authorization.directory import find_user

_DECIMALS: Final = 6  # of a limit: micros are millionths
# Fields of the forms, by the field names in errors of the operations.
FIELDS: Final = {"limit_micros": "limit", "team_id": "team", "user_id": "person"}
_SCOPES: Final = [
    (BudgetScope.TENANT.value, _("Whole tenant")),
    (BudgetScope.TEAM.value, _("Team")),
    (BudgetScope.USER.value, _("User")),
]


class AmountField(forms.DecimalField):
    """A decimal number in the format of the page's language, also with thousands separators.

    Django accepts these separators only with USE_THOUSAND_SEPARATOR, which would add them to all
    numbers of all pages. A misplaced separator is an error: in English, 1,5 must not become 15. In
    German, where the point is the thousands separator, 0.375 must not become 375.
    """

    def to_python(self, value: Any) -> Any:
        separator = get_format("THOUSAND_SEPARATOR")
        if isinstance(value, str) and separator in value.strip():
            if not _grouping_pattern().fullmatch(value.strip()):
                raise ValidationError(self.error_messages["invalid"], code="invalid")
            value = value.replace(separator, "")
        return super().to_python(value)


def _grouping_pattern() -> re.Pattern[str]:
    """Return the pattern of numbers whose separators are in the right places, such as 1,234.5."""
    thousands, decimals = get_format("THOUSAND_SEPARATOR"), get_format("DECIMAL_SEPARATOR")
    return re.compile(rf"[1-9]\d{{0,2}}({re.escape(thousands)}\d{{3}})+({re.escape(decimals)}\d*)?")


class TermsForm(forms.Form):
    limit = AmountField(
        label=_("Monthly limit"),
        min_value=Decimal(1) / MICROS,  # one micro
        max_value=Decimal(MAX_MICROS) / MICROS,
        decimal_places=_DECIMALS,
        localize=True,
    )
    is_per_seat = forms.BooleanField(
        label=_("Per seat"),
        required=False,
        help_text=_(
            "The limit is for one seat: the budget grows and shrinks with the number of "
            "members of the tenant or team."
        ),
    )
    is_hard = forms.BooleanField(
        label=_("Hard budget: stop completions at the limit"), required=False
    )
    webhook_url = forms.CharField(
        label=_("Webhook"),
        max_length=500,
        required=False,
        help_text=_(
            "We send each alert to this https:// URL, signed (Standard "
            "Webhooks). Leave empty for e-mail only."
        ),
    )

    # The user has confirmed that this number of members may lose their completions. None: the user
    # has confirmed nothing.
    confirmed_stops = forms.IntegerField(min_value=0, required=False)

    def to_terms(self) -> BudgetTerms:
        cleaned: dict[str, Any] = self.cleaned_data
        return BudgetTerms(
            int(cleaned["limit"] * MICROS),
            cleaned["is_hard"],
            cleaned["webhook_url"],
            cleaned["is_per_seat"],
        )

    def find_unconfirmed_effect(self, actor: Actor, holder: BudgetTarget) -> BudgetEffect | None:
        """Return the effect of the terms if the user must confirm it first; otherwise None.

        The user must confirm an effect if it stops the completions of more members than the user
        has already confirmed. The form must be valid.
        """
        effect = preview_budget(
            actor=actor, holder=holder, terms=self.to_terms(), now=timezone.now()
        )
        is_confirmed = effect.num_stopped <= (self.cleaned_data["confirmed_stops"] or 0)
        return None if is_confirmed else effect


class ChangeForm(TermsForm):
    # The version that the user has seen. Of two concurrent changes, the second is rejected.
    version = forms.IntegerField(min_value=1, max_value=2**31 - 1, widget=forms.HiddenInput)


class NewForm(TermsForm):
    scope = forms.ChoiceField(label=_("Applies to"), choices=_SCOPES, widget=forms.RadioSelect)
    team = forms.TypedChoiceField(label=_("Team"), required=False, coerce=UUID, empty_value=None)
    person = forms.CharField(label=_("User’s e-mail address"), max_length=254, required=False)

    def __init__(self, *args: Any, teams: Iterable[TeamView], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["team"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [("", "–"), *((str(team.id), team.name) for team in teams)]

    def to_holder(self) -> BudgetTarget:
        """Return the tenant, the team or the user of the budget. Raises InvalidValue.

        Fields for another scope are ignored.
        """
        cleaned: dict[str, Any] = self.cleaned_data
        scope = BudgetScope(cleaned["scope"])
        if scope is BudgetScope.TENANT:
            return BudgetTarget(scope)
        if scope is BudgetScope.TEAM:
            if cleaned["team"] is None:
                raise InvalidValue("team_id", "Choose a team.")
            return BudgetTarget(scope, cleaned["team"])
        user_id = find_user(email=cleaned["person"])
        if user_id is None:
            raise InvalidValue("user_id", "This member does not exist.")
        return BudgetTarget(scope, UUID(user_id))


def build_initial_values(budget: BudgetView) -> dict[str, Any]:
    """Return the initial values of a ChangeForm."""
    limit = Decimal(budget.limit_micros) / MICROS
    return {
        # With at least two decimals: 500.00, not 500.
        "limit": max(limit, limit.quantize(Decimal("0.01")), key=_num_decimals),
        "is_per_seat": budget.is_per_seat,
        "is_hard": budget.is_hard,
        "webhook_url": budget.webhook_url,
        "version": budget.version,
    }


def _num_decimals(value: Decimal) -> int:
    exponent = value.as_tuple().exponent  # a letter for NaN and infinity
    return -exponent if isinstance(exponent, int) else 0
