"""Any frames in any order: the connection survives, ends all completions, and repeats no input."""

import asyncio
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from inference.gateway.protocol.frames import ErrorFrame
from tests.fakes.engine import FakeEngine, chunks_of
from tests.fakes.stream_client import open_editor

DEADLINE_S = 5
PLANT = "planted-text"

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["", "1", "2", PLANT, "python", "inline", "fim", "chat", "shown", "accepted"]),
    st.text(max_size=8),
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["path", "text", "name", PLANT]), inner, max_size=3)
    ),
    max_leaves=6,
)
names = ["prefix", "suffix", "mode", "path", "language", "files", "repository", "max_tokens"]
names += ["event", "chars", "after_ms", "trigger", "text", "edited_ratio", "lines", PLANT]
frames = st.builds(
    lambda kind, identifier, fields: {"type": kind, "id": identifier, **fields},
    st.sampled_from(
        ["complete", "complete", "cancel", "outcome", "file_opened", "typing", PLANT, None]
    ),
    st.one_of(st.sampled_from(["1", "2", PLANT]), values),
    st.dictionaries(st.sampled_from(names), values, max_size=6),
)
# Valid frames in between, so that some completions are in flight.
valid = st.builds(
    lambda identifier: {"type": "complete", "id": identifier, "prefix": PLANT, "path": "a.py"},
    st.sampled_from(["1", "2", "3"]),
)
texts = st.one_of(st.none(), st.text(max_size=40), st.one_of(frames, valid).map(json.dumps))


@given(st.lists(texts, max_size=12), st.booleans())
async def test_random_frames_neither_end_the_connection_nor_are_repeated(
    frames: list[str | None], hangs: bool
) -> None:
    engine = FakeEngine(chunks_of("b", stop=None) if hangs else chunks_of("b", "c"), hangs=hangs)

    async with asyncio.timeout(DEADLINE_S), open_editor(engine) as editor:
        for text in frames:
            await editor.connection.on_frame(text)
        await editor.connection.close()
        responses = list(editor.frames)

    assert engine.num_open == 0
    assert not any(PLANT in _own_text(response) for response in responses)


def _own_text(response: Any) -> str:
    """Return all of our own text in a response; the ID was chosen by the client."""
    return f"{response.code} {response.message}" if isinstance(response, ErrorFrame) else ""
