"""The notable facts about a request, in the reader's language."""

import json
from string import Formatter

import pytest
from django.utils import translation

from console.templatetags.findings import translate_finding
from tenants.usage.requests.finding import Finding, Quantity

COLD = Finding(
    "Cold cache: the engine prefilled {uncached} of {tokens} prompt tokens.",
    uncached=Quantity(1_812),
    tokens=Quantity(1_900),
)


def test_the_english_finding_equals_its_text() -> None:
    with translation.override("en"):
        assert (
            translate_finding(COLD)
            == COLD
            == "Cold cache: the engine prefilled 1,812 of 1,900 prompt tokens."
        )


def test_the_german_finding_has_german_words_and_numbers() -> None:
    with translation.override("de"):
        text = translate_finding(COLD)

    assert text == "Kalter Cache: Die Engine füllte 1.812 von 1.900 Prompt-Tokens vor."


@pytest.mark.parametrize(
    "wording",
    [
        "Error: {code} after {after} ms, in the stage {stage}.",
        "Slow routing: {took} ms.",
        "Truncated by the filter: {reason}.",
    ],
)
def test_a_translation_has_the_same_fields(wording: str) -> None:
    with translation.override("de"):
        german = translation.gettext(wording)

    assert german != wording
    assert _fields(german) == _fields(wording)


def _fields(text: str) -> set[str | None]:
    return {name for _, name, _, _ in Formatter().parse(text) if name}


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "Error: cold after 3.0 ms, in the stage “Engine, until the first token”."),
        ("de", "Fehler: cold nach 3,0 ms, in der Phase „Engine, bis zum ersten Token“."),
    ],
)
def test_a_finding_contains_the_display_name_of_a_stage(language: str, text: str) -> None:
    wording = "Error: {code} after {after} ms, in the stage {stage}."
    finding = Finding(wording, code="cold", after=Quantity(3, digits=1), stage="generate")

    with translation.override(language):
        assert translate_finding(finding) == text


def test_json_contains_the_english_finding() -> None:
    expected = '["Cold cache: the engine prefilled 1,812 of 1,900 prompt tokens."]'

    with translation.override("de"):
        assert json.dumps([COLD]) == expected
