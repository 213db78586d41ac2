"""The path of a file in each protocol: content exclusion depends on it."""

from typing import Any

import pytest

from tests.fakes.gateway import FakeGateway
from tests.fakes.http_gateway import read_engine_prompt, send_request


@pytest.mark.parametrize("path", ["/completions", "/api/generate"])
async def test_a_prompt_for_another_model_is_rendered_for_this_model_without_excluded_files(
    path: str,
) -> None:
    gateway = FakeGateway()
    files = "<file_sep>a.py\nhidden<file_sep>b.py\nseen<file_sep>c.py\n"
    prompt = f"{files}<fim_prefix>p<fim_suffix>s<fim_middle>"
    gateway.exclude({"*": ("a.py",)})

    await send_request(gateway, path, {"prompt": prompt, "raw": True})

    assert read_engine_prompt(gateway).startswith("<|file_sep|>b.py\nseen")
    # The markers of this model, in its own layout, which puts the suffix before the prefix.
    assert read_engine_prompt(gateway).endswith("<|fim_prefix|><|fim_suffix|>s<|fim_middle|>p")


async def test_a_prompt_whose_markers_name_an_excluded_file_is_rejected() -> None:
    gateway = FakeGateway()
    gateway.exclude({"shop": ("a.py",)})
    prompt = "<|repo_name|>shop\n<|file_sep|>a.py\n<|fim_prefix|>p<|fim_suffix|>s<|fim_middle|>"

    server = await send_request(gateway, "/completions", {"prompt": prompt})

    assert server.status == 403


async def test_a_prompt_in_an_unknown_format_is_unchanged() -> None:
    gateway = FakeGateway()

    await send_request(gateway, "/completions", {"prompt": "x<|fim_prefix|>"})

    assert read_engine_prompt(gateway) == "x<|fim_prefix|>"


async def test_headers_give_the_path_if_the_body_does_not() -> None:
    gateway = FakeGateway()
    gateway.exclude({"shop": ("secret/**",)})
    headers = [(b"x-caret-path", b"secret/a.py"), (b"x-caret-repository", b"shop")]

    for path in ("/v1/completions", "/v1/fim/completions", "/infill", "/api/generate"):
        server = await send_request(gateway, path, {"prompt": "a"}, headers=headers)
        assert server.status == 403

    assert gateway.engine.requests == []


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
async def test_a_path_with_letters_beyond_ascii_is_excluded_in_each_encoding(encoding: str) -> None:
    gateway = FakeGateway()
    gateway.exclude({"*": ("löhne/**",)})
    headers = [(b"x-caret-path", "löhne/a.py".encode(encoding))]

    server = await send_request(gateway, "/v1/completions", {"prompt": "a"}, headers=headers)

    assert server.status == 403


async def test_an_excluded_tabby_file_is_rejected_and_excluded_snippets_are_removed() -> None:
    gateway = FakeGateway()
    gateway.exclude({"shop": ("secret/**",)})
    segments = {"prefix": "p", "git_url": "https://example.com/acme/shop"}
    snippet = {"filepath": "secret/b.py", "body": "hidden", "score": 1}

    rejected = await send_request(
        gateway, "/v1/completions", {"segments": {**segments, "filepath": "secret/a.py"}}
    )
    await send_request(
        gateway,
        "/v1/completions",
        {"segments": {**segments, "filepath": "a.py", "declarations": [snippet]}},
    )

    assert rejected.status == 403
    assert "hidden" not in read_engine_prompt(gateway)


_BODIES: dict[str, tuple[str, dict[str, Any]]] = {
    "OpenAI, raw": ("/v1/completions", {"prompt": "a"}),
    "OpenAI": ("/v1/completions", {"prompt": "a", "suffix": "z"}),
    "markers without a path": (
        "/v1/completions",
        {"prompt": "<|fim_prefix|>p<|fim_suffix|>s<|fim_middle|>"},
    ),
    "Tabby": ("/v1/completions", {"segments": {"prefix": "a"}}),
    "chat": ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}]}),
    "Mistral": ("/v1/fim/completions", {"prompt": "a"}),
    "llama.cpp": ("/infill", {"input_prefix": "a"}),
    "Ollama, raw": ("/api/generate", {"prompt": "a", "raw": True}),
}


@pytest.mark.parametrize("name", _BODIES)
async def test_a_policy_may_reject_requests_without_a_path(name: str) -> None:
    gateway = FakeGateway()
    gateway.exclude({"*": ("secret/**",)}, requires_path=True)
    path, body = _BODIES[name]
    allowed_path, excluded_path = (
        [(b"x-caret-path", file)] for file in (b"open/a.py", b"secret/a.py")
    )

    unnamed = await send_request(gateway, path, body)
    rejected = await send_request(gateway, path, body, headers=excluded_path)
    served = await send_request(gateway, path, body, headers=allowed_path)

    assert (unnamed.status, rejected.status, served.status) == (403, 403, 200)
    codes = [record.error_code for record in gateway.journal.completions]
    assert codes == ["path_required", "path_excluded", ""]
    assert len(gateway.engine.requests) == 1


@pytest.mark.parametrize("name", _BODIES)
async def test_other_policies_accept_requests_without_a_path(name: str) -> None:
    gateway = FakeGateway()
    gateway.exclude({"*": ("secret/**",)})
    path, body = _BODIES[name]

    assert (await send_request(gateway, path, body)).status == 200


async def test_files_without_a_path_are_removed_if_the_policy_requires_one() -> None:
    gateway = FakeGateway()
    gateway.exclude({"*": ("secret/**",)}, requires_path=True)
    extra = [{"text": "hidden = 1"}, {"text": "seen = 1", "filename": "b.py"}]
    body = {"input_prefix": "a", "input_extra": extra}

    await send_request(gateway, "/infill", body, headers=[(b"x-caret-path", b"a.py")])

    assert "hidden" not in read_engine_prompt(gateway)
    assert "seen" in read_engine_prompt(gateway)
