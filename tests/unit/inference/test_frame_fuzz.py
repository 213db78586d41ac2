"""Random frames: the connection stays open, completions end, and errors repeat no input."""

import asyncio
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from inference.gateway.protocol.frames import ErrorFrame
from tests.fakes.engine import FakeEngine, chunks_of
from tests.fakes.stream_client import open_editor

DEADLINE_S = 5
INPUT = "text-of-the-client"  # must not be in error messages

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["", "1", "2", INPUT, "python", "inline", "fim", "chat", "shown", "accepted"]),
    st.text(max_size=8),
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["path", "text", "name", INPUT]), inner, max_size=3)
    ),
    max_leaves=6,
)
names = ["prefix", "suffix", "mode", "path", "language", "files", "repository", "max_tokens"]
names += ["event", "chars", "after_ms", "trigger", "text", "edited_ratio", "lines", INPUT]
frames = st.builds(
    lambda kind, identifier, fields: {"type": kind, "id": identifier, **fields},
    st.sampled_from(
        # Twice "complete", so that it occurs more often.
        ["complete", "complete", "cancel", "outcome", "file_opened", "typing", INPUT, None]
    ),
    st.one_of(st.sampled_from(["1", "2", INPUT]), values),
    st.dictionaries(st.sampled_from(names), values, max_size=6),
)
# Valid frames in between, so that some completions are in flight.
valid = st.builds(
    lambda identifier: {"type": "complete", "id": identifier, "prefix": INPUT, "path": "a.py"},
    st.sampled_from(["1", "2", "3"]),
)
# The texts of frames; None: a binary frame.
texts = st.one_of(st.none(), st.text(max_size=40), st.one_of(frames, valid).map(json.dumps))


@given(st.lists(texts, max_size=12), st.booleans())
async def test_random_frames_neither_end_the_connection_nor_appear_in_errors(
    frame_texts: list[str | None], hangs: bool
) -> None:
    engine = FakeEngine(chunks_of("b", stop=None) if hangs else chunks_of("b", "c"), hangs=hangs)

    async with asyncio.timeout(DEADLINE_S), open_editor(engine) as editor:
        for text in frame_texts:
            await editor.connection.on_frame(text)
        await editor.connection.close()
        responses = list(editor.frames)

    assert engine.num_open == 0
    assert not any(INPUT in _error_text(response) for response in responses)


def _error_text(response: Any) -> str:
    """Return the text of an error, without the ID, which the client chose; otherwise ""."""
    return f"{response.code} {response.message}" if isinstance(response, ErrorFrame) else ""
