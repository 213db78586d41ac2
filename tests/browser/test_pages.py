"""Each page in the browser: accessibility, layout on a phone, and the size of its first load.

The default suite opens one page of each kind. It checks the colour rules once for each combination
of text and backgrounds, on the first page that shows it. The deep suite opens every page, and
checks the colour rules on each of them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, Literal

import pytest
from playwright.sync_api import Browser, Response, expect
from playwright.sync_api import Page as Tab

from tests.browser.axe import ColourChecks, find_colour_violations, find_violations_except_colour
from tests.browser.pages import Page, all_pages
from tests.browser.sample_data import Scene, Visitor
from tests.browser.tabs import PHONE, Look, Tabs, tabs_of

_MAX_STOPS: Final = 30  # presses of the Tab key
# Returns the focused element, and whether the focus changes its look. A text editor has a cursor
# instead. Returns null at the end of the page, or if the Tab key has not moved the focus: the text
# editor of the playground uses the key itself, and tells the user so.
_FOCUSED: Final = """() => {
  const element = document.activeElement;
  if (!element || element === document.body || element === window.lastStop) return null;
  window.lastStop = element;
  const looks = () => {
    const style = getComputedStyle(element);
    return [style.outline, style.boxShadow, style.borderColor, style.backgroundColor].join(" ");
  };
  const focused = looks(), box = element.getBoundingClientRect();
  element.blur();
  const differs = looks() !== focused || element.isContentEditable;
  const seen = box.width > 0 && box.height > 0 && differs;
  element.focus({ focusVisible: true });
  return [element.outerHTML.slice(0, 120), seen];
}"""
# Let the Tab key continue from the start of an element, as if it had not been pressed before.
_START_AT: Final = """selector => {
  const element = document.querySelector(selector);
  element.tabIndex = -1;
  element.focus();
  delete window.lastStop;
}"""
_HEADINGS: Final = """() => [...document.querySelectorAll("h1,h2,h3,h4,h5,h6")]
  .filter(heading => heading.checkVisibility())
  .map(heading => [Number(heading.tagName[1]), heading.innerText.trim()])"""
# Returns the sizes in bytes of the page and of everything that it loads, by URL. Files in the
# browser's cache count, too.
_SIZES: Final = """() => Object.fromEntries([
  ...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource"),
].map(({ name, encodedBodySize }) => [name, encodedBodySize]))"""
_PAGE_SIZE: Final = "() => performance.getEntriesByType('navigation')[0].encodedBodySize"
_MAX_PAGE_BYTES: Final = 60_000  # of the HTML, compressed
# The default suite opens only these pages without scripts, and tests navigation with the Tab key
# only here.
_ONE_OF_EACH_LAYOUT: Final = frozenset({"overview", "playground", "sign-in", "operators-sign-in"})
# One page of each kind, and pages with content of their own. The default suite opens these pages
# with scripts. It opens no further list, form or confirmation, which have the same parts.
_ONE_OF_EACH_KIND: Final = _ONE_OF_EACH_LAYOUT | {
    *("not-found", "help-one", "help-rest-api", "onboarding", "editors", "search"),
    *("sign-in-code", "sign-up-confirm", "device-with-code", "account-confirm-passkey"),
    *("account-second-factor-with-app", "account-recovery-codes", "account-my-data"),
    *("keys", "keys-new", "keys-one", "keys-one-revoke", "members", "members-one", "teams-one"),
    *("sign-in-settings", "sign-in-settings-provider-saml"),
    *("policies", "policies-edit", "policies-review", "policies-explain", "content-exclusion"),
    *("budgets-one-one", "billing", "billing-invoices-one", "performance", "usage", "cache"),
    *("usage-requests-one", "privacy", "privacy-data-subjects-one", "retention"),
    *("retention-certificates-one", "exports-new", "exports-one", "audit", "audit-sinks-one"),
    *("operators", "operators-capacity", "operators-experiments", "operators-pools"),
    *("operators-tenants-one", "operators-evaluations-one"),
}
_PAGES: Final = all_pages()


def _pages_with_deep_ones(default: frozenset[str]) -> list[object]:
    """Return all pages as parameters. Those not in `default` are only for the deep suite."""
    return [
        pytest.param(page, marks=() if page.name in default else pytest.mark.deep)
        for page in _PAGES
    ]


@pytest.fixture(
    scope="module", params=_pages_with_deep_ones(_ONE_OF_EACH_KIND), ids=lambda page: page.name
)
def page(request: pytest.FixtureRequest) -> Page:
    assert isinstance(request.param, Page)
    return request.param


@dataclass(slots=True)
class Windows:
    """One tab for each visitor, with scripts and without."""

    tabs: Tabs
    scene: Scene
    _open: dict[tuple[Visitor, bool], Tab] = field(default_factory=dict)

    def load(self, page: Page, *, has_scripts: bool = True) -> tuple[Tab, Response]:
        visitor_and_scripts = (page.visitor, has_scripts)
        if visitor_and_scripts not in self._open:
            look = Look(motion="reduce", has_scripts=has_scripts)
            self._open[visitor_and_scripts] = self.tabs.open(look=look)
        tab = self._open[visitor_and_scripts]
        # A new session: in one that is minutes old, the console asks for the password again.
        self.tabs.sign_in(tab, self.scene.session(page.visitor))
        path = page.path_in(self.scene)
        response = tab.goto(path)
        assert response is not None
        assert (response.status, page.is_at(tab.url, path)) == (page.status, True), tab.url
        if page.status != 200:
            self.tabs.errors.clear()  # the browser reports the status
        return tab, response

    def expect_no_errors(self) -> None:
        errors = self.tabs.errors[:]
        self.tabs.errors.clear()
        assert not errors, errors


@pytest.fixture(scope="module")
def windows(browser: Browser, console_url: str, scene: Scene) -> Iterator[Windows]:
    with tabs_of(browser, console_url) as tabs:
        yield Windows(tabs, scene)


@pytest.fixture(scope="module")
def colours() -> ColourChecks:
    return ColourChecks()


@pytest.fixture(scope="module")
def tab(windows: Windows, page: Page) -> Iterator[Tab]:
    """Load the page once for all of its tests."""
    loaded, response = windows.load(page)
    assert "<h1" in response.text()  # present without scripts
    yield loaded
    loaded.set_viewport_size({"width": 1440, "height": 900})  # one test makes it a phone's
    windows.expect_no_errors()


def test_first_load_is_small(tab: Tab, page: Page) -> None:
    sizes = tab.evaluate(_SIZES)

    assert 0 < sum(sizes.values()) < page.max_first_load_bytes, sizes


def test_page_itself_is_small(tab: Tab) -> None:
    assert 0 < tab.evaluate(_PAGE_SIZE) < _MAX_PAGE_BYTES


def test_headings_form_one_tree(tab: Tab) -> None:
    headings = tab.evaluate(_HEADINGS)

    levels = [level for level, _ in headings]
    assert levels[:1] == [1], headings
    assert levels.count(1) == 1, headings
    assert all(after - before <= 1 for before, after in pairwise(levels)), headings
    assert all(text for _, text in headings)


def test_axe_finds_no_serious_problems(tab: Tab) -> None:
    assert find_violations_except_colour(tab) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_new_combinations_of_colours_have_contrast(
    tab: Tab, colours: ColourChecks, scheme: Literal["light", "dark"]
) -> None:
    tab.emulate_media(color_scheme=scheme)

    assert colours.find_violations_in_new_combinations(tab) == []


@pytest.mark.deep
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_colours_have_contrast(tab: Tab, scheme: Literal["light", "dark"]) -> None:
    tab.emulate_media(color_scheme=scheme)

    assert find_colour_violations(tab) == []


@pytest.mark.deep
@pytest.mark.parametrize("start", ["main", "body"])
def test_keyboard_focus_is_visible(tab: Tab, start: str) -> None:
    tab.evaluate(_START_AT, start)

    assert _expect_visible_focus(tab) > 0


@pytest.mark.parametrize(
    "page",
    [page for page in _PAGES if page.name in _ONE_OF_EACH_LAYOUT],
    ids=lambda page: page.name,
)
def test_keyboard_focus_is_visible_in_each_layout(windows: Windows, page: Page) -> None:
    tab = windows.tabs.open(windows.scene.session(page.visitor))
    tab.goto(page.path_in(windows.scene))

    assert _expect_visible_focus(tab) > 0
    windows.expect_no_errors()


def _expect_visible_focus(tab: Tab) -> int:
    """Press the Tab key until the end of the page, or _MAX_STOPS times.

    Each element that gets the focus must show it. Return the number of these elements.
    """
    stops_without_focus, num_stops = [], 0
    for _ in range(_MAX_STOPS):
        tab.keyboard.press("Tab")
        stop = tab.evaluate(_FOCUSED)
        if stop is None:
            break
        num_stops += 1
        html, has_visible_focus = stop
        if not has_visible_focus:
            stops_without_focus.append(html)

    assert stops_without_focus == []
    return num_stops


def test_a_phone_needs_no_horizontal_scrolling(tab: Tab) -> None:
    tab.set_viewport_size({"width": PHONE.width, "height": 844})

    assert tab.evaluate("document.documentElement.scrollWidth") <= PHONE.width


@pytest.mark.parametrize(
    "page", _pages_with_deep_ones(_ONE_OF_EACH_LAYOUT), ids=lambda page: page.name
)
def test_heading_is_visible_without_scripts(windows: Windows, page: Page) -> None:
    tab, _ = windows.load(page, has_scripts=False)

    expect(tab.locator("h1")).to_be_visible()
    windows.expect_no_errors()


def test_pages_of_each_kind_are_known() -> None:
    assert {page.name for page in _PAGES} >= _ONE_OF_EACH_KIND
