"""A snippet whose text is already in the prompt is left out."""

from typing import Any

import pytest

from caret.contracts.retrieval import MAX_FILE_CHARS
from inference.completion.incoming_request import ContextFile
from inference.completion.snippet import Snippet
from inference.context.sources.ranking import drop_useless_snippets
from tests.fakes.prompts import assemble_prompt, text_of

LINES = [f"    total_{n} = price_{n} * quantity_{n}" for n in range(12)]
CHUNK = "\n".join(["def total(cart):", *LINES])
SNIPPET = Snippet("pay.py", CHUNK, 0.9)
LONG = "".join(f"def other_{n}(self):\n    return self.field_{n}\n\n" for n in range(200))


def _num_snippets(snippet: Snippet = SNIPPET, **fields: Any) -> int:
    defaults = {"path": "cart.py", "prefix": "import pay\n", "suffix": "\n"} | fields
    prompt = assemble_prompt(snippets=(snippet,), **defaults)
    assert text_of(prompt).count(LINES[0].strip()) <= 1
    return prompt.num_snippets


def test_a_snippet_that_is_not_in_the_prompt_is_shown() -> None:
    assert _num_snippets() == 1
    assert _num_snippets(prefix=LONG, suffix=LONG) == 1


@pytest.mark.parametrize(
    ("prefix", "suffix"),
    [
        (f"{CHUNK}\n\n\nx = ", "\n"),
        ("x = ", f"\n\n\n{CHUNK}\n"),
        ("\n".join(["def total(cart):", *LINES[:5], "    tot"]), "\n".join(["", *LINES[5:]])),
    ],
    ids=["before", "after", "around"],
)
def test_text_of_the_edited_file_is_not_repeated(prefix: str, suffix: str) -> None:
    """The snippet has another path, as if it had been indexed before the file was renamed."""
    assert _num_snippets(prefix=prefix, suffix=suffix) == 0


@pytest.mark.parametrize("path", ["pay.py", "copy_of_pay.py"])
def test_text_of_another_sent_file_is_not_repeated(path: str) -> None:
    assert _num_snippets(files=(ContextFile(path, f"import x\n\n{CHUNK}\n", 0),)) == 0


def test_a_snippet_is_shown_if_the_prompt_has_only_an_outline_of_its_file() -> None:
    assert _num_snippets(files=(ContextFile("pay.py", f"{LONG}\n{CHUNK}\n", 0),)) == 1


def test_a_snippet_that_its_file_no_longer_contains_is_not_shown() -> None:
    assert _num_snippets(files=(ContextFile("pay.py", LONG, 0),)) == 0


def test_a_snippet_is_a_duplicate_if_one_line_differs_but_not_if_all_do() -> None:
    edited = Snippet("pay.py", CHUNK.replace("price_3", "cost"), 0.9)
    similar = Snippet("pay.py", CHUNK.replace("price", "cost"), 0.9)

    assert _num_snippets(edited, prefix=f"{CHUNK}\n\n\nx = ") == 0
    assert _num_snippets(similar, prefix=f"{CHUNK}\n\n\nx = ") == 1


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

    list(
        drop_useless_snippets(
            [SNIPPET] * 8, prompt_texts=(), open_files={SNIPPET.path: counted_text}
        )
    )

    assert _CountingText.num_splits == num_splits
