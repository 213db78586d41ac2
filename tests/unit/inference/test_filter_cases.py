"""The filter shows the expected part of the model outputs in `filter_cases/`, in many languages."""

import re
from typing import Final

import pytest

from tests.unit.inference.filter_case_files import FilterCase, read_cases
from tests.unit.inference.filter_case_results import get_shown_text, is_more_broken

MIN_CASES: Final = 800
MIN_LANGUAGES: Final = 50
MIN_SHARE: Final = 0.95  # of the cases whose expected text is shown
CHARACTER: Final = re.compile(r"(?s).")
CASES: Final = read_cases()
LANGUAGES: Final = sorted({case.language for case in CASES})


@pytest.mark.parametrize("language", LANGUAGES)
async def test_the_expected_text_is_shown_and_no_file_is_left_more_broken(language: str) -> None:
    cases = [case for case in CASES if case.language == language]

    shown_texts = {case.title: await get_shown_text(case) for case in cases}

    assert len(shown_texts) == len(cases), "a title occurs twice"
    assert {case.title: shown_texts[case.title] for case in cases if not case.is_known_wrong} == {
        case.title: case.expected for case in cases if not case.is_known_wrong
    }
    assert not [case.title for case in cases if is_more_broken(case, shown_texts[case.title])]


@pytest.mark.parametrize("language", LANGUAGES)
async def test_the_shown_text_does_not_depend_on_the_chunks(language: str) -> None:
    cases = [case for case in CASES if case.language == language]

    by_character = {case.title: await get_shown_text(case, chunk=CHARACTER) for case in cases}

    assert by_character == {case.title: await get_shown_text(case) for case in cases}


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.is_known_wrong], ids=lambda case: case.name
)
async def test_a_case_marked_wrong_is_still_wrong(case: FilterCase) -> None:
    assert await get_shown_text(case) != case.expected, "Remove [wrong] from its title."


def test_nearly_all_cases_are_right() -> None:
    wrong_names = [case.name for case in CASES if case.is_known_wrong]

    assert len(CASES) >= MIN_CASES
    assert len(LANGUAGES) >= MIN_LANGUAGES
    assert len(wrong_names) <= (1 - MIN_SHARE) * len(CASES)
