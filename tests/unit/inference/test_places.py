"""Where a text stands, as each protocol can tell it: what the policy excludes depends on it."""

import pytest

from tests.fakes.gateway import FakeGateway
from tests.fakes.web import ask, drafted


@pytest.mark.parametrize("path", ["/completions", "/api/generate"])
async def test_another_models_prompt_is_rendered_anew_for_ours(path: str) -> None:
    gateway = FakeGateway()
    files = "<file_sep>a.py\nhidden<file_sep>b.py\nseen<file_sep>c.py\n"
    prompt = f"{files}<fim_prefix>p<fim_suffix>s<fim_middle>"
    gateway.exclude({"*": ("a.py",)})

    await ask(gateway, path, {"prompt": prompt, "raw": True})

    assert drafted(gateway).startswith("<|file_sep|>b.py\nseen")
    assert drafted(gateway).endswith("<|fim_prefix|><|fim_suffix|>s<|fim_middle|>p")


async def test_another_models_prompt_may_be_of_an_excluded_file() -> None:
    gateway = FakeGateway()
    gateway.exclude({"shop": ("a.py",)})
    prompt = "<|repo_name|>shop\n<|file_sep|>a.py\n<|fim_prefix|>p<|fim_suffix|>s<|fim_middle|>"

    server = await ask(gateway, "/completions", {"prompt": prompt})

    assert server.status == 403


async def test_a_prompt_of_no_known_form_is_taken_as_it_is() -> None:
    gateway = FakeGateway()

    await ask(gateway, "/completions", {"prompt": "x<|fim_prefix|>"})

    assert drafted(gateway) == "x<|fim_prefix|>"


async def test_the_headers_say_where_the_text_stands_when_the_body_cannot() -> None:
    gateway = FakeGateway()
    gateway.exclude({"shop": ("secret/**",)})
    headers = [(b"x-caret-path", b"secret/a.py"), (b"x-caret-repository", b"shop")]

    for path in ("/v1/completions", "/v1/fim/completions", "/infill", "/api/generate"):
        server = await ask(gateway, path, {"prompt": "a"}, headers=headers)
        assert server.status == 403

    assert gateway.engine.requests == []


async def test_tabbys_excluded_file_is_refused_and_its_excluded_snippets_leave() -> None:
    gateway = FakeGateway()
    gateway.exclude({"shop": ("secret/**",)})
    segments = {"prefix": "p", "git_url": "https://example.com/acme/shop"}
    snippet = {"filepath": "secret/b.py", "body": "hidden", "score": 1}

    refused = await ask(
        gateway, "/v1/completions", {"segments": {**segments, "filepath": "secret/a.py"}}
    )
    await ask(
        gateway,
        "/v1/completions",
        {"segments": {**segments, "filepath": "a.py", "declarations": [snippet]}},
    )

    assert refused.status == 403
    assert "hidden" not in drafted(gateway)
