"""Display preferences of the console: language, time zone, light or dark theme.

The preferences are stored in cookies. Therefore pages need no query for them, and users have them
before they sign in. None of the cookies identifies a user. A script stores the browser's time zone
at the first visit. Without scripts, times are in UTC until the user chooses a time zone.
"""

import zoneinfo
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Final

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import timezone, translation
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from console.sign_in.sessions.operator_cookies import is_operator_path

ZONE_COOKIE: Final = "caret-zone"
THEME_COOKIE: Final = "caret-theme"
_YEAR_S: Final = 365 * 24 * 3600
THEMES: Final[dict[str, Promise]] = {
    "": _("System default"),
    "light": _("Light"),
    "dark": _("Dark"),
}


@dataclass(frozen=True, slots=True)
class Preferences:
    language: str  # one of settings.LANGUAGES
    zone: str  # IANA name of the time zone
    theme: str  # one of THEMES; "": as the browser prefers


class PreferencesMiddleware:
    """Activates the time zone of the request. It must come after Django's LocaleMiddleware."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        # Operators compare times with logs, so the times on their pages are in UTC.
        zone = settings.TIME_ZONE if is_operator_path(request) else preferences_of(request).zone
        with timezone.override(zoneinfo.ZoneInfo(zone)):
            return self._get_response(request)


def preferences_of(request: HttpRequest) -> Preferences:
    """Return the preferences in the cookies, with defaults in place of invalid values."""
    zone = request.COOKIES.get(ZONE_COOKIE, "")
    theme = request.COOKIES.get(THEME_COOKIE, "")
    return Preferences(
        language=translation.get_language() or settings.LANGUAGE_CODE,
        zone=zone if zone in list_time_zones() else settings.TIME_ZONE,
        theme=theme if theme in THEMES else "",
    )


def store_preferences(response: HttpResponse, preferences: Preferences) -> None:
    """Set the cookies of the response."""
    cookies = {
        settings.LANGUAGE_COOKIE_NAME: preferences.language,
        ZONE_COOKIE: preferences.zone,
        THEME_COOKIE: preferences.theme,
    }
    for name, value in cookies.items():
        # Not HttpOnly: a script reads whether a time zone is stored.
        response.set_cookie(
            name, value, max_age=_YEAR_S, secure=settings.HTTPS, samesite="Lax", httponly=False
        )


@cache
def list_time_zones() -> frozenset[str]:
    """Return the IANA names: UTC, and the zones of continents and oceans.

    Old names such as US/Eastern are left out.
    """
    return frozenset(
        name
        for name in zoneinfo.available_timezones()
        if name == "UTC" or name.partition("/")[0] in _CONTINENTS_AND_OCEANS
    )


# The first parts of IANA names.
_CONTINENTS_AND_OCEANS: Final = frozenset(
    {
        *("Africa", "America", "Antarctica", "Arctic", "Asia"),
        *("Atlantic", "Australia", "Europe", "Indian", "Pacific"),
    }
)
