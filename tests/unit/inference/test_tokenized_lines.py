"""Windows over tokenized lines: the lines next to the cursor that fit into the prompt.

`slide` returns the end of the text up to the limit. `anchor` returns an end that begins with an
anchor if possible. An anchor is a line with which a window may begin. Only the text of the line
decides whether it is an anchor, so a window keeps its beginning while the user types.
`clip_beginning` returns the beginning of the text after the cursor.
"""

from collections.abc import Sequence

import pytest
from detect_secrets.util.filetype import FileType
from hypothesis import given
from hypothesis import strategies as st

from inference.context.prompt.tokenized_lines_cache import TokenizedLinesCache
from inference.context.tokenization.text_window import MAX_SKIPPED_SHARE, is_anchor
from inference.context.tokenization.tokenized_lines import TokenizedLines, join_lines
from inference.context.tokenization.ttl_cache import PartitionKey
from tests.fakes.prompts import CODE, make_prompt_writer

# Tokens of the line that is being typed; None: the text has no such line.
TYPED = st.none() | st.lists(st.just(0), max_size=12)
LINES = st.lists(st.sampled_from([f"line {number}\n" for number in range(40)]), max_size=40)
LIMITS = st.integers(min_value=0, max_value=120)
ANCHORS = [f"x{number}\n" for number in range(200) if is_anchor(f"x{number}")]
NO_ANCHORS = [f"x{number}\n" for number in range(200) if not is_anchor(f"x{number}")]
ADA_PARTITION, GUS_PARTITION = PartitionKey(b"a" * 32), PartitionKey(b"g" * 32)
PYTHON = FileType.PYTHON
WRITER = make_prompt_writer()


def _tokenize_by_character(lines: Sequence[str]) -> TokenizedLines:
    """Return lines in which each character is a token."""
    return join_lines(lines, [[*line.encode()] for line in lines])


@given(LINES, TYPED, LIMITS)
def test_a_window_is_an_end_of_the_text_within_the_limit(
    lines: list[str], typed_ids: list[int] | None, max_tokens: int
) -> None:
    tokenized = _tokenize_by_character(lines)
    all_tokens = [*tokenized.token_ids, *(typed_ids or ())]

    slid = tokenized.slide(typed_ids, max_tokens=max_tokens)
    anchored = tokenized.anchor(typed_ids, max_tokens=max_tokens, is_whole=False)

    assert slid.token_ids == (all_tokens[-max_tokens:] if max_tokens else [])
    assert slid.token_ids[len(slid.token_ids) - len(anchored.token_ids) :] == anchored.token_ids
    assert 0 <= anchored.unstable_from <= len(anchored.token_ids)


@given(LINES, TYPED, LIMITS)
def test_an_anchored_window_keeps_most_of_the_lines_that_fit(
    lines: list[str], typed_ids: list[int] | None, max_tokens: int
) -> None:
    tokenized = _tokenize_by_character(lines)

    window = tokenized.anchor(typed_ids, max_tokens=max_tokens, is_whole=False)

    # A line of which only a part fits is left out.
    longest = max(map(len, lines), default=0)
    num_fitting = min(max_tokens, len(tokenized.token_ids) + len(typed_ids or ()))
    assert len(window.token_ids) >= (1 - MAX_SKIPPED_SHARE) * (num_fitting - longest)


@given(LINES, TYPED, LIMITS)
def test_a_clipped_beginning_is_whole_lines_within_the_limit(
    lines: list[str], typed_ids: list[int] | None, max_tokens: int
) -> None:
    tokenized = _tokenize_by_character(lines)
    all_tokens = [*(typed_ids or ()), *tokenized.token_ids]

    beginning = tokenized.clip_beginning(typed_ids or [], max_tokens=max_tokens)

    assert beginning == all_tokens[: len(beginning)]
    assert len(beginning) <= max_tokens
    if len(beginning) < min(max_tokens, len(all_tokens)):
        assert len(beginning) - len(typed_ids or ()) in tokenized.starts


def test_a_window_begins_with_the_first_anchor_that_fits() -> None:
    tokenized = _tokenize_by_character([*NO_ANCHORS[:5], ANCHORS[0], *NO_ANCHORS[5:20]])

    # The limit excludes the first lines, but not the anchor.
    window = tokenized.anchor([0], max_tokens=len(tokenized.token_ids) - 6, is_whole=True)

    assert window.token_ids[: len(ANCHORS[0])] == [*ANCHORS[0].encode()]


def test_a_text_that_fits_is_kept_from_its_beginning() -> None:
    tokenized = _tokenize_by_character([NO_ANCHORS[0], ANCHORS[0], *NO_ANCHORS[1:20]])

    # is_whole=False: these lines are only the end of the text, so the window begins with an anchor.
    whole_text = tokenized.anchor([0], max_tokens=1_000, is_whole=True)
    anchored_text = tokenized.anchor([0], max_tokens=1_000, is_whole=False)

    assert whole_text.token_ids == [*tokenized.token_ids, 0]
    assert anchored_text.token_ids == whole_text.token_ids[len(NO_ANCHORS[0]) :]


def test_the_unstable_part_begins_at_the_last_anchor_before_the_current_line() -> None:
    tokenized = _tokenize_by_character([NO_ANCHORS[0], ANCHORS[0], ANCHORS[1]])
    before = len(NO_ANCHORS[0]) + len(ANCHORS[0])

    typing = tokenized.anchor([0], max_tokens=1_000, is_whole=True)
    # Without a line that is being typed, the current line is the last one, just finished.
    finished = tokenized.anchor(None, max_tokens=1_000, is_whole=True)

    assert typing.unstable_from == before
    assert finished.unstable_from == len(NO_ANCHORS[0])


def test_only_the_part_of_a_long_text_that_may_fit_is_encoded() -> None:
    writer = make_prompt_writer()
    cache = TokenizedLinesCache(writer, ADA_PARTITION)

    last = cache.get_last_lines(CODE, PYTHON, max_tokens=500)
    first = cache.get_first_lines(CODE, PYTHON, max_tokens=500)

    for tokenized in (last, first):
        assert 500 < len(tokenized.token_ids) < 1_000
    all_tokens = writer.tokenizer.encode(CODE)
    assert all_tokens[-len(last.token_ids) :] == last.token_ids
    assert all_tokens[: len(first.token_ids)] == first.token_ids


def test_tokenized_lines_are_cached_for_their_partition_and_file_type() -> None:
    cache, other_cache = (
        TokenizedLinesCache(WRITER, partition) for partition in (ADA_PARTITION, GUS_PARTITION)
    )

    first, same_lines = (cache.get_last_lines(CODE, PYTHON, max_tokens=500) for _ in range(2))

    assert same_lines is first
    assert other_cache.get_last_lines(CODE, PYTHON, max_tokens=500) is not first
    assert cache.get_last_lines(CODE, FileType.INI, max_tokens=500) is not first


LONG_LINE = "😀" * 400


@pytest.mark.parametrize(
    "text",
    [f"{LONG_LINE}\n", f"{CODE[:300]}\n{LONG_LINE}\n", f"{LONG_LINE}\n{CODE[:300]}\n"],
    ids=["alone", "last", "first"],
)
@given(typed_ids=TYPED, max_tokens=LIMITS)
def test_a_very_long_line_is_kept_only_up_to_the_limit(
    text: str, typed_ids: list[int] | None, max_tokens: int
) -> None:
    cache, lines = TokenizedLinesCache(WRITER, ADA_PARTITION), WRITER.tokenizer.split_lines(text)
    whole_text = join_lines(lines, WRITER.tokenizer.encode_each(lines))

    last = cache.get_last_lines(text, PYTHON, max_tokens=max_tokens)
    first = cache.get_first_lines(text, PYTHON, max_tokens=max_tokens)

    # One token more than the limit shows that the line does not fit.
    assert max(len(last.token_ids), len(first.token_ids)) <= max_tokens + 1
    assert last.slide(typed_ids, max_tokens=max_tokens) == whole_text.slide(
        typed_ids, max_tokens=max_tokens
    )
    assert last.anchor(typed_ids, max_tokens=max_tokens, is_whole=True) == whole_text.anchor(
        typed_ids, max_tokens=max_tokens, is_whole=True
    )
    assert first.clip_beginning(
        typed_ids or [], max_tokens=max_tokens
    ) == whole_text.clip_beginning(typed_ids or [], max_tokens=max_tokens)
