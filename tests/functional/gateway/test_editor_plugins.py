"""The gateway answers the requests that editor plug-ins send, with the fields that they read.

The request bodies were recorded from the plug-ins. They include fields that Caret does not know.
"""

import json
import re
from typing import Any

import pytest

from tests.functional.gateway.gateway_stack import Frame, Site

pytestmark = pytest.mark.engine

# The plug-ins' own time limits are too short for a busy machine.
TIME_LIMIT_MS = 60_000
# llama.vim accepts a response only if its raw body matches this expression.
LLAMA_VIM_CHECK = re.compile(rb'"content"\s*:')
LLAMA_VIM_FIELDS = [
    "content",
    "timings/prompt_n",
    "timings/prompt_ms",
    "timings/prompt_per_token_ms",
    "timings/prompt_per_second",
    "timings/predicted_n",
    "timings/predicted_ms",
    "timings/predicted_per_token_ms",
    "timings/predicted_per_second",
    "truncated",
    "tokens_cached",
]
QWEN_STOPS = [
    "<|endoftext|>",
    "<|fim_prefix|>",
    "<|fim_middle|>",
    "<|fim_suffix|>",
    "<|fim_pad|>",
    "<|repo_name|>",
    "<|file_sep|>",
    "<|im_start|>",
    "<|im_end|>",
]


@pytest.fixture
def text_around_cursor(long_frame: Frame) -> tuple[str, str]:
    """Return the text before and after the cursor."""
    return long_frame["prefix"], long_frame["suffix"]


async def post(site: Site, path: str, body: Any, **headers: str) -> bytes:
    async with (
        site.http() as session,
        session.post(path, data=json.dumps(body), headers=headers) as response,
    ):
        raw = await response.read()
    assert response.status == 200, raw
    return raw


def parse_events(raw: bytes) -> list[Any]:
    """Parse server-sent events as strictly as a plug-in: only `data:` and empty lines may occur."""
    lines = raw.decode().split("\n")
    assert all(line == "" or line.startswith("data: ") for line in lines)
    data = [line.removeprefix("data: ") for line in lines if line]
    assert data.pop() == "[DONE]"
    return [json.loads(text) for text in data]


async def test_llama_vim_gets_the_fields_that_it_reads(
    site: Site, text_around_cursor: tuple[str, str]
) -> None:
    lines, _, cursor_line = text_around_cursor[0].rpartition("\n")
    body = {
        "id_slot": 0,
        "input_prefix": lines + "\n",
        "input_suffix": "\n" + text_around_cursor[1],
        "input_extra": [{"text": "x = 1\n", "time": [173, 5], "filename": "a.py"}],
        "prompt": cursor_line,
        "n_predict": 128,
        "stop": [],
        "n_indent": 4,
        "top_k": 40,
        "top_p": 0.99,
        "samplers": ["top_k", "top_p", "infill"],
        "stream": False,
        "cache_prompt": True,
        "t_max_prompt_ms": TIME_LIMIT_MS,
        "t_max_predict_ms": TIME_LIMIT_MS,
        "response_fields": LLAMA_VIM_FIELDS,
    }

    raw = await post(site, "/infill", body, **{"Content-Type": "application/json"})
    warm_up = await post(site, "/infill", {**body, "n_predict": 0, "response_fields": [""]})

    assert LLAMA_VIM_CHECK.search(raw)
    assert b"\n" not in raw  # Vim reads lines
    answer = json.loads(raw)
    assert answer["content"]
    assert list(answer) == LLAMA_VIM_FIELDS
    assert answer["timings/predicted_n"] > 0
    json.loads(warm_up)


async def test_llama_vscode_gets_a_suggestion(
    site: Site, text_around_cursor: tuple[str, str]
) -> None:
    body = {
        "input_prefix": text_around_cursor[0],
        "input_suffix": text_around_cursor[1],
        "input_extra": [],
        "prompt": "",
        "n_predict": 32,
        "n_cmpl": 3,
        "top_k": 40,
        "top_p": 0.99,
        "stream": False,
        "samplers": ["top_k", "top_p", "infill"],
        "cache_prompt": True,
        "t_max_prompt_ms": TIME_LIMIT_MS,
        "t_max_predict_ms": TIME_LIMIT_MS,
        "model": "qwen2.5-coder:7b",
    }

    answer = json.loads(await post(site, "/infill", body))
    async with site.http("") as session, session.get("/health") as health:
        assert health.status == 200

    assert answer["content"]


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/fim/completions", "/beta/completions"])
async def test_minuet_and_continue_get_choices_in_each_event(
    site: Site, text_around_cursor: tuple[str, str], path: str
) -> None:
    body = {
        "model": "deepseek-chat",
        "prompt": text_around_cursor[0],
        "suffix": text_around_cursor[1],
        "stream": True,
        "max_tokens": 24,
        "temperature": 0.01,
        "stop": ["\n\n\n"],
        "provider": {"sort": "throughput"},
    }

    parsed = parse_events(await post(site, path, body, Accept="text/event-stream"))

    # Minuet crashes on an event without choices.
    choices = [event["choices"][0] for event in parsed]
    if path == "/v1/fim/completions":
        text = "".join(choice["delta"]["content"] for choice in choices)
    else:
        text = "".join(choice["text"] for choice in choices)
    assert text
    assert choices[-1]["finish_reason"] in ("stop", "length")


async def test_continue_gets_the_same_text_with_fim_markers_as_with_a_suffix_field(
    site: Site, text_around_cursor: tuple[str, str]
) -> None:
    prefix, suffix = text_around_cursor
    body = {
        "prompt": f"<|fim_prefix|>{prefix}<|fim_suffix|>{suffix}<|fim_middle|>",
        "model": "qwen2.5-coder-7b",
        "max_tokens": 24,
        "temperature": 0.01,
        "stop": [*QWEN_STOPS, "/src/", "#- coding: utf-8", "```"],
        "stream": True,
        "frequency_penalty": None,
    }

    raw = await post(
        site, "/completions", body, **{"api-key": site.acme_key, "x-api-key": site.acme_key}
    )
    as_parts = await post(
        site,
        "/completions",
        {**body, "prompt": prefix, "suffix": suffix, "stop": []},
    )

    text = "".join(event["choices"][0]["text"] for event in parse_events(raw))
    assert text
    assert text == "".join(event["choices"][0]["text"] for event in parse_events(as_parts))


async def test_zed_gets_the_fields_that_it_requires(
    site: Site, text_around_cursor: tuple[str, str]
) -> None:
    prefix, suffix = text_around_cursor
    body = {
        "model": "qwen2.5-coder",
        "prompt": f"<|fim_prefix|>{prefix}<|fim_suffix|>{suffix}<|fim_middle|>",
        "max_tokens": 24,
        "stop": QWEN_STOPS[:4],
    }

    answer = json.loads(await post(site, "/v1/completions", body))

    for name, kind in (("id", str), ("object", str), ("created", int), ("model", str)):
        assert isinstance(answer[name], kind)
    assert set(answer["usage"]) >= {"prompt_tokens", "completion_tokens", "total_tokens"}
    (choice,) = answer["choices"]
    assert choice["text"]
    assert isinstance(choice["finish_reason"], str)


@pytest.mark.parametrize("is_raw", [False, True], ids=["Continue", "twinny, llm-ls and Zed"])
async def test_lines_of_a_streamed_ollama_response_add_up_to_the_whole_text(
    site: Site, text_around_cursor: tuple[str, str], is_raw: bool
) -> None:
    model = json.loads(await post(site, "/api/show", {"name": "codellama:7b-code"}))
    body: dict[str, Any] = {"model": "codellama:7b-code", "options": {"num_predict": 24}}
    if is_raw:
        body |= {
            "prompt": f"<PRE> {text_around_cursor[0]} <SUF>{text_around_cursor[1]} <MID>",
            "raw": True,
        }
    else:
        body |= {"prompt": text_around_cursor[0], "suffix": text_around_cursor[1], "raw": False}

    lines = (await post(site, "/api/generate", {**body, "keep_alive": 1800})).splitlines()
    complete = json.loads(await post(site, "/api/generate", {**body, "stream": False}))

    assert ".Suffix" in model["template"]
    parsed = [json.loads(line) for line in lines]
    assert [line["done"] for line in parsed] == [False] * (len(parsed) - 1) + [True]
    assert complete["response"]
    assert "".join(line["response"] for line in parsed) == complete["response"]
    assert all(isinstance(line["created_at"], str) for line in parsed)
