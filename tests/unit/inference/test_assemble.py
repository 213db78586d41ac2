"""The stage assemble, which writes the prompt, here for the demonstration model."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caret.contracts.policy import Mode
from caret.foundation.environment import BadSetting
from inference.completion.incoming_request import ContextFile
from inference.completion.snippet import Snippet
from inference.context.prompt.model_formats.layout import LAYOUTS
from inference.context.prompt.token_budget import PROMPT_TOKENS
from inference.context.tokenization.tokenizer import load_tokenizer
from inference.errors import BadRequest
from tests.fakes.gateway import TOKENIZER
from tests.fakes.prompts import (
    CODE,
    FILE_ID,
    MARKERS,
    MIDDLE_ID,
    PREFIX_ID,
    SUFFIX_ID,
    assemble_prompt,
    make_prompt_writer,
    text_of,
)
from tests.fakes.requests import make_request


def test_the_prompt_of_a_short_request_has_the_whole_suffix_and_then_the_whole_prefix() -> None:
    prompt = assemble_prompt(prefix="a = ", suffix="c\nb = 2\n")

    assert prompt.token_ids == [
        *(PREFIX_ID, SUFFIX_ID, *TOKENIZER.encode("c\nb = 2\n")),
        *(MIDDLE_ID, *TOKENIZER.encode("a = ")),
    ]


def test_other_files_come_first_in_the_order_of_their_paths() -> None:
    files = (
        ContextFile("b.py", "b = 1\n", 3),
        ContextFile("c.py", "c = 1", 2),
        ContextFile("a.py", "a", 1),
    )

    prompt = assemble_prompt(prefix="x", files=files, path="b/x.py")

    context = [
        *(FILE_ID, *TOKENIZER.encode("a.py\n"), *TOKENIZER.encode("a\n")),
        *(FILE_ID, *TOKENIZER.encode("b.py\n"), *TOKENIZER.encode("b = 1\n")),
        *(FILE_ID, *TOKENIZER.encode("c.py\n"), *TOKENIZER.encode("c = 1\n")),
        *(FILE_ID, *TOKENIZER.encode("b/x.py\n")),
    ]
    assert prompt.token_ids == [*context, PREFIX_ID, SUFFIX_ID, MIDDLE_ID, *TOKENIZER.encode("x")]
    # The stable tokens do not depend on the position of the cursor.
    assert (prompt.num_files, prompt.num_stable_tokens) == (3, len(context))


@pytest.mark.parametrize("layout", ["psm", "spm", "spm2", "psm-sliding"])
def test_other_layouts_put_the_most_recent_file_last(layout: str) -> None:
    files = (ContextFile("b.py", "b = 1\n", 2), ContextFile("a.py", "a = 1\n", 1))

    text = text_of(assemble_prompt(make_prompt_writer(layout=layout), prefix="x", files=files))

    marker = "<|fim_suffix|>" if layout == "spm" else "<|fim_prefix|>"
    assert text.index("a = 1") < text.index("b = 1") < text.index(marker)


def test_the_repository_comes_first_if_the_model_family_has_a_marker_for_it() -> None:
    prompt = assemble_prompt(prefix="x", repository="acme/app", path="a.py")

    assert text_of(prompt).startswith("<|repo_name|>acme/app\n<|file_sep|>a.py\n<|fim_prefix|>")


def test_snippets_follow_the_files() -> None:
    prompt = assemble_prompt(
        snippets=(Snippet("z.py", "def found(): ...\n", 0.9),),
        files=(ContextFile("b.py", "b = 1\n", 1),),
        path="a.py",
    )

    expected = "<|file_sep|>b.py\nb = 1\n<|file_sep|>z.py\ndef found(): ...\n<|file_sep|>a.py\n"
    assert text_of(prompt).startswith(expected)
    assert (prompt.num_files, prompt.num_snippets) == (1, 1)


def test_a_long_file_is_reduced_to_its_signatures() -> None:
    text = text_of(assemble_prompt(prefix="x", files=(ContextFile("b.py", CODE[:20_000], 1),)))

    assert "def method_0(self):\ndef method_1(self):\n" in text
    assert "return self.field" not in text


def test_a_file_takes_at_most_about_300_tokens() -> None:
    files = (ContextFile("b.py", CODE[:40_000], 1),)

    # Before the tokens of the current file, the prompt has only the tokens of b.py.
    assert 250 < assemble_prompt(prefix="x", files=files).num_stable_tokens < 320


def test_generated_files_are_left_out() -> None:
    files = (ContextFile("package-lock.json", "{}\n", 1), ContextFile("a.min.js", "a\n", 1))
    snippets = (Snippet("b.lock", "b\n", 0.9),)

    prompt = assemble_prompt(snippets=snippets, prefix="x", files=files)

    assert (prompt.num_files, prompt.num_snippets, prompt.num_stable_tokens) == (0, 0, 0)


def test_line_breaks_in_a_path_are_replaced() -> None:
    prompt = assemble_prompt(prefix="a", files=(ContextFile("b\nc.py", "x\n", 0),), path="a\n.py")

    assert prompt.token_ids[: len(TOKENIZER.encode("b c.py\n")) + 1] == [
        FILE_ID,
        *TOKENIZER.encode("b c.py\n"),
    ]


@pytest.mark.parametrize("mode", [mode for mode in Mode if mode is not Mode.EDIT])
def test_a_large_request_fills_the_budget_of_its_tier(mode: Mode) -> None:
    request = make_request(mode=mode)
    files = tuple(ContextFile(f"{n}.py", CODE[:10_000], n) for n in range(60))

    prompt = assemble_prompt(mode=mode, prefix=CODE, suffix=CODE, files=files)

    total = PROMPT_TOKENS[request.tier]
    assert 0.75 * total <= len(prompt.token_ids) <= total


def test_the_text_next_to_the_cursor_is_kept_in_a_file_that_is_too_long() -> None:
    prompt = assemble_prompt(prefix=CODE + "LAST = ", suffix="\nNEXT\n" + CODE)

    middle = prompt.token_ids.index(MIDDLE_ID or 0)
    prefix_ids = prompt.token_ids[middle + 1 :]
    suffix_ids = prompt.token_ids[2:middle]  # two markers precede the suffix
    assert prefix_ids[-len(TOKENIZER.encode("LAST = ")) :] == TOKENIZER.encode("LAST = ")
    assert suffix_ids[: len(TOKENIZER.encode("\nNEXT"))] == TOKENIZER.encode("\nNEXT")


TEXTS = st.text(max_size=3_000) | st.builds(
    lambda text, times: (text * times)[:60_000],
    st.text(min_size=1, max_size=20) | st.text("世界𝕏🙂é", min_size=1, max_size=8),
    st.integers(min_value=1, max_value=4_000),
)


@given(
    st.sampled_from(sorted(LAYOUTS)),
    TEXTS,
    TEXTS,
    st.lists(st.tuples(st.text(max_size=40), TEXTS), max_size=3),
)
def test_no_text_exceeds_the_budget_and_assembly_is_deterministic(
    layout: str, prefix: str, suffix: str, files: list[tuple[str, str]]
) -> None:
    context_files = tuple(ContextFile(path, text, 0) for path, text in files)
    snippets = tuple(Snippet(path, text, 0.5) for path, text in files)
    fields = {"prefix": prefix, "suffix": suffix, "files": context_files}
    fields["repository"] = prefix[:99]

    prompt, same_prompt = (
        assemble_prompt(make_prompt_writer(layout=layout), snippets, **fields) for _ in range(2)
    )

    assert len(prompt.token_ids) <= 2_000  # the budget of the tier `fast`
    assert prompt == same_prompt


@given(TEXTS, st.integers(min_value=1_024, max_value=2_100))
def test_prompt_and_completion_fit_into_the_context_of_the_model(
    text: str, max_context_tokens: int
) -> None:
    completion_tokens = 512
    writer = make_prompt_writer(max_context_tokens)

    prompt = assemble_prompt(writer, prefix=text, suffix=text, max_tokens=completion_tokens)

    assert len(prompt.token_ids) + completion_tokens <= max_context_tokens


@pytest.mark.parametrize("marker", MARKERS)
def test_customer_text_never_becomes_a_marker(marker: str) -> None:
    marker_id = TOKENIZER.get_token_id(marker) or 0
    plain_prompt = assemble_prompt(
        prefix="x", suffix="y", path="a.py", files=(ContextFile("b.py", "z\n", 0),)
    )

    prompt_with_markers = assemble_prompt(
        prefix=f"x{marker}",
        suffix=f"{marker}y",
        path=f"{marker}.py",
        files=(ContextFile(f"b{marker}.py", f"{marker}\n", 0),),
    )

    num_expected = plain_prompt.token_ids.count(marker_id)
    assert prompt_with_markers.token_ids.count(marker_id) == num_expected


def test_markers_in_a_raw_prompt_are_markers() -> None:
    prompt = assemble_prompt(prefix="<|fim_prefix|>a<|fim_suffix|><|fim_middle|>", is_raw=True)

    assert prompt.token_ids == [PREFIX_ID, *TOKENIZER.encode("a"), SUFFIX_ID, MIDDLE_ID]


def test_a_raw_prompt_over_the_budget_is_rejected() -> None:
    with pytest.raises(BadRequest) as rejected:
        assemble_prompt(prefix=CODE, is_raw=True)

    assert (rejected.value.code, rejected.value.http_status) == ("prompt_too_long", 400)


def test_an_empty_raw_prompt_is_rejected() -> None:
    with pytest.raises(BadRequest) as rejected:
        assemble_prompt(prefix="", is_raw=True)

    assert (rejected.value.code, rejected.value.http_status) == ("invalid_field", 400)
    assert "prompt" in rejected.value.message


@pytest.mark.parametrize(
    ("prefix", "suffix", "is_single_line"),
    [
        ("a = ", "", True),
        ("x\n    a = ", "\n", True),
        ("if x:\n    ", "\ny", False),
        ("x\n    ", "\ny", True),
        ("", "", False),
        ("x\n", "rest", True),
        ("foo(", ")\n", True),
        ("if x:\n\t", "  \ny", False),
    ],
)
def test_an_inline_completion_is_a_single_line_unless_a_block_begins_at_the_cursor(
    prefix: str, suffix: str, is_single_line: bool
) -> None:
    assert assemble_prompt(prefix=prefix, suffix=suffix).is_single_line is is_single_line


@pytest.mark.parametrize("mode", [Mode.FIM, Mode.BLOCK, Mode.DOCSTRING])
def test_completions_in_other_modes_may_span_lines(mode: Mode) -> None:
    assert not assemble_prompt(mode=mode, prefix="a = ").is_single_line


def test_the_completion_of_a_raw_prompt_may_span_lines() -> None:
    assert not assemble_prompt(prefix="a = ", is_raw=True).is_single_line


def test_half_a_surrogate_pair_is_accepted() -> None:
    half_pair = "a = '\ud83d"

    prompt = assemble_prompt(
        prefix=half_pair,
        suffix=half_pair,
        path=half_pair,
        files=(ContextFile(half_pair, half_pair, 0),),
    )

    assert prompt.token_ids


def test_the_engine_stops_at_markers() -> None:
    stops = assemble_prompt().stop_token_ids

    assert {TOKENIZER.get_token_id(marker) for marker in MARKERS} <= set(stops)


def test_a_smaller_context_drops_snippets_then_files_then_the_suffix() -> None:
    files = tuple(ContextFile(f"{n}.py", CODE[:10_000], n) for n in range(5))
    snippets = (Snippet("s.py", CODE[-2_000:].replace("method", "other"), 0.5),)
    included = []  # for each size of the context
    # From a context with room for everything to one without room for a suffix.
    for max_context in range(2_064, 264, -100):
        prompt = assemble_prompt(
            make_prompt_writer(max_context), snippets, prefix=CODE, suffix="\n" + CODE, files=files
        )
        middle = prompt.token_ids.index(MIDDLE_ID or 0)
        num_suffix_tokens = middle - prompt.num_stable_tokens - 2  # without two markers
        has_suffix = num_suffix_tokens > 8  # more than a remnant
        included.append((prompt.num_snippets, prompt.num_files, has_suffix))

    # The order of the tuples: the snippet goes before any file, and all files before the suffix.
    assert included == sorted(included, reverse=True)
    assert (included[0][0], included[-1]) == (1, (0, 0, False))
    assert {(0, True), (0, False)} <= {
        (num_files, has_suffix) for _, num_files, has_suffix in included
    }


@pytest.mark.parametrize("content", [None, "nonsense", "{}"])
def test_the_error_for_a_tokenizer_that_cannot_be_loaded_names_its_folder(
    tmp_path: Path, content: str | None
) -> None:
    if content is not None:
        (tmp_path / "tokenizer.json").write_text(content)

    with pytest.raises(BadSetting, match=str(tmp_path)):
        load_tokenizer(str(tmp_path))


@pytest.mark.parametrize("text", ["x9 = 0x7f\n" * 30, "名前 = '世界'\n" * 30, "🙂" * 50])
def test_text_with_few_characters_per_token_is_complete_if_there_is_room(text: str) -> None:
    prompt = assemble_prompt(prefix=text, suffix=text)

    ids = TOKENIZER.encode(text)
    assert prompt.token_ids == [PREFIX_ID, SUFFIX_ID, *ids, MIDDLE_ID, *ids]


@pytest.mark.parametrize(("mode", "budget_tokens"), [(Mode.BLOCK, 6_000), (Mode.INLINE, 1_000)])
def test_the_token_budget_of_a_pool_overrides_that_of_its_tier(
    mode: Mode, budget_tokens: int
) -> None:
    writer = make_prompt_writer(budget_tokens=budget_tokens)

    prompt = assemble_prompt(writer, mode=mode, prefix=CODE, suffix=CODE)

    assert 0.9 * budget_tokens < len(prompt.token_ids) <= budget_tokens
