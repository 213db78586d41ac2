"""The common fields of policy and override forms, and their conversion to JSON."""

from collections.abc import Mapping
from typing import Any, Final

from django import forms
from django.utils.translation import gettext_lazy as _

from caret.contracts.policy import RateLimit
from console.texts.error_messages import translate_error
from tenants.base.errors import InvalidValue
from tenants.policy.document import MAX_BURST, MAX_KEY_DAYS, MAX_PER_MINUTE

ALL: Final = "all"
ONLY: Final = "only"
# The maximum length of a form field. The policy's own limits are checked when it is parsed.
MAX_TEXT_CHARS: Final = 64_000
AS_TYPED: Final = {"autocomplete": "off", "spellcheck": "false", "autocapitalize": "off"}
_MAX_NAME_CHARS: Final = 512  # as in gateways
_ROWS: Final = 4
_MAX_DIGITS: Final = 9


class RepositoryFileForm(forms.Form):
    """A file to check against content exclusion."""

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
    """Return a field with one name or pattern on each line."""
    attributes = {"class": "mono", "rows": rows, "spellcheck": "false", "autocapitalize": "off"}
    return forms.CharField(
        label=label,
        help_text=hint,
        required=False,
        max_length=MAX_TEXT_CHARS,
        widget=forms.Textarea(attrs=attributes),
    )


def all_or_some_field(label: Any, all_label: Any, some_label: Any) -> forms.ChoiceField:
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


def days_field(label: Any, hint: Any = "") -> forms.IntegerField:
    return number_field(label, MAX_KEY_DAYS, hint)


def checkbox_field(label: Any, hint: Any = "") -> forms.BooleanField:
    return forms.BooleanField(label=label, help_text=hint, required=False)


def parse_whole_number(text: str) -> int | None:
    """Parse a number that one of our pages wrote; None: the text is not a number."""
    is_number = text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS
    return int(text) if is_number else None


def lines_of(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def names_field(label: Any, hint: Any = "") -> forms.MultipleChoiceField:
    """Return a field whose names are chosen from a list that the form fills in."""
    return forms.MultipleChoiceField(
        label=label, help_text=hint, required=False, widget=forms.CheckboxSelectMultiple
    )


def offer_names(
    form: forms.Form, name: str, choices: list[tuple[str, str]], *, why_not: Any = ""
) -> None:
    """Set the choices of `name`. With `why_not`, disable both of its fields and show `why_not`."""
    names, radio = form.fields[name], form.fields[f"{name}_restriction"]
    assert isinstance(names, forms.MultipleChoiceField)
    names.choices = choices
    if why_not:
        disable_field(radio, why_not)
        names.disabled = True
        names.help_text = ""


def disable_field(field: forms.Field, reason: Any) -> None:
    """Make the field read-only, whatever the browser sends, and show the reason."""
    field.disabled = True
    field.help_text = reason


def names_of(cleaned: Mapping[str, Any], name: str) -> list[str] | None:
    """Return the chosen names; None for all."""
    return sorted(cleaned[name]) if cleaned[f"{name}_restriction"] == ONLY else None


def initial_names(name: str, names: frozenset[str] | None) -> dict[str, Any]:
    return {f"{name}_restriction": ALL if names is None else ONLY, name: sorted(names or ())}


def initial_rate(name: str, rate: RateLimit | None) -> dict[str, int | None]:
    return {
        f"{name}_per_minute": None if rate is None else rate.per_minute,
        f"{name}_burst": None if rate is None else rate.burst,
    }


def rate_of(cleaned: Mapping[str, Any], name: str) -> dict[str, int] | None:
    """Return the rate; None for no limit. Raises InvalidValue if one of the numbers is missing."""
    per_minute, burst = cleaned[f"{name}_per_minute"], cleaned[f"{name}_burst"]
    if per_minute is None and burst is None:
        return None
    for number_name, value in (("per_minute", per_minute), ("burst", burst)):
        if value is None:
            raise InvalidValue(f"{name}.{number_name}", "Enter both numbers, or neither.")
    return {"per_minute": per_minute, "burst": burst}


def add_refusal(form: forms.Form, error: InvalidValue) -> None:
    """Add the error to its field, such as `limits_user_burst` for `limits.user.burst`.

    Without such a field, the closest outer one gets it, such as `limits_user`, or else the form.
    """
    name = error.field.replace(".", "_")
    while name and name not in form.fields:
        name = name.rpartition("_")[0]
    form.add_error(name or None, translate_error(error))
