"""receive: valid requests continue; invalid ones are rejected with a code."""

from typing import Any

import pytest

from caret.contracts.language_ids import LANGUAGES, language_of_name, language_of_path
from caret.contracts.policy import Mode, Tier
from caret.contracts.pricing import MAX_CHAT_TOKENS
from inference.completion.generation_options import Sampling
from inference.completion.incoming_request import ChatMessage, ContextFile
from inference.errors import BadRequest
from inference.gateway.receive import (
    DEFAULT_MAX_TOKENS,
    MAX_ALTERNATIVE,
    MAX_FILES,
    MAX_FILES_CHARS,
    MAX_MESSAGES,
    MAX_NAME_CHARS,
    MAX_STOP_CHARS,
    MAX_STOPS,
    MAX_TEXT_CHARS,
    MAX_TOKENS,
    receive,
)
from tests.fakes.requests import make_arrival

FILE = ContextFile("b.py", "b = 1\n", 0.0)
HELLO = ChatMessage("user", "hello")


def _rejection(**fields: Any) -> BadRequest:
    with pytest.raises(BadRequest) as rejected:
        receive(make_arrival(**fields))
    return rejected.value


def test_a_simple_request_is_accepted() -> None:
    request = receive(make_arrival(prefix="a = ", suffix="\n", path="a.py", repository="shop"))

    assert (request.prefix, request.suffix) == ("a = ", "\n")
    assert (request.path, request.repository) == ("a.py", "shop")


@pytest.mark.parametrize("mode", list(Mode))
def test_each_mode_has_a_default_number_of_tokens(mode: Mode) -> None:
    messages = (HELLO,) if mode is Mode.CHAT else ()

    request = receive(make_arrival(mode=mode.value, messages=messages))

    assert request.max_tokens == DEFAULT_MAX_TOKENS[mode]


@pytest.mark.parametrize(
    ("mode", "tier"),
    [
        (Mode.INLINE, Tier.FAST),
        (Mode.FIM, Tier.FAST),
        (Mode.BLOCK, Tier.QUALITY),
        (Mode.DOCSTRING, Tier.QUALITY),
    ],
)
def test_the_mode_decides_the_tier(mode: Mode, tier: Tier) -> None:
    assert receive(make_arrival(mode=mode.value)).tier is tier


def test_an_unknown_mode_is_rejected_without_repeating_it() -> None:
    error = _rejection(mode="xyzzy")

    assert error.code == "unknown_mode"
    assert "xyzzy" not in error.message


@pytest.mark.parametrize(("mode", "messages"), [("chat", ()), ("inline", (HELLO,))])
def test_chats_require_messages_and_other_modes_reject_them(
    mode: str, messages: tuple[ChatMessage, ...]
) -> None:
    assert _rejection(mode=mode, messages=messages).code == "invalid_field"


@pytest.mark.parametrize(
    "messages",
    [(HELLO,) * (MAX_MESSAGES + 1), (ChatMessage("user", "a" * MAX_TEXT_CHARS), HELLO)],
)
def test_a_chat_over_the_limits_is_rejected(messages: tuple[ChatMessage, ...]) -> None:
    assert _rejection(mode="chat", messages=messages).code == "too_large"


def test_an_unknown_trigger_is_rejected_without_repeating_it() -> None:
    error = _rejection(trigger="xyzzy")

    assert error.code == "invalid_field"
    assert "xyzzy" not in error.message


def test_an_unknown_language_is_rejected_without_repeating_it() -> None:
    error = _rejection(language="xyzzy")

    assert error.code == "unknown_language"
    assert "xyzzy" not in error.message


@pytest.mark.parametrize(("text", "language"), [("Python", "python"), ("", ""), ("C#", "c#")])
def test_language_names_ignore_case(text: str, language: str) -> None:
    assert receive(make_arrival(language=text)).language == language


@pytest.mark.parametrize(
    ("path", "language"),
    [
        ("src/main.py", "python"),
        ("C:\\shop\\Main.TSX", "typescriptreact"),
        ("deploy/Dockerfile", "dockerfile"),
        ("lib/CMakeLists.txt", "cmake"),
        (".py", ""),
        ("notes", ""),
        ("", ""),
    ],
)
def test_the_path_names_the_language_if_the_client_does_not(path: str, language: str) -> None:
    assert receive(make_arrival(path=path, language="")).language == language
    assert receive(make_arrival(path=path, language="go")).language == "go"


@pytest.mark.parametrize(
    ("name", "language"),
    [("Python", "python"), ("py", "python"), (".rs", "rust"), ("golang", "go"), ("klingon", "")],
)
def test_names_and_suffixes_of_languages_are_known(name: str, language: str) -> None:
    assert language_of_name(name) == language


def test_languages_detected_by_suffix_are_known() -> None:
    suffixes = ("py", "h", "cs", "ex", "m", "mm", "proto", "sc", "tf", "tsx", "vue", "zig", "rst")

    assert {language_of_path(f"a.{suffix}") for suffix in suffixes} <= LANGUAGES


def test_a_completion_of_no_tokens_is_rejected() -> None:
    assert _rejection(max_tokens=0).code == "invalid_field"


def test_a_warm_up_needs_no_tokens() -> None:
    assert receive(make_arrival(max_tokens=0, is_warm_up=True)).max_tokens == 1


@pytest.mark.parametrize("requested", [-1, -2])
def test_a_negative_limit_means_the_default(requested: int) -> None:
    request = receive(make_arrival(max_tokens=requested))

    assert request.max_tokens == DEFAULT_MAX_TOKENS[Mode.INLINE]


@pytest.mark.parametrize(
    ("sampling", "field"),
    [
        (Sampling(temperature=2.1), "temperature"),
        (Sampling(temperature=-0.1), "temperature"),
        (Sampling(temperature=float("inf")), "temperature"),
        (Sampling(top_p=0.0), "top_p"),
        (Sampling(top_p=1.1), "top_p"),
        (Sampling(seed=2**63), "seed"),
    ],
)
def test_sampling_out_of_range_is_rejected_by_its_field(sampling: Sampling, field: str) -> None:
    error = _rejection(sampling=sampling)

    assert (error.code, error.param) == ("invalid_field", field)


@pytest.mark.parametrize(
    ("requested", "expected"), [(1, 1), (MAX_TOKENS, MAX_TOKENS), (MAX_TOKENS + 1, MAX_TOKENS)]
)
def test_max_tokens_is_limited(requested: int, expected: int) -> None:
    assert receive(make_arrival(max_tokens=requested)).max_tokens == expected


@pytest.mark.parametrize("number", [-1, MAX_ALTERNATIVE + 1])
def test_alternatives_out_of_range_are_rejected(number: int) -> None:
    assert _rejection(alternative=number).code == "invalid_field"


def test_the_number_of_an_alternative_is_its_seed() -> None:
    # The temperature and `top_p` are those of all alternatives.
    assert receive(make_arrival(alternative=2)).sampling == Sampling(0.8, 0.95, seed=2)


def test_a_chat_may_be_longer_than_other_completions() -> None:
    request = receive(make_arrival(mode="chat", prefix="", messages=(HELLO,), max_tokens=9_999))

    assert request.max_tokens == MAX_CHAT_TOKENS


def test_the_most_recently_edited_file_comes_first() -> None:
    old, new = ContextFile("old.py", "", 1.0), ContextFile("new.py", "", 2.0)

    request = receive(make_arrival(files=(old, new)))

    assert request.files == (new, old)


AT_THE_LIMIT: dict[str, dict[str, Any]] = {
    "prefix": {"prefix": "x" * MAX_TEXT_CHARS},
    "suffix": {"suffix": "x" * MAX_TEXT_CHARS},
    "number of files": {"files": (FILE,) * MAX_FILES},
    "characters of files": {"files": (ContextFile("b.py", "x" * MAX_FILES_CHARS, 0),)},
    "path": {"path": "x" * MAX_NAME_CHARS},
    "repository": {"repository": "x" * MAX_NAME_CHARS},
    "path of a file": {"files": (ContextFile("x" * MAX_NAME_CHARS, "", 0),)},
    "number of stops": {"stop": ("x",) * MAX_STOPS},
    "characters of a stop": {"stop": ("x" * MAX_STOP_CHARS,)},
}
BEYOND_THE_LIMIT: dict[str, dict[str, Any]] = {
    "prefix": {"prefix": "x" * (MAX_TEXT_CHARS + 1)},
    "suffix": {"suffix": "x" * (MAX_TEXT_CHARS + 1)},
    "number of files": {"files": (FILE,) * (MAX_FILES + 1)},
    "characters of files": {"files": (ContextFile("b.py", "x" * MAX_FILES_CHARS, 0), FILE)},
    "path": {"path": "x" * (MAX_NAME_CHARS + 1)},
    "repository": {"repository": "x" * (MAX_NAME_CHARS + 1)},
    "path of a file": {"files": (ContextFile("x" * (MAX_NAME_CHARS + 1), "", 0),)},
}


@pytest.mark.parametrize("name", AT_THE_LIMIT)
def test_values_at_the_limits_are_accepted(name: str) -> None:
    receive(make_arrival(**AT_THE_LIMIT[name]))


@pytest.mark.parametrize("name", BEYOND_THE_LIMIT)
def test_values_over_the_limits_are_too_large(name: str) -> None:
    error = _rejection(**BEYOND_THE_LIMIT[name])

    assert (error.code, error.http_status) == ("too_large", 413)


@pytest.mark.parametrize(
    "stop",
    [("x",) * (MAX_STOPS + 1), ("x" * (MAX_STOP_CHARS + 1),), ("",)],
    ids=["too many", "too long", "empty"],
)
def test_stop_strings_that_the_engine_would_reject_are_rejected(stop: tuple[str, ...]) -> None:
    assert _rejection(stop=stop).code == "invalid_field"
