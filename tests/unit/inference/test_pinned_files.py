"""Pinned files: with them, the prompts of all users of a repository have the same beginning."""

from itertools import takewhile
from typing import Any

from inference.completion.incoming_request import ContextFile
from inference.completion.snippet import Snippet
from tests.fakes.prompts import CODE, assemble_prompt, text_of

# The number is the time of the last edit; only the order of these times counts.
STYLE = ContextFile("docs/style.md", "Names say what a value is.\n", 0.0, is_pinned=True)
TYPES = ContextFile("src/types.py", "class Order:\n    total: int\n", 0.0, is_pinned=True)
# Far more text than the share of pinned files.
LONG = tuple(
    ContextFile(f"pinned/{n}.md", f"Rule {n} of the repository.\n" * 100, 0.0, is_pinned=True)
    for n in range(8)
)
MINE = ContextFile("mine.py", "mine = 1\n", 5.0)


def _assemble(*files: ContextFile, **fields: Any) -> list[int]:
    fields = {"repository": "acme/shop", "prefix": "a = ", **fields}
    return assemble_prompt(files=files, **fields).token_ids


def test_prompts_of_two_users_with_different_open_files_have_the_same_beginning() -> None:
    their_file = ContextFile("theirs.py", "theirs = 2\n", 9.0)

    our_prompt = assemble_prompt(files=(MINE, STYLE, TYPES), repository="acme/shop", path="one.py")
    their_prompt = assemble_prompt(
        files=(TYPES, their_file, STYLE), repository="acme/shop", path="two.py"
    )

    pairs = zip(our_prompt.token_ids, their_prompt.token_ids, strict=False)
    num_shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    tokens = {segment.kind.value: segment.num_tokens for segment in our_prompt.segments}
    num_stable = tokens["repository"] + tokens["pinned_files"]
    assert num_stable > 20  # the text of the pinned files is in the prompt
    assert num_shared >= num_stable


def test_times_of_edits_do_not_move_pinned_files() -> None:
    edited = ContextFile(TYPES.path, TYPES.text, 99.0, is_pinned=True)

    assert _assemble(STYLE, TYPES, MINE) == _assemble(edited, MINE, STYLE)


def test_an_open_file_that_is_pinned_appears_once() -> None:
    unsaved = ContextFile(TYPES.path, "class Order:\n    total: str\n", 9.0)

    text = text_of(assemble_prompt(files=(unsaved, TYPES), repository="acme/shop"))

    assert text.count("src/types.py") == 1
    assert "total: int" in text  # the pinned text, not the unsaved one


def test_a_pinned_file_that_is_the_current_file_is_not_repeated() -> None:
    text = text_of(assemble_prompt(files=(TYPES, STYLE), path=TYPES.path, prefix=TYPES.text))

    assert text.count("class Order") == 1


def test_pinned_files_leave_most_of_the_budget() -> None:
    prompt = assemble_prompt(files=LONG, prefix=CODE, suffix=CODE)

    tokens = {segment.kind.value: segment.num_tokens for segment in prompt.segments}
    assert 800 < tokens["pinned_files"] <= 900  # at most 45% of the fast tier's 2,000 tokens
    assert tokens["prefix"] > 400
    assert tokens["suffix"] > 200


def test_without_pinned_files_nothing_is_reserved_for_them() -> None:
    prompt = assemble_prompt(files=(MINE,), prefix=CODE, suffix=CODE)

    tokens = {segment.kind.value: segment.num_tokens for segment in prompt.segments}
    assert tokens["prefix"] + tokens["suffix"] > 1_800


def test_a_snippet_of_a_pinned_file_is_left_out() -> None:
    prompt = assemble_prompt(
        files=(TYPES,), snippets=(Snippet(TYPES.path, TYPES.text, 0.9),), prefix="a = "
    )

    assert prompt.num_snippets == 0
