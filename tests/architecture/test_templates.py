"""Templates: visible text is marked for translation, and forms have a CSRF token."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Final

import pytest

from caret.local.paths import REPOSITORY

TEMPLATES: Final = REPOSITORY / "console" / "templates"
# Texts that are the same in each language: names, units, formats, and terms of protocols.
_UNTRANSLATED: Final = re.compile(
    r"\b(CSV|Caret|JSON|OpenID Connect|PDF|SAML|SHA|TXT|UTC|p50|p99)\b|\b(http|tcp)://\S+"
)
# Template tags, marked text and names of CSS classes: removed before the search for unmarked text.
_MARKED: Final = re.compile(
    r"{% blocktranslate .*?{% endblocktranslate %}|{% block (?:main|card)_class %}.*?{% endblock %}"
    r"|{#.*?#}|{%.*?%}|{{.*?}}",
    re.DOTALL,
)
# A component's title is an argument of its tag.
_COMPONENT_TITLE: Final = re.compile(r'{% component [^%]*\btitle="([^"]*)"')
_WORD: Final = re.compile(r"[^\W\d_]{2,}")
_VISIBLE_ATTRIBUTES: Final = frozenset(
    {"alt", "aria-label", "hint", "label", "lead", "placeholder", "title"}
)
# Tags whose content is the same in each language (code, program output) or is not visible text.
_UNTRANSLATED_TAGS: Final = frozenset({"code", "kbd", "pre", "samp", "script", "style"})


class _TextCollector(HTMLParser):
    """Collects the visible text of a template."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._skipped_tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _UNTRANSLATED_TAGS:
            self._skipped_tags.append(tag)
        self.texts += [value for name, value in attrs if name in _VISIBLE_ATTRIBUTES and value]

    def handle_endtag(self, tag: str) -> None:
        if tag in _UNTRANSLATED_TAGS and self._skipped_tags:
            self._skipped_tags.pop()

    def handle_data(self, data: str) -> None:
        if not self._skipped_tags:
            self.texts.append(data)


def find_unmarked_texts(template: str) -> Iterator[str]:
    """Yield the visible texts that are not marked for translation."""
    collector = _TextCollector()
    collector.feed(_MARKED.sub(" ", template))
    collector.close()
    for text in [*collector.texts, *_COMPONENT_TITLE.findall(template)]:
        if _WORD.search(_UNTRANSLATED.sub("", text)):
            yield " ".join(text.split())


@pytest.mark.parametrize(
    "path", sorted(TEMPLATES.rglob("*.html")), ids=lambda path: str(path.relative_to(TEMPLATES))
)
def test_visible_text_is_marked_for_translation(path: Path) -> None:
    assert list(find_unmarked_texts(path.read_text())) == []


def test_the_check_finds_only_unmarked_text() -> None:
    template = (
        '<h1 title="Keys">{% translate "Sign in" %} now</h1><code>GET /keys</code>{{ name }}'
        '{% component "card.html" with title="Limits" %}{% endcomponent %}'
    )

    assert list(find_unmarked_texts(template)) == ["Keys", "now", "Limits"]


def test_every_form_that_posts_has_a_csrf_token() -> None:
    forms_without_token = [
        f"{path.relative_to(TEMPLATES)}: {form[:80]}"
        for path in TEMPLATES.rglob("*.html")
        for form in re.findall(r"<form\b.*?</form>", path.read_text(), re.DOTALL)
        if 'method="post"' in form and "{% csrf_token %}" not in form
    ]

    assert forms_without_token == []
