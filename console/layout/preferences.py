"""Display preferences of the console: language, time zone, light or dark theme.

They are stored in cookies, so that pages need no query for them, and they work before sign-in. None
of them identifies a user. A script stores the browser's time zone at the first visit. Without
scripts, times are in UTC until the user chooses a zone.
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
    zone: str  # an IANA name
    theme: str  # one of THEMES


class PreferencesMiddleware:
    """Activates the time zone. It comes after Django's LocaleMiddleware."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        # Operators compare times with logs, so their pages show UTC, and say so.
        zone = settings.TIME_ZONE if is_operator_path(request) else preferences_of(request).zone
        with timezone.override(zoneinfo.ZoneInfo(zone)):
            return self._get_response(request)


def preferences_of(request: HttpRequest) -> Preferences:
    zone = request.COOKIES.get(ZONE_COOKIE, "")
    theme = request.COOKIES.get(THEME_COOKIE, "")
    return Preferences(
        language=translation.get_language() or settings.LANGUAGE_CODE,
        zone=zone if zone in list_time_zones() else settings.TIME_ZONE,
        theme=theme if theme in THEMES else "",
    )


def store_preferences(response: HttpResponse, preferences: Preferences) -> None:
    cookies = {
        settings.LANGUAGE_COOKIE_NAME: preferences.language,
        ZONE_COOKIE: preferences.zone,
        THEME_COOKIE: preferences.theme,
    }
    for name, value in cookies.items():
        response.set_cookie(
            name, value, max_age=_YEAR_S, secure=settings.HTTPS, samesite="Lax", httponly=False
        )


@cache
def list_time_zones() -> frozenset[str]:
    """Return UTC and the zones of continents and oceans, without old names such as US/Eastern."""
    return frozenset(
        name
        for name in zoneinfo.available_timezones()
        if name == "UTC" or name.partition("/")[0] in _CONTINENTS
    )


_CONTINENTS: Final = frozenset(
    {
        *("Africa", "America", "Antarctica", "Arctic", "Asia"),
        *("Atlantic", "Australia", "Europe", "Indian", "Pacific"),
    }
)
