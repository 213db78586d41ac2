"""Snippets are left out if the prompt has their text already, or if they are outdated."""

from typing import Any

import pytest

from caret.contracts.retrieval import MAX_FILE_CHARS
from inference.completion.incoming_request import ContextFile
from inference.completion.snippet import Snippet
from inference.context.sources.ranking import drop_useless_snippets
from tests.fakes.prompts import assemble_prompt, text_of

LINES = [f"    total_{n} = price_{n} * quantity_{n}" for n in range(12)]
SNIPPET_TEXT = "\n".join(["def total(cart):", *LINES])
SNIPPET = Snippet("pay.py", SNIPPET_TEXT, 0.9)
# The prompt has only an outline of a file of this length.
LONG_TEXT = "".join(f"def other_{n}(self):\n    return self.field_{n}\n\n" for n in range(200))


def _count_snippets(snippet: Snippet = SNIPPET, **fields: Any) -> int:
    """Return how many snippets (0 or 1) are in the prompt of a request with these fields.

    Also check that the prompt has the text of SNIPPET at most once.
    """
    defaults = {"path": "cart.py", "prefix": "import pay\n", "suffix": "\n"} | fields
    prompt = assemble_prompt(snippets=(snippet,), **defaults)
    assert text_of(prompt).count(LINES[0].strip()) <= 1
    return prompt.num_snippets


def test_a_snippet_is_shown_if_the_prompt_does_not_have_its_text() -> None:
    assert _count_snippets() == 1
    assert _count_snippets(prefix=LONG_TEXT, suffix=LONG_TEXT) == 1


@pytest.mark.parametrize(
    ("prefix", "suffix"),
    [
        (f"{SNIPPET_TEXT}\n\n\nx = ", "\n"),
        ("x = ", f"\n\n\n{SNIPPET_TEXT}\n"),
        ("\n".join(["def total(cart):", *LINES[:5], "    tot"]), "\n".join(["", *LINES[5:]])),
    ],
    ids=["before", "after", "around"],
)
def test_text_of_the_edited_file_is_not_repeated(prefix: str, suffix: str) -> None:
    """The snippet has another path, as if it had been indexed before the file was renamed."""
    assert _count_snippets(prefix=prefix, suffix=suffix) == 0


@pytest.mark.parametrize("path", ["pay.py", "copy_of_pay.py"])
def test_text_of_another_sent_file_is_not_repeated(path: str) -> None:
    assert _count_snippets(files=(ContextFile(path, f"import x\n\n{SNIPPET_TEXT}\n", 0),)) == 0


def test_a_snippet_is_shown_if_the_prompt_has_only_an_outline_of_its_file() -> None:
    assert _count_snippets(files=(ContextFile("pay.py", f"{LONG_TEXT}\n{SNIPPET_TEXT}\n", 0),)) == 1


def test_a_snippet_that_its_file_no_longer_contains_is_not_shown() -> None:
    assert _count_snippets(files=(ContextFile("pay.py", LONG_TEXT, 0),)) == 0


def test_a_snippet_is_a_duplicate_if_one_line_differs_but_not_if_all_do() -> None:
    one_line_differs = Snippet("pay.py", SNIPPET_TEXT.replace("price_3", "cost"), 0.9)
    all_lines_differ = Snippet("pay.py", SNIPPET_TEXT.replace("price", "cost"), 0.9)

    assert _count_snippets(one_line_differs, prefix=f"{SNIPPET_TEXT}\n\n\nx = ") == 0
    assert _count_snippets(all_lines_differ, prefix=f"{SNIPPET_TEXT}\n\n\nx = ") == 1


class _CountingText(str):
    """A text that counts how often it is split."""

    num_splits = 0

    def splitlines(self, keepends: bool = False) -> list[str]:
        type(self).num_splits += 1
        return super().splitlines(keepends)


@pytest.mark.parametrize(("num_lines", "num_splits"), [(100, 1), (MAX_FILE_CHARS, 0)])
def test_a_sent_file_is_split_once_and_a_very_large_one_never(
    num_lines: int, num_splits: int
) -> None:
    _CountingText.num_splits = 0
    counted_text = _CountingText("x = 1\n" * num_lines)

    open_files = {SNIPPET.path: counted_text}

    # The function is a generator: `list` makes it check all snippets.
    list(drop_useless_snippets([SNIPPET] * 8, prompt_texts=(), open_files=open_files))

    assert _CountingText.num_splits == num_splits
