"""Any request ends in a response or a client error, whatever its content.

It never ends in a failure of the engine or the gateway, which would alert operators.
"""

import json
import re
from typing import Any, Final

import pytest

from inference.gateway.protocol.frames import CompleteFrame
from tests.functional.gateway.gateway_stack import Site, receive, request_completion

pytestmark = pytest.mark.engine

_SPECIAL: Final = "<|endoftext|><|fim_middle|><|im_start|><|file_sep|>"
_HUGE: Final = 10**30
_TEXTS: Final = {
    "nothing": "",
    "blanks": " \n\t\n ",
    "only special tokens": _SPECIAL,
    "one marker": "<|fim_suffix|>",
    "control characters": "\x00\x01\x7f\x1b[0m",
    "joiners": "\u200b\u200d\ufeff\u202e",
    "the chat template's placeholder": "\ue000" + "0" + "\ue001",
    "the last code point": "\U0010ffff\ufffe",
    "a long line": "x" * 20_000,
    "many lines": "\n" * 20_000,
    "many tokens": "a b c d " * 20_000,
}
# Parameters with invalid or unusual values, and parameters that Caret does not support.
_ODD_PARAMETERS: Final[dict[str, Any]] = {
    "temperature": -7,
    "top_p": 99,
    "top_k": -5,
    "min_p": "high",
    "seed": _HUGE,
    "logit_bias": {"a": 1e300, "-1": None},
    "logprobs": 10_000,
    "prompt_logprobs": -3,
    "best_of": -1,
    "echo": True,
    "presence_penalty": "x",
    "stop_token_ids": [-1, _HUGE],
    "guided_regex": "(",
    "response_format": {"type": "json_schema"},
    "priority": _HUGE,
    "cache_salt": "",
    "kv_transfer_params": {"a": 1},
    "model": "no-such-model",
    "unknown": [[[]]],
}
_PARAMETERS: Final[dict[str, dict[str, Any]]] = {
    **{f"odd {name}": {name: value} for name, value in _ODD_PARAMETERS.items()},
    **{f"max_tokens {n}": {"max_tokens": n} for n in (-_HUGE, -1, 0, 1, _HUGE, 1.5, "8", None)},
    **{f"n {n}": {"n": n} for n in (-1, 0, 64, "two", None)},
    "many stops": {"stop": [f"s{n}" for n in range(1_000)]},
    "odd stops": {"stop": ["\x00", "\ue000", "\u200b", "\U0010ffff"]},
    "an empty stop": {"stop": ["", "a"]},
    "no stops": {"stop": []},
    "long stops": {"stop": ["x" * 65]},
    "a number as stop": {"stop": 7},
    "a stop of its own prompt": {"stop": ["x = "]},
}
_PROMPTS: Final[dict[str, Any]] = {
    "no prompts": [],
    "an empty prompt in a list": [""],
    "two prompts": ["a", "b"],
    "token ids": [1, 2],
    "lists of token ids": [[1], [2]],
    "null": None,
    "a number": 7,
    "an object": {"a": 1},
}


def _messages(text: Any) -> dict[str, Any]:
    return {"messages": [{"role": "system", "content": ""}, {"role": "user", "content": text}]}


# For each protocol, the path and a function that makes the body from a text.
_PROTOCOLS: Final = {
    "OpenAI, raw": ("/v1/completions", lambda text: {"prompt": text}),
    "OpenAI": ("/v1/completions", lambda text: {"prompt": text, "suffix": text}),
    "Tabby": ("/v1/completions", lambda text: {"segments": {"prefix": text, "suffix": text}}),
    "chat": ("/v1/chat/completions", _messages),
    "Mistral": ("/v1/fim/completions", lambda text: {"prompt": text, "suffix": text}),
    "llama.cpp": ("/infill", lambda text: {"input_prefix": text, "input_suffix": text}),
    "Ollama": ("/api/generate", lambda text: {"prompt": text, "suffix": text}),
    "Ollama, raw": ("/api/generate", lambda text: {"prompt": text, "raw": True}),
}
# The parameters that a frame of the stream protocol has. It ignores all others.
_FRAME_PARAMETERS: Final = [
    parameters
    for parameters in _PARAMETERS.values()
    if set(parameters) <= set(CompleteFrame.__struct_fields__)
]
# Limits the completion to two tokens, in each protocol's field.
_BRIEF: Final = {"max_tokens": 2, "n_predict": 2, "options": {"num_predict": 2}}


def _bodies(make: Any) -> list[dict[str, Any]]:
    """Return bodies with unusual texts, and bodies with unusual parameters.

    Ollama reads the parameters from `options`. The other protocols ignore this field.
    """
    bodies = [{**_BRIEF, **make(text)} for text in (*_TEXTS.values(), *_PROMPTS.values())]
    for parameters in _PARAMETERS.values():
        options = {"num_predict": 2, **parameters}
        bodies.append({**_BRIEF, **make("x = "), **parameters, "options": options})
    return bodies


async def _num_failed(site: Site) -> float:
    """Count failures as the alerting rules for failed completions do."""
    lines = (await site.metrics()).splitlines()
    failure = re.compile(
        r'error="(engine_.*|deadline_exceeded|internal_error)"'
        r'|^caret_filtered_completions.*"engine_disconnected"'
    )
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if failure.search(line))


# This takes minutes of CPU time. The default suite sends the same texts in frames.
@pytest.mark.deep
@pytest.mark.parametrize("protocol", _PROTOCOLS)
async def test_unusual_bodies_cause_no_server_failure(site: Site, protocol: str) -> None:
    path, make = _PROTOCOLS[protocol]
    before, statuses = await _num_failed(site), {}

    async with site.http() as session:
        for body in _bodies(make):
            async with session.post(path, json=body) as response:
                statuses[json.dumps(body)[:200]] = response.status
                await response.read()

    assert {body: status for body, status in statuses.items() if status >= 500} == {}
    assert await _num_failed(site) == before


async def test_a_completion_continues_any_word_at_the_cursor(site: Site) -> None:
    words = ("zqx", "(zq", "[zq", "$zq", "a.zq", "\\zq", "*zq", "été", "日本", "\tzq", "{zq", "|zq")
    before, reasons = await _num_failed(site), {}

    async with site.stream() as stream:
        # The filter may withhold the text for the last two words. For these, the test checks only
        # that nothing fails.
        for number, word in enumerate((*words, "\x00zq", "\u2028zq")):
            frame = {
                "id": f"word-{number}",
                "prefix": f"x = {word}",
                "suffix": "\n",
                "max_tokens": 8,
            }
            _, done = await request_completion(stream, frame)
            reasons[word] = (done["finish_reason"], done["meta"].get("filter_reason"))

    # The engine regenerates the partial word at the cursor (token healing). If its text does not
    # begin with that word, the filter withholds it, with the reason `healing_mismatch`.
    assert [word for word in words if "healing_mismatch" in reasons[word]] == []
    assert await _num_failed(site) == before


@pytest.mark.parametrize(
    "text", ['{"prompt":"\\ud800"}', '{"prompt":"\\udc00a"}', '{"prompt":"a","stop":"\\ud83d"}']
)
async def test_a_lone_surrogate_causes_no_server_failure(site: Site, text: str) -> None:
    before = await _num_failed(site)

    async with site.http() as session, session.post("/v1/completions", data=text) as response:
        assert response.status in (200, 400)

    assert await _num_failed(site) == before


@pytest.mark.parametrize(
    "mode",
    # Without `chat`: a frame cannot contain messages, so the gateway refuses every chat frame.
    [
        "inline",
        *(pytest.param(mode, marks=pytest.mark.deep) for mode in ("fim", "block", "docstring")),
    ],
)
async def test_unusual_frames_cause_no_server_failure(site: Site, mode: str) -> None:
    before, ends = await _num_failed(site), set()
    fields = [{"prefix": text, "suffix": text} for text in _TEXTS.values()]
    fields += [{"prefix": "x = ", **parameters} for parameters in _FRAME_PARAMETERS]

    async with site.open_websocket() as socket:
        for fields_of_frame in fields:
            frame = {"type": "complete", "max_tokens": 2, "mode": mode, **fields_of_frame}
            await socket.send(json.dumps({**frame, "id": site.new_id()}))
            while (answer := await receive(socket))["type"] == "delta":
                pass
            ends.add(answer.get("code", answer.get("finish_reason")))

    assert ends <= {"stop", "length", "filtered", "invalid_field"}
    assert ends - {"invalid_field"}, "no request reached the engine"
    assert await _num_failed(site) == before


async def test_an_empty_prompt_is_refused_with_its_field(site: Site) -> None:
    async with (
        site.http() as session,
        session.post("/v1/completions", json={"prompt": ""}) as response,
    ):
        error = (await response.json())["error"]

    assert (response.status, error["code"]) == (400, "invalid_field")
    assert error["message"] == "prompt must not be empty."
