"""Bodies that are larger than allowed cost little time.

A prompt that is too long is rejected before it is parsed. If there are too many messages, stop
strings or files, only a part of them is parsed.
"""

import json

import pytest

from inference.completion.incoming_request import UnvalidatedRequest
from inference.consumers.dialects import (
    llama_cpp_infill,
    ollama_generate,
    openai_chat,
    openai_completions,
)
from inference.consumers.http.completions import Dialect, ParsedRequest
from inference.errors import BadRequest
from inference.gateway.receive import MAX_FILES, MAX_MESSAGES, MAX_PROMPT_CHARS

# A rendered fill-in-the-middle prompt, which the dialects would split into its parts.
FIM_PROMPT = "<fim_prefix>p<fim_suffix>s<fim_middle>"


def _parse_completion(body: bytes) -> UnvalidatedRequest:
    parsed = openai_completions.parse_request(body)
    assert isinstance(parsed, ParsedRequest)
    return parsed.draft


@pytest.mark.parametrize(
    "dialect", [openai_completions.DIALECT, ollama_generate.DIALECT], ids=["openai", "ollama"]
)
# Before the FIM prompt: many files, each with its path and text, or one long text.
@pytest.mark.parametrize("repeated", ["<file_sep>a\nx", "x"], ids=["files", "text"])
def test_a_prompt_that_is_too_long_is_rejected(dialect: Dialect, repeated: str) -> None:
    prompt = repeated * (MAX_PROMPT_CHARS // len(repeated) + 1) + FIM_PROMPT

    with pytest.raises(BadRequest) as rejected:
        dialect.parse_request(json.dumps({"prompt": prompt}).encode())

    assert (rejected.value.code, rejected.value.http_status) == ("too_large", 413)


def test_only_the_first_messages_are_parsed() -> None:
    body = json.dumps({"messages": [{"role": "user", "content": ""}] * 100_000}).encode()

    # The parser keeps one message more than allowed, so that validation rejects the request.
    assert len(openai_chat.parse_request(body).draft.messages) == MAX_MESSAGES + 1


def test_only_the_first_stop_strings_are_parsed() -> None:
    # The first stop strings are markers, which are dropped. The last one is not reached.
    stops = ["<|endoftext|>"] * 10_000 + ["a"]
    body = json.dumps({"prompt": "a", "stop": stops}).encode()

    assert _parse_completion(body).stop == ()


def test_only_the_first_snippets_are_used() -> None:
    snippets = [{"filepath": f"{number}.py", "body": ""} for number in range(10_000)]
    # Tabby's clients send `segments` to OpenAI's path.
    body = json.dumps({"segments": {"prefix": "", "declarations": snippets}}).encode()

    files = _parse_completion(body).files

    assert [file.path for file in files] == [f"{number}.py" for number in range(MAX_FILES)]


def test_only_the_newest_extra_files_are_used_and_those_of_equal_age_keep_their_order() -> None:
    extras = [{"text": str(number), "time": number // 2} for number in range(10_000)]
    body = json.dumps({"input_extra": extras}).encode()

    files = llama_cpp_infill.parse_request(body).draft.files

    assert len(files) == MAX_FILES
    # Two files each have the same age.
    assert [file.text for file in files[:4]] == ["9998", "9999", "9996", "9997"]
