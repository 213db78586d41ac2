"""Rules of accessibility, checked by the library axe in a tab."""

from dataclasses import dataclass, field
from typing import Any, Final

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

_SCRIPT: Final[str] = Axe().axe_script
_SERIOUS: Final = ("serious", "critical")
_VIOLATIONS: Final = {"resultTypes": ["violations"]}
# These rules are listed by name. Selecting the tag `cat.color` instead would also run an AAA
# rule, which is off by default.
_COLOUR_RULES: Final = ("color-contrast", "link-in-text-block")
_NOT_COLOUR: Final = {"rules": {rule: {"enabled": False} for rule in _COLOUR_RULES}}
_COLOUR: Final = {"runOnly": list(_COLOUR_RULES)}
_MARK: Final = "data-new-colours"
_RUN: Final = """([selector, options]) => axe.run(selector ?? document, options)
  .then(({ violations }) => violations.map(({ id, impact, nodes }) =>
    [id, impact, nodes.map(node => node.html.slice(0, 200))]))"""
# Mark the elements whose combination of colours is not in `known`, and return these combinations:
# the text's colour, all backgrounds behind it, and the properties that set the required contrast.
_MARK_NEW: Final = """([known, mark]) => {
  const seen = new Set(known), found = [];
  const backgrounds = element => {
    const all = [];
    for (let one = element; one; one = one.parentElement) {
      const { backgroundColor, backgroundImage, opacity } = getComputedStyle(one);
      all.push(backgroundColor, backgroundImage, opacity);
    }
    return all.filter(value => !["rgba(0, 0, 0, 0)", "none", "1"].includes(value)).join(" ");
  };
  const showsText = element => element.checkVisibility() && (
    element.matches("input, select, textarea")
    || [...element.childNodes].some(({ nodeType, data }) => nodeType === 3 && data.trim()));
  for (const marked of document.querySelectorAll(`[${mark}]`)) marked.removeAttribute(mark);
  for (const element of document.body.querySelectorAll("*")) {
    if (!showsText(element)) continue;
    const { color, fontSize, fontWeight, textDecorationLine } = getComputedStyle(element);
    const link = element.matches("a") && element.parentElement.matches("p, li, dd, td")
      && [textDecorationLine, getComputedStyle(element.parentElement).color];
    const colours = [color, fontSize, fontWeight, link,
      element.matches(":disabled, [aria-disabled=true]"), backgrounds(element)].join("|");
    if (seen.has(colours)) continue;
    seen.add(colours);
    found.push(colours);
    element.setAttribute(mark, "");
  }
  return found;
}"""
# Mark elements and check them in one JavaScript task, because the scripts of a page with live
# figures soon replace the marked elements.
_RUN_NEW: Final = f"""([known, mark, options]) => {{
  const found = ({_MARK_NEW})([known, mark]);
  const checked = found.length ? ({_RUN})([`[${{mark}}]`, options]) : Promise.resolve([]);
  return checked.then(violations => [found, violations]);
}}"""


def find_violations(tab: Page) -> list[str]:
    """Return each broken rule of serious or critical impact, with the element's HTML."""
    return _run_rules(tab, {})


def find_violations_except_colour(tab: Page) -> list[str]:
    """Return broken rules as `find_violations` does, without the rules that depend on colours."""
    return _run_rules(tab, _NOT_COLOUR)


def find_colour_violations(tab: Page) -> list[str]:
    """Return broken rules as `find_violations` does, only of the rules that depend on colours."""
    return _run_rules(tab, _COLOUR)


@dataclass(slots=True)
class ColourChecks:
    """Checks the rules of colours once for each combination of text and backgrounds."""

    checked: set[str] = field(default_factory=set)

    def find_violations_in_new_combinations(self, tab: Page) -> list[str]:
        """Return broken rules as `find_colour_violations` does, for combinations that were not yet
        checked."""
        _load_axe(tab)
        options = _VIOLATIONS | _COLOUR
        newly_checked, violations = tab.evaluate(_RUN_NEW, [sorted(self.checked), _MARK, options])
        self.checked.update(newly_checked)
        return _filter_serious(violations)


def _run_rules(tab: Page, options: dict[str, Any]) -> list[str]:
    _load_axe(tab)
    return _filter_serious(tab.evaluate(_RUN, [None, _VIOLATIONS | options]))


def _load_axe(tab: Page) -> None:
    if tab.evaluate("typeof axe === 'undefined'"):
        tab.evaluate(_SCRIPT)


def _filter_serious(violations: list[tuple[str, str, list[str]]]) -> list[str]:
    return [
        f"{rule}: {html}"
        for rule, impact, elements in violations
        if impact in _SERIOUS
        for html in elements
    ]
