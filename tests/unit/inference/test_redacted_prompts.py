"""Secrets are redacted from prompts on every protocol, including raw prompts and chats."""

import time
from typing import Any, Final

import pytest

from caret.contracts.policy import Mode
from inference.completion.incoming_request import ChatMessage
from inference.errors import BadRequest
from tests.fakes.gateway import FakeGateway
from tests.fakes.http_gateway import read_engine_prompt, send_request
from tests.fakes.prompts import assemble_prompt, text_of

_SECRET: Final = "AKIA" + "ABCD1234" * 2
_LINE: Final = f"key_id = '{_SECRET}'\n"
_KEY_BODY: Final = "MIIEpAIBAAKCAQEA7bq\nZ2VuZXJhdGVkIGZvciB0ZXN0cw\n"
_KEY: Final = f"-----BEGIN RSA PRIVATE KEY-----\n{_KEY_BODY}-----END RSA PRIVATE KEY-----\n"
_PROMPTS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "OpenAI, raw": ("/v1/completions", {"prompt": f"{_LINE}x = "}),
    "OpenAI, raw, the last line": ("/v1/completions", {"prompt": _LINE.rstrip()}),
    "OpenAI, a list": ("/v1/completions", {"prompt": [f"{_LINE}x = "]}),
    "OpenAI, unknown markers": (
        "/v1/completions",
        {"prompt": f"<|fim_prefix|>{_LINE}<|fim_suffix|>"},
    ),
    "OpenAI": ("/v1/completions", {"prompt": f"{_LINE}x = ", "suffix": f"\n{_LINE}"}),
    "Ollama, raw": ("/api/generate", {"prompt": f"{_LINE}x = ", "raw": True}),
    "Mistral": ("/v1/fim/completions", {"prompt": f"{_LINE}x = ", "suffix": f"\n{_LINE}"}),
    "llama.cpp": ("/infill", {"input_prefix": _LINE, "input_suffix": f"\n{_LINE}"}),
    "Tabby": ("/v1/completions", {"segments": {"prefix": f"{_LINE}x = "}}),
    "chat": ("/v1/chat/completions", {"messages": [{"role": "user", "content": f"? {_LINE}"}]}),
    "chat, in parts": (
        "/v1/chat/completions",
        {
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": f"key_id = '{_SECRET[:9]}"},
                        {"type": "text", "text": f"{_SECRET[9:]}'"},
                    ],
                }
            ]
        },
    ),
}


@pytest.mark.parametrize("name", _PROMPTS)
async def test_a_secret_is_redacted_from_the_prompt(name: str) -> None:
    gateway = FakeGateway()
    path, body = _PROMPTS[name]

    await send_request(gateway, path, body)

    prompt = read_engine_prompt(gateway)
    assert _SECRET not in prompt
    assert "REDACTED" in prompt


async def test_the_path_header_gives_the_file_type_of_a_raw_prompt() -> None:
    gateway = FakeGateway()
    body = {"prompt": "DB_PASSWORD=hunter2\nX="}

    await send_request(
        gateway, "/v1/completions", body, headers=[(b"x-caret-path", b"app.env.ini")]
    )

    assert "hunter2" not in read_engine_prompt(gateway)


@pytest.mark.parametrize("role", ["system", "user", "assistant"])
@pytest.mark.parametrize("secret", [_LINE, _KEY])
def test_secrets_are_redacted_from_every_chat_message(role: str, secret: str) -> None:
    question = ChatMessage("user", "?")
    before = [question] if role == "assistant" else []
    messages = (*before, ChatMessage(role, f"a\n{secret}b"), ChatMessage("user", f"c\n{secret}"))

    text = text_of(assemble_prompt(mode=Mode.CHAT, messages=messages, prefix=""))

    assert _SECRET not in text
    assert _KEY_BODY not in text
    assert text.count("REDACTED") == 2


def test_a_private_key_is_redacted_from_a_truncated_chat() -> None:
    body = "".join(f"{n:04}lineofakeywithoutanymark{n:030}\n" for n in range(200))
    filler = "x = 1\n" * 5_150  # so that the beginning of the key is cut off
    text = f"-----BEGIN RSA PRIVATE KEY-----\n{body}-----END RSA PRIVATE KEY-----\n{filler}"

    prompt = assemble_prompt(mode=Mode.CHAT, messages=(ChatMessage("user", text),), prefix="")

    assert "lineofakey" not in text_of(prompt)


@pytest.mark.parametrize("line_break", ["\n", " "], ids=["between lines", "within a line"])
@pytest.mark.parametrize("num_after", range(31_930, 32_010, 2))
def test_a_secret_at_the_edge_of_a_truncated_chat_is_redacted_completely(
    num_after: int, line_break: str
) -> None:
    # `num_after` characters stand from the beginning of the secret's line to the end of the chat.
    # A chat may have 4,000 tokens and 32,000 characters. Spaces take few tokens, so this chat
    # reaches the limit of characters first.
    after = (" " * 199 + line_break) * 160
    line = _LINE.replace("\n", line_break)
    text = "x" * 40_000 + line_break + line + after[-num_after + len(line) :]

    prompt = text_of(
        assemble_prompt(mode=Mode.CHAT, messages=(ChatMessage("user", text),), prefix="")
    )

    pieces = [_SECRET[start : start + 4] for start in range(len(_SECRET) - 4)]
    assert [piece for piece in pieces if piece in prompt] == []


def test_a_private_key_is_redacted_from_a_raw_prompt() -> None:
    text = text_of(assemble_prompt(prefix=f"{_KEY}x = ", is_raw=True))

    assert _KEY_BODY not in text
    assert text.endswith("x = ")


def test_a_raw_prompt_without_secrets_is_unchanged() -> None:
    text = "<|fim_prefix|>def f():\n\treturn 1\r\n<|fim_suffix|>"

    assert text_of(assemble_prompt(prefix=text, is_raw=True)) == text


def test_a_rejected_raw_prompt_is_not_searched_for_secrets() -> None:
    # This text is too long for the model. Searching it takes more than a tenth of a second.
    started_s = time.thread_time()
    with pytest.raises(BadRequest):
        assemble_prompt(prefix=_LINE * 2_500, is_raw=True)

    assert time.thread_time() - started_s < 0.1
