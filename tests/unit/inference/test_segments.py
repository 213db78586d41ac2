"""The prompt segments that clients receive: kinds and token counts in order, without text."""

from typing import Any

import msgspec
import pytest

from inference.completion.incoming_request import ChatMessage, ContextFile
from inference.completion.segment import Segment, SegmentKind
from inference.completion.snippet import Snippet
from inference.context.prompt.model_formats.layout import LAYOUTS
from inference.context.prompt.prompt import Prompt
from inference.gateway.protocol.frames import DoneFrame, PromptSegments, build_meta
from tests.fakes.prompts import CODE, assemble_prompt, make_prompt_writer
from tests.fakes.requests import make_admitted, make_request, make_trace
from tests.fakes.stream_client import open_editor

FILES = (ContextFile("b.py", "b = 1\n", 2), ContextFile("c.py", "c = 1\n", 1))
SNIPPET = Snippet("z.py", "def found(): ...\n", 0.9)


def _kinds(prompt: Prompt) -> list[str]:
    return [segment.kind.value for segment in prompt.segments]


def test_segments_are_in_the_order_of_the_prompt() -> None:
    prompt = assemble_prompt(
        snippets=(SNIPPET,), prefix="a = ", suffix="c\n", files=FILES, repository="acme/app"
    )

    assert _kinds(prompt) == [
        *("repository", "files", "snippets", "path"),
        *("markers", "suffix", "markers", "prefix"),
    ]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("prefix", ["", "a = ", CODE])
def test_the_segments_cover_the_whole_prompt(layout: str, prefix: str) -> None:
    prompt = assemble_prompt(
        make_prompt_writer(layout=layout),
        snippets=(SNIPPET,),
        prefix=prefix,
        suffix=CODE,
        files=FILES,
    )

    assert sum(segment.num_tokens for segment in prompt.segments) == len(prompt.token_ids)
    assert all(segment.num_tokens for segment in prompt.segments)


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"prefix": "<|fim_prefix|>a", "is_raw": True}, SegmentKind.RAW),
        ({"mode": "chat", "messages": (ChatMessage("user", "Hello"),)}, SegmentKind.MESSAGES),
    ],
)
def test_a_raw_prompt_or_chat_is_one_segment(fields: dict[str, Any], kind: SegmentKind) -> None:
    prompt = assemble_prompt(**fields)

    assert prompt.segments == (Segment(kind, len(prompt.token_ids)),)


def _build_prompt_segments(cached_tokens: int | None) -> PromptSegments:
    """Return the segments of a prompt with one of two files, of which the engine cached a part."""
    trace = make_trace()
    prompt = Prompt(
        token_ids=[0] * 12,
        stop_token_ids=[],
        is_single_line=True,
        num_files=1,
        segments=(
            *(Segment(SegmentKind.FILES, 7), Segment(SegmentKind.MARKERS, 1)),
            Segment(SegmentKind.PREFIX, 4),
        ),
    )
    trace.mark_received(make_request(files=FILES))
    trace.mark_admitted(make_admitted(files=FILES[:1]))  # the policy excludes the other file
    trace.mark_assembled(prompt)
    trace.record_chunk(generated_tokens=1, cached_tokens=cached_tokens)
    prompt_segments = build_meta(trace, include_prompt_segments=True).prompt_segments
    assert isinstance(prompt_segments, PromptSegments)
    return prompt_segments


@pytest.mark.parametrize(
    ("cached", "by_segment"),
    [
        (0, [0, 0, 0]),
        (5, [5, 0, 0]),
        (8, [7, 1, 0]),
        (12, [7, 1, 4]),
        (None, [None, None, None]),
    ],
)
def test_cached_tokens_are_attributed_from_the_beginning_of_the_prompt(
    cached: int | None, by_segment: list[int | None]
) -> None:
    segments = _build_prompt_segments(cached).segments

    assert [segment.cached_tokens for segment in segments] == by_segment
    assert [segment.tokens for segment in segments] == [7, 1, 4]


def test_files_are_counted_as_sent_excluded_and_used() -> None:
    prompt_segments = _build_prompt_segments(0)

    assert prompt_segments.files_sent == 2
    assert prompt_segments.files_excluded == 1
    assert prompt_segments.files_in_prompt == 1
    assert prompt_segments.snippets_in_prompt == 0


def test_without_a_prompt_there_are_no_segments() -> None:
    prompt_segments = build_meta(make_trace(), include_prompt_segments=True).prompt_segments

    assert prompt_segments == PromptSegments(
        segments=[], files_sent=0, files_excluded=0, files_in_prompt=0, snippets_in_prompt=0
    )


@pytest.mark.parametrize("is_requested", [True, False])
async def test_the_prompt_segments_are_sent_only_on_request(is_requested: bool) -> None:
    async with open_editor() as editor:
        await editor.says(
            "complete", "1", **({"include_prompt_segments": True} if is_requested else {})
        )
        await editor.waits_for_end("1")

    (done,) = (frame for frame in editor.frames if isinstance(frame, DoneFrame))
    assert isinstance(done.meta.prompt_segments, PromptSegments) == is_requested
    assert (b"prompt_segments" in msgspec.json.encode(done)) == is_requested
