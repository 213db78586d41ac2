"""The fields that policy and override forms share, and the conversion of their values."""

from collections.abc import Mapping
from typing import Any, Final

from django import forms
from django.utils.translation import gettext_lazy as _

from caret.contracts.policy import RateLimit
from console.texts.error_messages import translate_error
from tenants.base.errors import InvalidValue
from tenants.policy.document import MAX_BURST, MAX_KEY_DAYS, MAX_PER_MINUTE

# Values of a field from `all_or_some_field`.
ALL: Final = "all"
ONLY: Final = "only"
# The maximum length of a text area. `parse_policy` checks the limits of the policy itself.
MAX_TEXT_CHARS: Final = 64_000
# HTML attributes of inputs whose text the browser must not change or complete.
AS_TYPED: Final = {"autocomplete": "off", "spellcheck": "false", "autocapitalize": "off"}
_MAX_NAME_CHARS: Final = 512  # as in inference.gateway.receive
_ROWS: Final = 4  # of a text area
_MAX_DIGITS: Final = 9  # such a number fits an integer column of Postgres


class RepositoryFileForm(forms.Form):
    """The repository and path of a file to check against content exclusion."""

    repository = forms.CharField(
        label=_("Repository"),
        required=False,
        max_length=_MAX_NAME_CHARS,
        widget=forms.TextInput(attrs=AS_TYPED | {"placeholder": "payments"}),
    )
    path = forms.CharField(
        label=_("File path"),
        required=False,
        max_length=_MAX_NAME_CHARS,
        widget=forms.TextInput(attrs=AS_TYPED | {"placeholder": "config/.env"}),
    )


def lines_field(label: Any, hint: Any = "", *, rows: int = _ROWS) -> forms.CharField:
    """Return an optional text area, whose text has one entry on each line."""
    attributes = {"class": "mono", "rows": rows, "spellcheck": "false", "autocapitalize": "off"}
    return forms.CharField(
        label=label,
        help_text=hint,
        required=False,
        max_length=MAX_TEXT_CHARS,
        widget=forms.Textarea(attrs=attributes),
    )


def all_or_some_field(label: Any, all_label: Any, some_label: Any) -> forms.ChoiceField:
    """Return the choice between all names (ALL) and chosen names (ONLY).

    A form calls this field `<name>_restriction`, next to the field `<name>` from `names_field`.
    """
    return forms.ChoiceField(
        label=label, choices=[(ALL, all_label), (ONLY, some_label)], widget=forms.RadioSelect
    )


def number_field(
    label: Any, max_value: int, hint: Any = "", *, min_value: int = 1
) -> forms.IntegerField:
    return forms.IntegerField(
        label=label, help_text=hint, required=False, min_value=min_value, max_value=max_value
    )


def per_minute_field(label: Any) -> forms.IntegerField:
    return number_field(label, MAX_PER_MINUTE)


def burst_field(label: Any) -> forms.IntegerField:
    return number_field(label, MAX_BURST)


def key_days_field(label: Any, hint: Any = "") -> forms.IntegerField:
    return number_field(label, MAX_KEY_DAYS, hint)


def checkbox_field(label: Any, hint: Any = "") -> forms.BooleanField:
    return forms.BooleanField(label=label, help_text=hint, required=False)


def parse_whole_number(text: str) -> int | None:
    """Return the number that a hidden field or a URL contains; None if the text is no number."""
    is_number = text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS
    return int(text) if is_number else None


def lines_of(text: str) -> list[str]:
    """Return the lines that are not empty, without surrounding whitespace."""
    return [line.strip() for line in text.splitlines() if line.strip()]


def names_field(label: Any, hint: Any = "") -> forms.MultipleChoiceField:
    """Return check boxes for names. The form sets the choices with `offer_names`."""
    return forms.MultipleChoiceField(
        label=label, help_text=hint, required=False, widget=forms.CheckboxSelectMultiple
    )


def offer_names(
    form: forms.Form, name: str, choices: list[tuple[str, str]], *, why_not: Any = ""
) -> None:
    """Set the choices of the field `name`.

    If `why_not` is not empty, also disable the field and its restriction, and show `why_not`.
    """
    names, restriction = form.fields[name], form.fields[f"{name}_restriction"]
    assert isinstance(names, forms.MultipleChoiceField)
    names.choices = choices
    if why_not:
        disable_field(restriction, why_not)
        names.disabled = True
        names.help_text = ""


def disable_field(field: forms.Field, reason: Any) -> None:
    """Make the field read-only, so that values from the browser are ignored. Show the reason."""
    field.disabled = True
    field.help_text = reason


def names_of(cleaned: Mapping[str, Any], name: str) -> list[str] | None:
    """Return the names that the field `name` allows, sorted; None for all."""
    return sorted(cleaned[name]) if cleaned[f"{name}_restriction"] == ONLY else None


def initial_names(name: str, names: frozenset[str] | None) -> dict[str, Any]:
    """Return the initial values of the field `name` and its restriction. `names` None: all."""
    return {f"{name}_restriction": ALL if names is None else ONLY, name: sorted(names or ())}


def initial_rate(name: str, rate: RateLimit | None) -> dict[str, int | None]:
    """Return the initial values of the two fields of a rate limit. `rate` None: no limit."""
    return {
        f"{name}_per_minute": None if rate is None else rate.per_minute,
        f"{name}_burst": None if rate is None else rate.burst,
    }


def rate_of(cleaned: Mapping[str, Any], name: str) -> dict[str, int] | None:
    """Return the rate limit as JSON; None for no limit.

    Raises InvalidValue if only one of the two numbers is there.
    """
    per_minute, burst = cleaned[f"{name}_per_minute"], cleaned[f"{name}_burst"]
    if per_minute is None and burst is None:
        return None
    for number_name, value in (("per_minute", per_minute), ("burst", burst)):
        if value is None:
            raise InvalidValue(f"{name}.{number_name}", "Enter both numbers, or neither.")
    return {"per_minute": per_minute, "burst": burst}


def add_refusal(form: forms.Form, error: InvalidValue) -> None:
    """Add the error to the field that it names: `limits_user_burst` for `limits.user.burst`.

    If the form has no such field, shorten the name from the end (`limits_user`, `limits`). If no
    field matches, add the error to the form itself.
    """
    name = error.field.replace(".", "_")
    while name and name not in form.fields:
        name = name.rpartition("_")[0]
    form.add_error(name or None, translate_error(error))
