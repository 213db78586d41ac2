"""The page of display preferences: language, time zone and theme. Cookies store them."""

from typing import Final

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone, translation
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from console.layout.htmx import render_page
from console.layout.lists.long_select import LongSelect
from console.layout.preferences import (
    THEMES,
    Preferences,
    list_time_zones,
    preferences_of,
    store_preferences,
)
from console.sign_in.current_member import CurrentMember, member_required

_PAGE: Final = "console/account/preferences.html"


class PreferencesForm(forms.Form):
    language = forms.ChoiceField(label=_("Language"), choices=settings.LANGUAGES)
    zone = forms.ChoiceField(label=_("Time zone"), widget=LongSelect)
    theme = forms.ChoiceField(
        label=_("Appearance"),
        choices=list(THEMES.items()),
        required=False,
        widget=forms.RadioSelect,
    )

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]  # of forms.Form
        field = self.fields["zone"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [(name, name.replace("_", " ")) for name in sorted(list_time_zones())]


@require_http_methods(["GET", "POST"])
@member_required
def preferences(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    if request.method == "GET":
        return _render_page(request, member, PreferencesForm(initial=_initial_values(request)))
    form = PreferencesForm(request.POST)
    if not form.is_valid():
        return _render_page(request, member, form, status=400)
    response = redirect("console:preferences")
    store_preferences(response, Preferences(**form.cleaned_data))
    with translation.override(form.cleaned_data["language"]):
        messages.success(request, gettext("Preferences saved in this browser."))
    return response


def _render_page(
    request: HttpRequest, member: CurrentMember, form: PreferencesForm, status: int = 200
) -> HttpResponse:
    return render_page(request, member, _PAGE, {"form": form, "now": timezone.now()}, status=status)


def _initial_values(request: HttpRequest) -> dict[str, str]:
    current = preferences_of(request)
    return {"language": current.language, "zone": current.zone, "theme": current.theme}
