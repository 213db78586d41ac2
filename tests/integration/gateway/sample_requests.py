"""A valid request of each HTTP protocol for completions, streamed and whole."""

from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class SampleRequest:
    path: str
    body: dict[str, Any]
    is_streamed: bool
    # Names that lead to the token limit in the body, such as ("options", "num_predict").
    length_field: tuple[str, ...]

    def body_with(self, max_tokens: int) -> dict[str, Any]:
        *outer, last = self.length_field
        limit: dict[str, Any] = {last: max_tokens}
        for name in reversed(outer):
            limit = {name: limit}
        return {**self.body, **limit}


_MESSAGES: Final = [{"role": "user", "content": "Say something."}]
_MAX_TOKENS_FIELD: Final = ("max_tokens",)


def _both_forms(
    path: str, body: dict[str, Any], field: tuple[str, ...] = _MAX_TOKENS_FIELD
) -> tuple[SampleRequest, SampleRequest]:
    whole, streamed = ({**body, "stream": is_streamed} for is_streamed in (False, True))
    return (
        SampleRequest(path, whole, is_streamed=False, length_field=field),
        SampleRequest(path, streamed, is_streamed=True, length_field=field),
    )


_SAMPLES: Final = (
    *_both_forms("/v1/completions", {"prompt": "x = ", "suffix": "\n"}),
    *_both_forms("/v1/chat/completions", {"messages": _MESSAGES}),
    *_both_forms("/v1/fim/completions", {"prompt": "x = ", "suffix": "\n"}),
    *_both_forms(
        "/infill", {"input_prefix": "", "prompt": "x = ", "input_suffix": "\n"}, ("n_predict",)
    ),
    *_both_forms("/api/generate", {"prompt": "x = ", "suffix": "\n"}, ("options", "num_predict")),
    *_both_forms("/api/chat", {"messages": _MESSAGES}, ("options", "num_predict")),
    # Tabby's agent requests no streaming and sets no token limit. If such a request has the field
    # `max_tokens` nevertheless, the gateway ignores the field.
    SampleRequest(
        "/v1/completions",
        {"segments": {"prefix": "x = ", "suffix": "\n"}},
        is_streamed=False,
        length_field=_MAX_TOKENS_FIELD,
    ),
)


def _name_of(sample: SampleRequest) -> str:
    client = "Tabby at " if "segments" in sample.body else ""
    return f"{client}{sample.path} {'streamed' if sample.is_streamed else 'whole'}"


SAMPLE_REQUESTS: Final = {_name_of(sample): sample for sample in _SAMPLES}
