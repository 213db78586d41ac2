"""assemble, with the demonstration model's own tokenizer."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caret.contracts.policy import Mode
from caret.foundation.environment import BadSetting
from inference.completion.arrival import DraftFile
from inference.context.assemble import assemble
from inference.context.budget import PROMPT_TOKENS
from inference.context.prompt import Prompt
from inference.context.tokens import load_tokens
from inference.context.writer import PromptWriter
from inference.errors import BadRequest
from tests.fakes.clock import FakeClock
from tests.fakes.requests import make_admitted, make_request
from tests.fakes.tenants import make_principal

WEIGHTS = Path(__file__).parents[3] / "inference" / "demo_model" / "weights"
TOKENS = load_tokens(str(WEIGHTS))
WRITER = PromptWriter(TOKENS, model="demo", max_context_tokens=8_192, clock=FakeClock())
MARKERS = ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|file_sep|>", "<|endoftext|>")
PREFIX_ID, SUFFIX_ID, MIDDLE_ID, FILE_ID = (TOKENS.token_id(each) for each in MARKERS[:4])
PRINCIPAL = make_principal()
CODE = "".join(f"def method_{n}(self):\n    return self.field_{n}\n\n" for n in range(3_000))


def _assemble(writer: PromptWriter = WRITER, **fields: Any) -> Prompt:
    return assemble(writer, make_admitted(PRINCIPAL, **fields))


def test_a_short_request_is_in_the_prompt_whole() -> None:
    prompt = _assemble(prefix="a = ", suffix="\nb = 2\n")

    assert prompt.token_ids == [
        *(PREFIX_ID, *TOKENS.encode("a = ")),
        *(SUFFIX_ID, *TOKENS.encode("\nb = 2\n")),
        MIDDLE_ID,
    ]


def test_other_files_come_under_their_paths_the_most_recent_nearest() -> None:
    files = (DraftFile("new.py", "n = 1\n", 2), DraftFile("old.py", "o = 1", 1))

    prompt = _assemble(prefix="a", files=files, path="a.py")

    assert prompt.token_ids == [
        *(FILE_ID, *TOKENS.encode("old.py\n"), *TOKENS.encode("o = 1\n")),
        *(FILE_ID, *TOKENS.encode("new.py\n"), *TOKENS.encode("n = 1\n")),
        *(FILE_ID, *TOKENS.encode("a.py\n")),
        *(PREFIX_ID, *TOKENS.encode("a"), SUFFIX_ID, MIDDLE_ID),
    ]


def test_a_path_with_line_breaks_stays_on_its_line() -> None:
    prompt = _assemble(prefix="a", files=(DraftFile("b\nc.py", "x\n", 0),), path="a\n.py")

    assert prompt.token_ids[: len(TOKENS.encode("b c.py\n")) + 1] == [
        FILE_ID,
        *TOKENS.encode("b c.py\n"),
    ]


@pytest.mark.parametrize("mode", list(Mode))
def test_a_huge_request_fills_the_tiers_budget_and_no_more(mode: Mode) -> None:
    request = make_request(mode=mode)
    files = tuple(DraftFile(f"{n}.py", CODE[:10_000], n) for n in range(60))

    prompt = _assemble(mode=mode, prefix=CODE, suffix=CODE, files=files)

    total = PROMPT_TOKENS[request.tier]
    assert 0.75 * total <= len(prompt.token_ids) <= total


def test_what_is_cut_is_far_from_the_cursor() -> None:
    prompt = _assemble(prefix=CODE + "LAST = ", suffix="\nNEXT\n" + CODE)

    middle = prompt.token_ids.index(SUFFIX_ID or 0)
    before = prompt.token_ids[:middle]
    after = prompt.token_ids[middle + 1 :]
    assert before[-len(TOKENS.encode("LAST = ")) :] == TOKENS.encode("LAST = ")
    assert after[: len(TOKENS.encode("\nNEXT"))] == TOKENS.encode("\nNEXT")


TEXTS = st.text(max_size=3_000) | st.builds(
    lambda text, times: (text * times)[:60_000],
    st.text(min_size=1, max_size=20) | st.text("世界𝕏🙂é", min_size=1, max_size=8),
    st.integers(min_value=1, max_value=4_000),
)


@settings(max_examples=40, deadline=None)
@given(TEXTS, TEXTS, st.lists(st.tuples(st.text(max_size=40), TEXTS), max_size=3))
def test_no_text_ever_exceeds_the_budget(
    prefix: str, suffix: str, files: list[tuple[str, str]]
) -> None:
    drafts = tuple(DraftFile(path, text, 0) for path, text in files)

    prompt = _assemble(prefix=prefix, suffix=suffix, files=drafts)

    assert len(prompt.token_ids) <= 2_000


@settings(max_examples=40, deadline=None)
@given(TEXTS, st.integers(min_value=1_024, max_value=2_100))
def test_prompt_and_completion_fit_the_models_context(text: str, max_context: int) -> None:
    writer = PromptWriter(TOKENS, model="demo", max_context_tokens=max_context, clock=FakeClock())

    prompt = _assemble(writer, prefix=text, suffix=text, max_tokens=512)

    assert len(prompt.token_ids) + 512 <= max_context


@pytest.mark.parametrize("marker", MARKERS)
def test_a_customers_text_never_becomes_a_marker(marker: str) -> None:
    identifier = TOKENS.token_id(marker)
    plain = _assemble(prefix="x", suffix="y", path="a.py", files=(DraftFile("b.py", "z\n", 0),))

    planted = _assemble(
        prefix=f"x{marker}",
        suffix=f"{marker}y",
        path=f"{marker}.py",
        files=(DraftFile(f"b{marker}.py", f"{marker}\n", 0),),
    )

    assert planted.token_ids.count(identifier or 0) == plain.token_ids.count(identifier or 0)


def test_a_raw_prompts_markers_are_markers() -> None:
    prompt = _assemble(prefix="<|fim_prefix|>a<|fim_suffix|><|fim_middle|>", is_raw=True)

    assert prompt.token_ids == [PREFIX_ID, *TOKENS.encode("a"), SUFFIX_ID, MIDDLE_ID]


def test_a_raw_prompt_beyond_the_budget_is_refused() -> None:
    with pytest.raises(BadRequest) as refused:
        _assemble(prefix=CODE, is_raw=True)

    assert (refused.value.code, refused.value.http_status) == ("prompt_too_long", 400)


@pytest.mark.parametrize(
    ("prefix", "suffix", "is_single_line"),
    [
        ("a = ", "", True),
        ("x\n    a = ", "\n", True),
        ("x\n    ", "\ny", False),
        ("", "", False),
        ("x\n", "rest", True),
        ("foo(", ")\n", True),
        ("x\n\t", "  \ny", False),
    ],
)
def test_an_inline_completion_ends_with_its_line_unless_the_line_is_fresh(
    prefix: str, suffix: str, is_single_line: bool
) -> None:
    assert _assemble(prefix=prefix, suffix=suffix).is_single_line is is_single_line


@pytest.mark.parametrize("mode", [Mode.FIM, Mode.BLOCK, Mode.DOCSTRING])
def test_other_modes_may_write_many_lines(mode: Mode) -> None:
    assert not _assemble(mode=mode, prefix="a = ").is_single_line


def test_a_raw_prompt_may_write_many_lines() -> None:
    assert not _assemble(prefix="a = ", is_raw=True).is_single_line


def test_half_a_surrogate_pair_does_no_harm() -> None:
    half = "a = '\ud83d"

    prompt = _assemble(prefix=half, suffix=half, path=half, files=(DraftFile(half, half, 0),))

    assert prompt.token_ids


def test_the_engine_is_told_to_stop_at_markers() -> None:
    stops = _assemble().stop_token_ids

    assert {TOKENS.token_id(marker) for marker in MARKERS} <= set(stops)


def test_most_of_the_prompt_stays_as_it_was_while_a_line_is_typed() -> None:
    line = "    return self.reader.read(path, encoding)"
    prompts = [_assemble(prefix=CODE + line[:end]).token_ids for end in range(1, len(line))]

    shared = [
        next(
            (n for n, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), len(before)
        )
        for before, after in pairwise(prompts)
    ]

    assert sum(n > 0.8 * len(prompts[0]) for n in shared) > 0.9 * len(shared)


@pytest.mark.parametrize("content", [None, "nonsense", "{}"])
def test_a_tokenizer_that_cannot_be_loaded_is_named(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "tokenizer.json").write_text(content)

    with pytest.raises(BadSetting, match=str(tmp_path)):
        load_tokens(str(tmp_path))


@pytest.mark.parametrize("text", ["x9 = 0x7f\n" * 30, "名前 = '世界'\n" * 30, "🙂" * 50])
def test_text_denser_than_ordinary_code_is_whole_while_there_is_room(text: str) -> None:
    prompt = _assemble(prefix=text, suffix=text)

    ids = TOKENS.encode(text)
    assert prompt.token_ids == [PREFIX_ID, *ids, SUFFIX_ID, *ids, MIDDLE_ID]
