"""The fields of requests: limits, parameters that are honoured, ignored or rejected, and errors."""

import json
from typing import Any

import pytest

from caret.foundation.ids import CacheSalt
from inference.completion.generation_options import NO_TIME_LIMITS, Sampling, TimeLimits
from inference.pools.vllm.engine import _build_body
from tests.fakes.gateway import FakeGateway
from tests.fakes.http_gateway import send_request
from tests.fakes.pools import make_engine_request

_CHAT = [{"role": "user", "content": "Hello"}]


async def test_markers_among_stop_strings_are_ignored() -> None:
    gateway = FakeGateway()
    stops = ["<|endoftext|>", "<fim_prefix>", "<PRE>", "<MID>", "</code>", "//", "a", "b", "c"]

    await send_request(gateway, "/completions", {"prompt": "a", "stop": stops})

    # A request may have four stop strings.
    (request,) = gateway.engine.requests
    assert request.stop == ("</code>", "//", "a", "b")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/infill", {"input_prefix": "a", "n_predict": 0, "response_fields": []}),
        ("/api/generate", {"model": "m", "stream": False}),  # Ollama's request to load a model
        ("/api/generate", {"prompt": "a", "options": {"num_predict": 0}, "stream": False}),
        ("/v1/completions", {"prompt": "a", "suffix": "z", "max_tokens": 0}),
        ("/v1/completions", {"prompt": "a", "max_tokens": 0}),
        ("/v1/fim/completions", {"prompt": "a", "max_tokens": 0}),
        ("/v1/chat/completions", {"messages": _CHAT, "max_tokens": 0}),
        ("/v1/chat/completions", {"messages": _CHAT, "n_predict": 0}),  # llama.vim
    ],
)
async def test_a_warm_up_gets_an_empty_response(path: str, body: dict[str, Any]) -> None:
    """A request for no tokens, or without a prompt, is a warm-up."""
    gateway = FakeGateway()

    server = await send_request(gateway, path, body)

    response = json.loads(server.body)
    assert server.status == 200
    assert _find_text(response) == ""
    assert gateway.engine.requests == []
    # Only fill-in-the-middle prompts have a stable part, which is prefilled later.
    has_stable_part = "input_prefix" in body or "suffix" in body or path == "/v1/fim/completions"
    assert gateway.plane.warmup_queue.num_waiting == (1 if has_stable_part else 0)


def _find_text(response: Any) -> Any:
    """Return the text of a response in any protocol."""
    if "choices" in response:
        (response,) = response["choices"]
    response = response.get("message", response)
    return next(response[name] for name in ("content", "response", "text") if name in response)


@pytest.mark.parametrize("limit", [-1, -2, None])
@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/infill", {"input_prefix": "a"}, "n_predict"),
        ("/v1/completions", {"prompt": "a"}, "max_tokens"),
        ("/v1/fim/completions", {"prompt": "a"}, "max_tokens"),
        ("/v1/chat/completions", {"messages": _CHAT}, "max_tokens"),
        ("/v1/chat/completions", {"messages": _CHAT}, "max_completion_tokens"),
    ],
)
async def test_a_negative_or_missing_limit_means_the_default(
    path: str, body: dict[str, Any], field: str, limit: int | None
) -> None:
    gateway = FakeGateway()

    await send_request(gateway, path, {**body, field: limit})

    (request,) = gateway.engine.requests
    # The defaults of chats and of fill-in-the-middle.
    assert request.max_tokens == (512 if "messages" in body else 128)


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/v1/completions", {"prompt": ""}, "prompt"),
        ("/v1/completions", {}, "prompt"),
        ("/v1/completions", {"prompt": []}, "prompt"),
        ("/v1/completions", {"prompt": ["a"] * 21}, "prompt"),  # at most 20 prompts
        ("/v1/completions", {"prompt": ["a", ""]}, "prompt"),
        ("/v1/completions", {"prompt": [1, 2]}, "prompt[0]"),
        ("/v1/completions", {"prompt": [""]}, "prompt"),
        ("/v1/completions", {"prompt": "", "suffix": ""}, "prompt"),
        ("/v1/fim/completions", {"prompt": ""}, "prompt"),
        ("/v1/completions", {"prompt": "a", "max_tokens": 1.5}, "max_tokens"),
        ("/v1/completions", {"prompt": "a", "n": "two"}, "n"),
        ("/v1/completions", {"prompt": "a", "stop": [1]}, "stop[0]"),
        ("/v1/completions", {"prompt": "a", "stop": "x" * 65}, "stop"),  # at most 64 characters
        ("/v1/completions", {"segments": {"suffix": "a"}}, "segments.prefix"),
        ("/v1/chat/completions", {"messages": []}, "messages"),
        ("/v1/chat/completions", {"messages": [{"role": "user"}]}, "messages[0].content"),
        ("/v1/fim/completions", {"suffix": "a"}, "prompt"),
        ("/infill", {"input_prefix": "a", "input_extra": [{}]}, "input_extra[0].text"),
        ("/api/generate", {"prompt": "a", "options": {"stop": 1}}, "options.stop"),
    ],
)
async def test_an_invalid_field_is_named(path: str, body: dict[str, Any], field: str) -> None:
    gateway = FakeGateway()

    server = await send_request(gateway, path, body)

    assert (server.status, gateway.engine.requests) == (400, [])
    assert f"{field} " in server.body.decode()
    error = json.loads(server.body)
    if path.startswith("/v1/"):  # errors of the other protocols have no field `param`
        # OpenAI's errors are in the field `error`. Mistral's are the whole body.
        assert error.get("error", error)["param"] == field


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/v1/completions", {"prompt": "a", "echo": True}, "echo"),
        ("/v1/completions", {"prompt": "a", "logprobs": 5}, "logprobs"),
        ("/v1/chat/completions", {"n": 2}, "n"),
        ("/v1/chat/completions", {"logprobs": True}, "logprobs"),
        ("/v1/chat/completions", {"response_format": {"type": "json_object"}}, "response_format"),
        ("/v1/chat/completions", {"tools": [{"type": "function"}]}, "tools"),
        ("/v1/chat/completions", {"functions": [{"name": "f"}]}, "functions"),
    ],
)
async def test_an_unsupported_parameter_is_named_in_the_rejection(
    path: str, body: dict[str, Any], field: str
) -> None:
    gateway = FakeGateway()

    # Only chats read `messages`.
    server = await send_request(gateway, path, {"messages": _CHAT, **body})

    assert (server.status, server.error_code) == (400, "unsupported_parameter")
    assert json.loads(server.body)["error"]["param"] == field
    assert gateway.engine.requests == []


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/completions", {"prompt": "a", "echo": False, "logprobs": None, "n": 3}),
        ("/v1/completions", {"prompt": "a", "temperature": 0.7, "top_p": 0.5, "seed": 1}),
        ("/v1/completions", {"prompt": "a", "best_of": 3, "logit_bias": {}, "user": "u"}),
        ("/v1/chat/completions", {"n": 1, "logprobs": False, "tools": [], "functions": None}),
        ("/v1/chat/completions", {"response_format": {"type": "text"}}),
        ("/v1/chat/completions", {"tools": [{"type": "function"}], "tool_choice": "none"}),
        ("/v1/fim/completions", {"prompt": "a", "random_seed": 1, "min_tokens": 3}),
    ],
)
async def test_other_parameters_are_accepted_and_decoding_stays_greedy(
    path: str, body: dict[str, Any]
) -> None:
    gateway = FakeGateway()

    server = await send_request(gateway, path, {"messages": _CHAT, **body})

    assert server.status == 200
    (request,) = gateway.engine.requests
    assert request.sampling.is_greedy


async def test_a_chat_is_sampled_as_requested() -> None:
    gateway = FakeGateway()
    sampling = {"temperature": 0.7, "top_p": 0.5, "seed": 1}

    await send_request(gateway, "/v1/chat/completions", {"messages": _CHAT, **sampling})

    (request,) = gateway.engine.requests
    assert request.sampling == Sampling(temperature=0.7, top_p=0.5, seed=1)


def test_the_engine_gets_the_sampling_only_if_it_is_not_greedy() -> None:
    sampled = _build_body(make_engine_request(sampling=Sampling(0.7, top_p=0.9, seed=5)))
    greedy = _build_body(make_engine_request())

    assert (sampled["temperature"], sampled["top_p"], sampled["seed"]) == (0.7, 0.9, 5)
    assert greedy["temperature"] == 0
    assert not {"top_p", "seed"} & set(greedy)


@pytest.mark.parametrize(
    ("prefix", "pattern"),
    [
        (" read_fi", " read_fi"),
        ("\tété", "\tété"),
        (r"\d+(a|b)[0]{1}^$.*?é", r"\\d\+\(a\|b\)\[0\]\{1\}\^\$\.\*\?é"),
    ],
)
def test_a_required_prefix_becomes_a_pattern_for_this_tenant_only(
    prefix: str, pattern: str
) -> None:
    """vLLM caches patterns. The salt of the tenant makes its patterns different."""
    body = _build_body(make_engine_request(required_prefix=prefix, salt=CacheSalt("5a17")))

    assert body["structured_outputs"] == {"regex": rf"{pattern}[\s\S]*(5a17)?"}


@pytest.mark.parametrize("prefix", ["", "\x00a", "\x1ba", "\u2028a"])
def test_an_empty_prefix_or_one_that_vllm_may_reject_is_not_required(prefix: str) -> None:
    body = _build_body(make_engine_request(required_prefix=prefix))

    assert "structured_outputs" not in body


async def test_infill_passes_on_the_time_limits() -> None:
    gateway = FakeGateway()
    body = {"input_prefix": "a", "t_max_prompt_ms": 500, "t_max_predict_ms": 250.0}

    await send_request(gateway, "/infill", body)
    await send_request(gateway, "/infill", {**body, "t_max_prompt_ms": -1, "t_max_predict_ms": 0})

    limits = [request.time_limits for request in gateway.engine.requests]
    assert limits == [TimeLimits(first_token_ms=500, generation_ms=250), NO_TIME_LIMITS]
