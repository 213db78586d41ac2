"""The HTTP protocols of OpenAI, Mistral, llama.cpp, Tabby and Ollama.

Responses are compared byte for byte if their clients are strict.
"""

import json
import re
from typing import Any

import pytest

from inference.pools.engine import EngineStop
from inference.routing.route import MAX_CHAT_S
from tests.fakes.asgi import FakeServer
from tests.fakes.engine import FakeEngine, chunks_of
from tests.fakes.gateway import FakeGateway
from tests.fakes.http_gateway import read_engine_prompt, send_request


def read_body_without_id(server: FakeServer) -> str:
    """Return the body of the response, with its unpredictable request ID replaced."""
    text = server.body.decode()
    return re.sub(r"(cmpl-)[0-9a-f-]{36}", r"\1ID", text)


async def test_a_complete_openai_response_has_all_fields() -> None:
    gateway = FakeGateway()

    server = await send_request(
        gateway, "/v1/completions", {"model": "m", "prompt": "a", "suffix": "z"}
    )

    created = gateway.clock.now_ms() // 1000
    # The tokens of the prompt are "a", "z" and three markers.
    assert read_body_without_id(server) == (
        f'{{"id":"cmpl-ID","created":{created},"model":"demo","choices":[{{"text":"bc",'
        '"finish_reason":"stop","index":0,"logprobs":null}],"object":"text_completion",'
        '"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7,'
        '"prompt_tokens_details":{"cached_tokens":0}}}'
    )
    assert server.headers["content-type"] == "application/json"


_CHAT = [{"role": "user", "content": "Hello"}]


@pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/completions", {"prompt": "a"}),
        ("/v1/chat/completions", {"messages": _CHAT}),
        ("/v1/fim/completions", {"prompt": "a"}),
        ("/infill", {"input_prefix": "a"}),
        ("/api/generate", {"prompt": "a", "suffix": "z"}),
    ],
)
@pytest.mark.parametrize("model", [{"model": "x"}, {}], ids=["other model", "no model"])
async def test_responses_name_the_model_that_the_engine_runs(
    path: str, body: dict[str, Any], is_streamed: bool, model: dict[str, str]
) -> None:
    server = await send_request(FakeGateway(), path, {**body, **model, "stream": is_streamed})

    models = re.findall(r'"model":"([^"]*)"', server.body.decode())
    assert set(models) == {"demo"}


async def test_a_stream_has_no_comments_and_no_events_without_choices() -> None:
    server = await send_request(FakeGateway(), "/beta/completions", {"prompt": "a", "stream": True})

    events = server.body.decode().split("\n\n")
    assert events[-2:] == ["data: [DONE]", ""]
    parsed = [json.loads(event.removeprefix("data: ")) for event in events[:-2]]
    assert [event["choices"][0]["text"] for event in parsed] == ["b", "c", ""]
    assert [event["choices"][0]["finish_reason"] for event in parsed] == [None, None, "stop"]
    assert not any("usage" in event for event in parsed)


@pytest.mark.parametrize("path", ["/v1/completions", "/completions", "/beta/completions"])
async def test_only_one_choice_is_returned(path: str) -> None:
    server = await send_request(FakeGateway(), path, {"prompt": "a", "n": 3})

    assert len(json.loads(server.body)["choices"]) == 1


async def test_a_mistral_response_contains_a_message() -> None:
    server = await send_request(
        FakeGateway(), "/v1/fim/completions", {"prompt": "a", "suffix": "z"}
    )

    (choice,) = json.loads(server.body)["choices"]
    assert choice == {
        "message": {"content": "bc", "role": "assistant"},
        "finish_reason": "stop",
        "index": 0,
    }


async def test_a_mistral_stream_contains_deltas_and_ends_with_the_usage() -> None:
    server = await send_request(
        FakeGateway(), "/v1/fim/completions", {"prompt": "a", "stream": True}
    )

    *events, done, _ = server.body.decode().split("\n\n")
    parsed = [json.loads(event.removeprefix("data: ")) for event in events]
    assert done == "data: [DONE]"
    assert [event["choices"][0]["delta"]["content"] for event in parsed] == ["b", "c", ""]
    assert [("usage" in event) for event in parsed] == [False, False, True]


async def test_a_mistral_prompt_without_a_suffix_is_not_a_raw_prompt() -> None:
    gateway = FakeGateway()

    await send_request(gateway, "/v1/fim/completions", {"prompt": "<|fim_middle|>"})

    (request,) = gateway.engine.requests
    assert len(request.token_ids) > 4  # the marker is encoded as text, not as one special token


async def test_infill_joins_the_prefix_and_the_prompt() -> None:
    gateway = FakeGateway()
    body = {"input_prefix": "def f():\n", "prompt": "    r", "input_suffix": "\n", "n_cmpl": 3}

    server = await send_request(gateway, "/infill", body)

    assert "def f():\n    r" in read_engine_prompt(gateway)
    assert json.loads(server.body)["content"] == "bc"


async def test_infill_returns_only_the_requested_fields_without_nesting() -> None:
    fields = ["content", "timings/prompt_n", "truncated", "tokens_cached", "no/such", "nothing"]

    server = await send_request(
        FakeGateway(), "/infill", {"input_prefix": "a", "response_fields": fields, "stream": False}
    )

    # The tokens of the prompt are "a" and three markers.
    assert server.body == (
        b'{"content":"bc","timings/prompt_n":4,"truncated":false,"tokens_cached":0}'
    )


# The editor plug-in for Vim sends a pair, of which the first number counts.
@pytest.mark.parametrize(("older", "newer"), [(1, 2), ([1, 9], [2, 0]), (None, 1.5)])
async def test_infill_puts_newer_files_nearer_to_the_cursor(older: Any, newer: Any) -> None:
    gateway = FakeGateway()
    extra = [
        {"text": "newer", "time": newer, "filename": "b.py"},
        {"text": "older", "time": older, "filename": "a.py"},
    ]

    await send_request(gateway, "/infill", {"input_prefix": "x", "input_extra": extra})

    prompt = read_engine_prompt(gateway)
    assert prompt.index("older") < prompt.index("newer") < prompt.index("<|fim_prefix|>")


async def test_infill_with_more_extra_files_than_are_used_is_accepted() -> None:
    extra = [{"text": "x", "time": time, "filename": f"{time}.py"} for time in range(64)]

    server = await send_request(
        FakeGateway(), "/infill", {"input_prefix": "x", "input_extra": extra}
    )

    assert server.status == 200


async def test_a_streamed_infill_ends_with_its_statistics() -> None:
    gateway = FakeGateway(engine=FakeEngine(chunks_of("b", "c", stop=EngineStop.LENGTH)))

    server = await send_request(gateway, "/infill", {"input_prefix": "a", "stream": True})

    *events, after_events = server.body.decode().split("\n\n")
    parsed = [json.loads(event.removeprefix("data: ")) for event in events]
    assert after_events == ""
    assert [event["content"] for event in parsed] == ["b", "c", ""]
    assert [event["stop"] for event in parsed] == [False, False, True]
    assert (parsed[-1]["stop_type"], parsed[-1]["tokens_predicted"]) == ("limit", 2)


async def test_tabby_segments_are_accepted_at_the_openai_path() -> None:
    gateway = FakeGateway()
    segments = {
        "prefix": "p = ",
        "suffix": "\ns",
        "filepath": "src/main.py",
        "git_url": "git@example.com:acme/shop.git",
        "declarations": [{"filepath": "h.py", "body": "declared"}],
        "relevant_snippets_from_changed_files": [{"filepath": "a.py", "body": "x", "score": 1.0}],
        "clipboard": "",
    }

    server = await send_request(
        gateway, "/v1/completions", {"language": "klingon", "segments": segments, "user": None}
    )

    assert read_body_without_id(server) == '{"id":"cmpl-ID","choices":[{"text":"bc","index":0}]}'
    prompt = read_engine_prompt(gateway)
    assert "src/main.py" in prompt
    assert prompt.index("a.py") < prompt.index("declared")  # sorted by path
    assert [record.protocol for record in gateway.journal.completions] == ["tabby"]


async def test_ollama_streams_lines_by_default() -> None:
    body = {"model": "m", "prompt": "a", "suffix": "z", "options": {"num_predict": 8}}

    server = await send_request(FakeGateway(), "/api/generate", body)

    *lines, after_lines = server.body.decode().split("\n")
    parsed = [json.loads(line) for line in lines]
    assert after_lines == ""
    assert [line["response"] for line in parsed] == ["b", "c", ""]
    assert [line["done"] for line in parsed] == [False, False, True]
    assert parsed[-1]["done_reason"] == "stop"
    assert server.headers["content-type"] == "application/x-ndjson"


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/v1/completions", {"error": {"code": "invalid_field"}}),
        ("/v1/fim/completions", {"object": "error", "type": "invalid_field"}),
        ("/infill", {"error": {"code": 400, "type": "invalid_request_error"}}),
    ],
)
async def test_an_error_has_the_fields_of_its_protocol(path: str, fields: dict[str, Any]) -> None:
    server = await send_request(FakeGateway(), path, {"prompt": 7, "input_prefix": 7})

    assert server.status == 400
    assert _contains(json.loads(server.body), fields)


async def test_an_ollama_error_is_a_sentence() -> None:
    server = await send_request(FakeGateway(), "/api/generate", {"prompt": 7})

    assert json.loads(server.body) == {"error": "prompt is missing or malformed."}


async def test_a_complete_chat_response_is_an_assistant_message() -> None:
    gateway = FakeGateway()
    messages = [
        {"role": "developer", "content": "Be terse."},
        {"role": "user", "content": [{"type": "text", "text": "Hello"}]},
    ]

    server = await send_request(
        gateway, "/v1/chat/completions", {"model": "m", "messages": messages}
    )

    response = json.loads(server.body)
    assert response["object"] == "chat.completion"
    assert response["choices"][0]["message"] == {"content": "bc", "role": "assistant"}
    assert read_engine_prompt(gateway) == "Be terse.\n\nHello\n\n"
    assert [record.tier for record in gateway.journal.completions] == ["quality"]


async def test_excluded_files_of_a_chat_do_not_reach_the_prompt() -> None:
    gateway = FakeGateway()
    gateway.exclude({"*": ("secret/*",)})
    files = [{"path": "secret/a.py", "text": "a = 1"}, {"path": "b.py", "text": "b = 2"}]
    body = {"messages": [{"role": "user", "content": "Hello"}], "caret_files": files}

    await send_request(gateway, "/v1/chat/completions", body)

    assert read_engine_prompt(gateway) == "File `b.py`:\n```\nb = 2\n```\n\nHello\n\n"


async def test_a_chat_about_an_excluded_file_is_rejected() -> None:
    gateway = FakeGateway()
    gateway.exclude({"*": ("straße/*",)})
    body = {"messages": [{"role": "user", "content": "Hello"}], "caret_path": "straße/a.py"}

    server = await send_request(gateway, "/v1/chat/completions", body)

    assert (server.status, server.error_code) == (403, "path_excluded")
    assert gateway.engine.requests == []


# Other files, in the comments that the editor plugin Continue writes at the beginning of a prompt.
_CONTINUE_FILES = "# Path: shop/a.py\n# a = 1\n# Path: secret/b.py\n# b = 2\n"
_MANY_PATHS = "".join(f"# open/{number}.py\n" for number in range(300))


@pytest.mark.parametrize(
    "prompt",
    [
        "\n# secret/a.py\nx = ",
        "\n# Secret/A.py\nx = ",
        "\n# shop/../secret/a.py\nx = ",
        "\n# ../secret/a.py\nx = ",
        "\n# secret\\a.py\nx = ",
        f"{_CONTINUE_FILES}# secret/a.py\nx = ",
        # The file's own comments name another file.
        f"{_CONTINUE_FILES}# secret/a.py\n# open/a.py\nx = ",
        f"{_CONTINUE_FILES}# secret/a.py\n# TODO\n# open.py\nx = ",
        f"{_CONTINUE_FILES}# secret/a.py\n{_MANY_PATHS}x = ",
    ],
)
@pytest.mark.parametrize(
    ("path", "raw_template"),
    [
        ("/v1/fim/completions", None),
        ("/v1/completions", None),
        ("/v1/completions", "<|fim_prefix|>{}<|fim_suffix|>\n<|fim_middle|>"),
        ("/api/generate", None),
    ],
)
async def test_a_file_whose_path_is_only_in_a_comment_can_be_excluded(
    prompt: str, path: str, raw_template: str | None
) -> None:
    gateway = FakeGateway()
    gateway.exclude({"*": ("secret/*",)})
    body = {"prompt": prompt, "suffix": "\n"}
    if raw_template is not None:
        body = {"prompt": raw_template.format(prompt)}

    server = await send_request(gateway, path, body)

    assert server.status == 403
    assert b"excluded by policy" in server.body
    assert gateway.engine.requests == []


async def test_excluded_files_in_comments_do_not_reach_the_prompt() -> None:
    gateway = FakeGateway()
    gateway.exclude({"*": ("secret/*",)})
    body = {"prompt": f"{_CONTINUE_FILES}# shop/c.py\nc = ", "suffix": "\n"}

    await send_request(gateway, "/v1/fim/completions", body)

    prompt = read_engine_prompt(gateway)
    assert "a = 1" in prompt
    assert "b = 2" not in prompt
    assert [record.language for record in gateway.journal.completions] == ["python"]


async def test_the_path_in_the_header_takes_precedence_over_the_path_in_a_comment() -> None:
    gateway = FakeGateway()
    gateway.exclude({"*": ("secret/*",)})
    body = {"prompt": "\n# open/a.py\nx = ", "suffix": "\n"}
    headers = [(b"x-caret-path", b"secret/a.py")]

    server = await send_request(gateway, "/v1/fim/completions", body, headers=headers)

    assert server.status == 403
    assert b"excluded by policy" in server.body


async def test_the_prompt_and_the_response_of_a_long_chat_are_limited() -> None:
    gateway = FakeGateway()
    question = "word " * 6_000
    body = {"messages": [{"role": "user", "content": question}], "max_tokens": 9_999}

    await send_request(gateway, "/v1/chat/completions", body)

    (request,) = gateway.engine.requests
    assert len(request.token_ids) == 4_000  # the token budget of the tier `quality`
    assert request.max_tokens == 4_096  # the largest response of a chat
    assert request.max_duration_s == MAX_CHAT_S


async def test_a_chat_stream_contains_the_role_once() -> None:
    body = {"messages": [{"role": "user", "content": "Hello"}], "stream": True}

    server = await send_request(FakeGateway(), "/v1/chat/completions", body)

    *events, done, _ = server.body.decode().split("\n\n")
    parsed = [json.loads(event.removeprefix("data: ")) for event in events]
    deltas = [event["choices"][0]["delta"] for event in parsed]
    assert deltas == [{"content": "b", "role": "assistant"}, {"content": "c"}, {}]
    assert done == "data: [DONE]"


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [{"role": "tool", "content": "x"}],
        [{"role": "user"}],
        [{"role": "user", "content": None}],
        [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}],
    ],
)
async def test_a_chat_that_does_not_consist_of_text_messages_is_rejected(
    messages: list[Any],
) -> None:
    server = await send_request(FakeGateway(), "/v1/chat/completions", {"messages": messages})

    assert (server.status, server.error_code) == (400, "invalid_field")


def _contains(document: Any, fields: Any) -> bool:
    """Return whether a JSON document has these fields, among others."""
    if isinstance(fields, dict):
        return all(name in document and _contains(document[name], fields[name]) for name in fields)
    return bool(document == fields)
