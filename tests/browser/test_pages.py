"""Each page, in the browser: everybody can read it and use it, and it is quick to load."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

import pytest
from playwright.sync_api import Browser, Request, expect
from playwright.sync_api import Page as Tab

from tests.browser.axe import serious, serious_of_colour
from tests.browser.pages import Page, all_pages
from tests.browser.scene import Scene, Visitor
from tests.browser.tabs import PHONE, Look, Tabs, tabs_of

_MAX_STOPS: Final = 30  # of the tabulator key
# The focused element, and whether it looks unlike it does without the focus, or shows where one
# writes. Null at the end, or where the key leads no further: an editor keeps it, and says so.
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
_HEADINGS: Final = """() => [...document.querySelectorAll("h1,h2,h3,h4,h5,h6")]
  .filter(heading => heading.checkVisibility())
  .map(heading => [Number(heading.tagName[1]), heading.innerText.trim()])"""


@dataclass(frozen=True, slots=True)
class Visit:
    tab: Tab
    requests: list[Request]


@pytest.fixture(scope="module", params=all_pages(), ids=lambda page: page.name)
def page(request: pytest.FixtureRequest) -> Page:
    assert isinstance(request.param, Page)
    return request.param


@dataclass(slots=True)
class Windows:
    """One of each visitor, with scripts and without: a page is a tab in it."""

    tabs: Tabs
    scene: Scene
    _open: dict[tuple[Visitor, bool], Tab] = field(default_factory=dict)

    def open(self, visitor: Visitor, *, has_scripts: bool = True) -> Tab:
        which = (visitor, has_scripts)
        if which not in self._open:
            look = Look(motion="reduce", has_scripts=has_scripts)
            self._open[which] = self.tabs.open(look=look)
        # Who gave his password minutes ago would be asked for it again.
        return self.tabs.open_beside(self._open[which], self.scene.session(visitor))

    def close(self, tab: Tab) -> None:
        """What the browser complained of in it fails the test."""
        tab.close()
        complaints = self.tabs.complaints[:]
        self.tabs.complaints.clear()
        assert not complaints, complaints


@pytest.fixture(scope="module")
def windows(browser: Browser, console_url: str, scene: Scene) -> Iterator[Windows]:
    with tabs_of(browser, console_url) as tabs:
        yield Windows(tabs, scene)


@pytest.fixture(scope="module")
def visit(windows: Windows, page: Page) -> Iterator[Visit]:
    """One for all tests of a page."""
    tab, requests = windows.open(page.visitor), []
    # As who comes for the first time: nothing of another page's is there.
    protocol = tab.context.new_cdp_session(tab)
    protocol.send("Network.enable")  # else the next one does nothing
    protocol.send("Network.setCacheDisabled", {"cacheDisabled": True})
    tab.on("requestfinished", lambda request: requests.append(request))
    load(windows, page, tab)
    tab.wait_for_load_state("networkidle")  # with the parts that it fetches
    yield Visit(tab, requests)
    windows.close(tab)


def load(windows: Windows, page: Page, tab: Tab) -> None:
    path = page.path_in(windows.scene)
    answer = tab.goto(path)
    assert answer is not None
    assert (answer.status, page.is_at(tab.url, path)) == (page.status, True), tab.url
    if page.status != 200:
        windows.tabs.complaints.clear()  # of that status


def test_its_first_load_is_small(visit: Visit, page: Page) -> None:
    sizes = {request.url: request.sizes()["responseBodySize"] for request in visit.requests}

    assert sum(sizes.values()) < page.max_first_load_bytes, sizes


def test_its_headings_are_a_tree_of_one_trunk(visit: Visit) -> None:
    headings = visit.tab.evaluate(_HEADINGS)

    levels = [level for level, _ in headings]
    assert levels[:1] == [1], headings
    assert levels.count(1) == 1, headings
    assert all(after - before <= 1 for before, after in pairwise(levels)), headings
    assert all(text for _, text in headings)


def test_axe_finds_nothing_serious(visit: Visit) -> None:
    assert serious(visit.tab) == []


def test_axe_finds_nothing_serious_in_the_dark(visit: Visit) -> None:
    visit.tab.emulate_media(color_scheme="dark")

    assert serious_of_colour(visit.tab) == []


def test_who_tabs_sees_where_he_is(visit: Visit) -> None:
    unseen, num_stops = [], 0
    for _ in range(_MAX_STOPS):
        visit.tab.keyboard.press("Tab")
        stop = visit.tab.evaluate(_FOCUSED)
        if stop is None:
            break
        num_stops += 1
        unseen += [] if stop[1] else [stop[0]]

    assert unseen == []
    assert num_stops > 0


def test_a_phone_shows_its_whole_width(visit: Visit) -> None:
    visit.tab.set_viewport_size({"width": PHONE.width, "height": 844})

    assert visit.tab.evaluate("document.documentElement.scrollWidth") <= PHONE.width


def test_it_is_there_without_scripts(windows: Windows, page: Page) -> None:
    tab = windows.open(page.visitor, has_scripts=False)

    load(windows, page, tab)

    expect(tab.locator("h1")).to_be_visible()
    windows.close(tab)
