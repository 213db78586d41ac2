"""The form of a policy override, and the conversion of an override to form fields and back."""

from collections.abc import Iterator
from typing import Any, Final

from django import forms
from django.http import QueryDict
from django.utils.translation import gettext_lazy as _

from caret.contracts.policy import PolicyOverride
from console.views.policies.choices import WHY_NOT_ENFORCED, PolicyChoices
from console.views.policies.form_fields import (
    ALL,
    ONLY,
    all_or_some_field,
    burst_field,
    checkbox_field,
    initial_names,
    initial_rate,
    key_days_field,
    lines_field,
    names_field,
    names_of,
    per_minute_field,
    rate_of,
)
from console.views.policies.forms import FieldGroup
from console.views.policies.model_fields import offer_policy_choices
from console.views.policies.presenters import FEATURES
from tenants.policy.availability.enforcement import Capability
from tenants.policy.content_exclusion_syntax import format_exclusions, parse_exclusions
from tenants.policy.overrides.document import parse_override

_EXCLUSION_ROWS: Final = 6


class OverrideForm(forms.Form):
    features_restriction = all_or_some_field(
        _("Completion modes"), _("No further restriction"), _("Only these")
    )
    features = forms.MultipleChoiceField(
        label=_("Allowed completion modes"),
        choices=list(FEATURES.items()),
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )
    models_restriction = all_or_some_field(
        _("Models"), _("No further restriction"), _("Only these")
    )
    models = names_field(_("Allowed models"), _("Requests for other models are rejected."))
    regions_restriction = all_or_some_field(
        _("Regions"), _("No further restriction"), _("Only these")
    )
    regions = names_field(_("Allowed regions"), _("Gateways in other regions reject requests."))
    content_exclusion = lines_field(
        _("Content exclusion"),
        _(
            "In addition to the tenant's rules. For each repository, enter its name and a "
            "colon, then one pattern per line, each after a dash."
        ),
        rows=_EXCLUSION_ROWS,
    )
    has_secret_filter = checkbox_field(_("Secret filter"))
    has_public_code_filter = checkbox_field(_("Public code filter"))
    user_limit_per_minute = per_minute_field(_("Per user: requests per minute"))
    user_limit_burst = burst_field(_("Per user: burst size in requests"))
    key_limit_per_minute = per_minute_field(_("Per key: requests per minute"))
    key_limit_burst = burst_field(_("Per key: burst size in requests"))
    max_key_lifetime_days = key_days_field(_("Maximum lifetime of new keys in days"))
    is_mfa_required = checkbox_field(_("Require two-factor authentication"))

    def __init__(
        self, data: QueryDict | None, *, override: PolicyOverride, choices: PolicyChoices
    ) -> None:
        """Build the fields. Their initial values are those of `override`."""
        super().__init__(data, initial=initial_of(override))
        offer_policy_choices(self, override, choices)
        if choices.is_missing(Capability.PUBLIC_CODE_FILTER):
            field = self.fields["has_public_code_filter"]
            # A rule that is on can still be switched off.
            field.disabled = not override.has_public_code_filter
            field.help_text = str(WHY_NOT_ENFORCED["has_public_code_filter"])


def iterate_field_groups(form: OverrideForm) -> Iterator[FieldGroup]:
    for title, rows in _GROUPS:
        yield FieldGroup(str(title), "", [[form[name] for name in row] for row in rows])


def initial_of(override: PolicyOverride) -> dict[str, Any]:
    # Without a restriction, all boxes are ticked.
    features = FEATURES if override.features is None else override.features
    return {
        **{name: getattr(override, name) for name in _UNCONVERTED_FIELDS},
        "features_restriction": ALL if override.features is None else ONLY,
        "features": [str(feature) for feature in features],
        "content_exclusion": format_exclusions(override.content_exclusion),
        **initial_names("models", override.models),
        **initial_names("regions", override.regions),
        **initial_rate("user_limit", override.user_limit),
        **initial_rate("key_limit", override.key_limit),
    }


def override_of(cleaned: dict[str, Any]) -> PolicyOverride:
    """Return the override of the form's fields. Raises InvalidValue."""
    document = {
        **{name: cleaned[name] for name in _UNCONVERTED_FIELDS},
        "features": cleaned["features"] if cleaned["features_restriction"] == ONLY else None,
        "content_exclusion": parse_exclusions(cleaned["content_exclusion"]),
        "models": names_of(cleaned, "models"),
        "regions": names_of(cleaned, "regions"),
        "user_limit": rate_of(cleaned, "user_limit"),
        "key_limit": rate_of(cleaned, "key_limit"),
    }
    return parse_override(document)


# Fields whose values are the same in the form, the override and its JSON document.
_UNCONVERTED_FIELDS: Final = (
    "has_secret_filter",
    "has_public_code_filter",
    "max_key_lifetime_days",
    "is_mfa_required",
)
# Titles, and rows of field names.
_GROUPS: Final = (
    (
        _("Allowed completions"),
        (
            ("features_restriction",),
            ("features",),
            ("models_restriction",),
            ("models",),
            ("regions_restriction",),
            ("regions",),
        ),
    ),
    (
        _("Exclusion and filters"),
        (("content_exclusion",), ("has_secret_filter",), ("has_public_code_filter",)),
    ),
    (
        _("Limits"),
        (
            ("user_limit_per_minute", "user_limit_burst"),
            ("key_limit_per_minute", "key_limit_burst"),
        ),
    ),
    (_("Keys and sign-in"), (("max_key_lifetime_days",), ("is_mfa_required",))),
)
