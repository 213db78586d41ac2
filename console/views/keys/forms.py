"""The forms that create or rotate an API key.

They offer the lifetimes that the policy allows.
"""

from datetime import datetime, time, timedelta
from typing import Any, Final

from django import forms
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from caret.contracts.api_key import KeyKind
from console.texts.labels import KEY_KIND_LABELS
from console.views.keys.presenters import (
    API_NAMES,
    MODE_NAMES,
    PRESET_NAMES,
    PRESET_SCOPES,
    KeyPreset,
)
from tenants.base.validation.text import MAX_REASON_CHARS
from tenants.identity.api_keys.operations import MAX_OVERLAP
from tenants.identity.api_keys.scopes import KeyScope
from tenants.identity.api_keys.validation import MAX_NAME_CHARS

# Values of `lifetime`, besides numbers of days.
NEVER: Final = "never"
ON_A_DAY: Final = "day"
KEEP: Final = "keep"  # only for a rotation
_LIFETIMES_DAYS: Final = (1, 7, 30, 90, 180, 365)
_DEFAULT_DAYS: Final = 90
_MAX_YEAR: Final = 9_000  # well before 9999, the last year of Python's dates
_MAX_NETWORKS_CHARS: Final = 2_000
# Hours for which the old secret stays valid after a rotation. The last is the maximum.
_OVERLAPS_H: Final = (0, 1, 24, 72, MAX_OVERLAP // timedelta(hours=1))


class KeyLifetimeForm(forms.Form):
    """The fields for the lifetime of a key, which all forms of keys have."""

    lifetime = forms.ChoiceField(label=_("Expires"))
    day = forms.DateField(
        label=_("Last day"), required=False, widget=forms.DateInput({"type": "date"}, "%Y-%m-%d")
    )

    def set_choices(self, choices: list[tuple[str, str]], initial: str) -> None:
        """Set the choices of `lifetime`: values and titles."""
        field = self.fields["lifetime"]
        assert isinstance(field, forms.ChoiceField)
        field.choices, field.initial = choices, initial

    def clean(self) -> dict[str, Any]:
        if self.cleaned_data.get("lifetime") == ON_A_DAY and "day" in self.cleaned_data:
            day = self.cleaned_data["day"]
            if day is None or day.year > _MAX_YEAR:
                self.add_error("day", gettext("Choose a day."))
        return self.cleaned_data

    def expires_at(self, now: datetime) -> datetime | None:
        """Return when the key expires; None: never.

        A chosen day is the last one: the key expires when it ends in the user's time zone.
        """
        lifetime = self.cleaned_data["lifetime"]
        if lifetime == NEVER:
            return None
        if lifetime == ON_A_DAY:
            next_day = self.cleaned_data["day"] + timedelta(days=1)
            return timezone.make_aware(datetime.combine(next_day, time()))
        return now + timedelta(days=int(lifetime))


class BaseKeyForm(KeyLifetimeForm):
    """The fields of all forms that create a key."""

    name = forms.CharField(
        label=_("Name"),
        max_length=MAX_NAME_CHARS,
        widget=forms.TextInput({"autocomplete": "off", "autofocus": True}),
        help_text=_("Where you use the key, such as “Ada’s laptop”."),
    )
    modes = forms.MultipleChoiceField(
        label=_("Modes"),
        required=False,
        choices=[(scope.value, name) for scope, name in MODE_NAMES.items()],
        initial=[KeyScope.INLINE.value, KeyScope.FIM.value],
        widget=forms.CheckboxSelectMultiple,
    )
    networks = forms.CharField(
        label=_("Networks"),
        required=False,
        max_length=_MAX_NETWORKS_CHARS,
        widget=forms.Textarea({"rows": 3, "class": "mono", "placeholder": "192.0.2.0/24"}),
        help_text=_(
            "Enter one network per line. The key works only from these networks. Leave empty "
            "to allow all networks."
        ),
    )

    def limit_lifetime(self, max_days: int | None) -> None:
        """Offer lifetimes of at most `max_days`; None: also unlimited ones."""
        never = [(NEVER, gettext("Never"))] if max_days is None else []
        default = _DEFAULT_DAYS if max_days is None else min(_DEFAULT_DAYS, max_days)
        self.set_choices([*_lifetime_choices(max_days), *never], str(default))


class NewKeyForm(BaseKeyForm):
    kind = forms.ChoiceField(
        label=_("Kind"),
        choices=list(KEY_KIND_LABELS.items()),
        initial=KeyKind.DEVELOPER.value,
        widget=forms.RadioSelect,
    )
    owner = forms.EmailField(
        label=_("Owner"),
        required=False,
        widget=forms.EmailInput({"list": "members", "autocomplete": "off"}),
        help_text=_("E-mail address of a member. When the membership ends, the key is revoked."),
    )
    preset = forms.ChoiceField(
        label=_("Completions"),
        required=False,
        choices=[(preset.value, name) for preset, name in PRESET_NAMES.items()],
        initial=KeyPreset.CODE.value,
        widget=forms.RadioSelect,
        help_text=_(
            "What the key can request from gateways. Editors need only code completion. Choose "
            "Advanced to select individual modes."
        ),
    )
    scopes = forms.MultipleChoiceField(
        label=_("REST API"),
        required=False,
        choices=[(scope.value, name) for scope, name in API_NAMES.items()],
        widget=forms.CheckboxSelectMultiple,
        help_text=_("What a program can do with the key under /api/v1."),
    )

    def clean(self) -> dict[str, Any]:
        super().clean()
        # An invalid owner is not in `cleaned_data`, and has its own error.
        if not self._is_service() and self.cleaned_data.get("owner") == "":
            self.add_error("owner", gettext("Enter the owner of the key."))
        if "kind" in self.cleaned_data and not self.read_scopes():
            field = "modes" if self._is_advanced() else "preset"
            self.add_error(field, gettext("Select what the key can do."))
        return self.cleaned_data

    def read_scopes(self) -> frozenset[KeyScope]:
        """Return the chosen scopes. The field `scopes` counts only for service keys."""
        api_scopes = self.cleaned_data.get("scopes", ()) if self._is_service() else ()
        return self._read_modes() | frozenset(KeyScope(name) for name in api_scopes)

    def _read_modes(self) -> frozenset[KeyScope]:
        if self._is_advanced():
            return frozenset(KeyScope(name) for name in self.cleaned_data.get("modes", ()))
        return PRESET_SCOPES[KeyPreset(self.cleaned_data["preset"])]

    def _is_advanced(self) -> bool:
        """Return whether the field `modes` counts: the preset is missing or ADVANCED."""
        return self.cleaned_data.get("preset", "") in ("", KeyPreset.ADVANCED)

    def _is_service(self) -> bool:
        return self.cleaned_data.get("kind") == KeyKind.SERVICE


class RotateKeyForm(KeyLifetimeForm):
    # In hours, one of _OVERLAPS_H.
    overlap = forms.TypedChoiceField(label=_("Old secret expires"), coerce=int, initial="24")
    reason = forms.CharField(
        label=_("Reason"),
        required=False,
        max_length=MAX_REASON_CHARS,
        help_text=_("Recorded in the audit log."),
        widget=forms.TextInput({"autocomplete": "off"}),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        overlap = self.fields["overlap"]
        assert isinstance(overlap, forms.ChoiceField)
        overlap.choices = [(str(hours), _format_hours(hours)) for hours in _OVERLAPS_H]

    def limit_lifetime(self, max_days: int | None) -> None:
        """Offer the current expiry and lifetimes of at most `max_days`; None: no maximum.

        "Never" is not offered: the operation cannot remove an expiry, because None keeps it.
        """
        self.set_choices([(KEEP, gettext("Unchanged")), *_lifetime_choices(max_days)], KEEP)

    def new_expiry(self, now: datetime) -> datetime | None:
        """Return when the key expires after the rotation; None: as before."""
        return None if self.cleaned_data["lifetime"] == KEEP else self.expires_at(now)


def _lifetime_choices(max_days: int | None) -> list[tuple[str, str]]:
    """Return the choices: the usual numbers of days up to `max_days`, `max_days`, and ON_A_DAY."""
    days = [num for num in _LIFETIMES_DAYS if max_days is None or num <= max_days]
    if max_days is not None and max_days not in days:
        days.append(max_days)
    return [
        *((str(num), _format_days(num)) for num in days),
        (ON_A_DAY, gettext("On a specific day")),
    ]


def _format_days(days: int) -> str:
    if days == 365:
        return gettext("After one year")
    return (
        gettext("After one day") if days == 1 else gettext("After %(days)d days") % {"days": days}
    )


def _format_hours(hours: int) -> str:
    if hours == 0:
        return gettext("Immediately")
    return gettext("After one hour") if hours < 24 else _format_days(hours // 24)
