"""The form fields for a file, which content exclusion is checked for."""

from typing import Final

from django import forms
from django.utils.translation import gettext_lazy as _

_MAX_NAME_CHARS: Final = 512  # as in gateways
AS_TYPED: Final = {"autocomplete": "off", "spellcheck": "false", "autocapitalize": "off"}


class PlaceForm(forms.Form):
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
