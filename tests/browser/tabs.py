"""Browser tabs, and the errors that the browser reports in them."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Final, Literal

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page

from tests.browser.sessions import Session

_REPORTED_TYPES: Final = ("warning", "error")
_TIMEOUT_MS: Final = 60_000  # for two busy cores


@dataclass(frozen=True, slots=True)
class Look:
    """The settings of a browser that change how it shows pages."""

    width: int = 1440
    scheme: Literal["light", "dark"] = "light"
    has_scripts: bool = True
    motion: Literal["no-preference", "reduce"] = "no-preference"


DESKTOP: Final = Look()
PHONE: Final = Look(width=390)
_HEIGHTS: Final = {390: 844}  # by width: a phone; all other screens are 900 high


@dataclass(slots=True)
class Tabs:
    """The tabs of one console."""

    browser: Browser
    url: str
    contexts: ExitStack
    errors: list[str] = field(default_factory=list)  # blocked scripts, errors, missing files

    def open(self, session: Session | None = None, look: Look = DESKTOP) -> Page:
        """Open an empty page in a new browser context that has only this session."""
        context = self.browser.new_context(
            base_url=self.url,
            viewport={"width": look.width, "height": _HEIGHTS.get(look.width, 900)},
            color_scheme=look.scheme,
            java_script_enabled=look.has_scripts,
            reduced_motion=look.motion,
            locale="en-GB",
            timezone_id="Europe/Oslo",
        )
        self.contexts.callback(context.close)
        context.set_default_timeout(_TIMEOUT_MS)
        return self._new_page(context, session)

    def sign_in(self, tab: Page, session: Session | None) -> None:
        """Give the tab's browser this session."""
        if session is not None:
            name, value = session
            tab.context.add_cookies([{"name": name, "value": value, "url": self.url}])

    def _new_page(self, context: BrowserContext, session: Session | None) -> Page:
        page = context.new_page()
        self.sign_in(page, session)
        page.on("console", lambda message: self._record_message(message))
        page.on("pageerror", lambda error: self.errors.append(f"{page.url}: {error}"))
        return page

    def _record_message(self, message: ConsoleMessage) -> None:
        if message.type in _REPORTED_TYPES:
            self.errors.append(f"{message.location['url']}: {message.text}")


@contextmanager
def tabs_of(browser: Browser, url: str) -> Iterator[Tabs]:
    """Close all tabs at the end, and fail if the browser reported errors in them."""
    with ExitStack() as contexts:
        tabs = Tabs(browser, url, contexts)
        yield tabs
    assert not tabs.errors, tabs.errors
