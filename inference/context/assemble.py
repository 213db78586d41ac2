"""The assemble stage: make a prompt within its token budget."""

from dataclasses import replace
from typing import Final

from caret.contracts.policy import Mode
from inference.completion.request import AdmittedRequest, CompletionRequest
from inference.completion.segment import Segment, SegmentKind
from inference.completion.snippet import Snippet
from inference.context.edits.edit_prompt import build_edit_prompt
from inference.context.prompt.chat_prompt import build_chat_prompt
from inference.context.prompt.fim_prompt import build_fim_prompt
from inference.context.prompt.prompt import Prompt
from inference.context.prompt.prompt_writer import PromptWriter
from inference.context.redaction.redact import file_type, redact_private_keys, redact_text
from inference.errors import BadRequest

_MAX_CHARS_PER_TOKEN: Final = 32  # on average; no natural text comes near
_ANSWER_SHARE: Final = 0.25  # of a model's context, at most, kept free for the answer of a chat


def assemble(
    writer: PromptWriter, admitted: AdmittedRequest, snippets: tuple[Snippet, ...] = ()
) -> Prompt:
    """Return the prompt of a request.

    The codes of BadRequest are `invalid_field` (an empty raw prompt), `prompt_too_long` (a raw
    prompt above the limit), and those of `build_chat_prompt`. Only `build_edit_prompt` raises
    CompletionDropped. Raises BadRequest, CompletionDropped.
    """
    request = admitted.request
    if request.mode is Mode.EDIT:
        return build_edit_prompt(writer, request)
    if request.messages:
        return _build_chat_prompt(writer, request)
    max_prompt_tokens = min(
        writer.get_budget_tokens(request.tier), writer.max_context_tokens - request.max_tokens
    )
    if request.is_raw:
        return _encode_raw_prompt(writer, request, max_prompt_tokens)
    return build_fim_prompt(writer, admitted, snippets, max_tokens=max_prompt_tokens)


def _build_chat_prompt(writer: PromptWriter, request: CompletionRequest) -> Prompt:
    """Build a chat's prompt.

    At most a quarter of the model's context is kept free for the answer, so that the question fits
    into a small context, too.
    """
    max_tokens = writer.max_context_tokens - min(
        request.max_tokens, int(writer.max_context_tokens * _ANSWER_SHARE)
    )
    prompt = build_chat_prompt(
        writer,
        request.messages,
        max_tokens=min(writer.get_budget_tokens(request.tier), max_tokens),
        path=request.path,
        files=request.files,
    )
    return replace(prompt, max_tokens=writer.max_context_tokens - len(prompt.token_ids))


def _encode_raw_prompt(
    writer: PromptWriter, request: CompletionRequest, max_prompt_tokens: int
) -> Prompt:
    """Encode a prompt that the client rendered, without its secrets. Raises BadRequest."""
    # Very long prompts are rejected without counting their tokens: to count the tokens of 512 KB
    # would block the event loop for 170 ms.
    if len(request.prefix) <= max_prompt_tokens * _MAX_CHARS_PER_TOKEN:
        token_ids = _build_raw_token_ids(writer, request, max_prompt_tokens)
        if not token_ids:  # engines reject an empty prompt
            raise BadRequest("invalid_field", "prompt must not be empty.", param="prompt")
        token_ids = [*writer.markers.begin, *token_ids]
        if len(token_ids) <= max_prompt_tokens:
            return Prompt(
                token_ids,
                writer.stop_token_ids,
                is_single_line=False,
                segments=(Segment(SegmentKind.RAW, len(token_ids)),),
            )
    raise BadRequest(
        "prompt_too_long", f"A raw prompt must have at most {max_prompt_tokens} tokens."
    )


def _build_raw_token_ids(
    writer: PromptWriter, request: CompletionRequest, max_prompt_tokens: int
) -> list[int]:
    """Return the tokens of the prompt without its secrets.

    Secrets in the last line are removed, too: unlike a prefix, a raw prompt does not show whether
    the cursor is in that line. A prompt that is too long keeps its secrets, because the caller
    rejects it.
    """
    token_ids = writer.tokenizer.encode_raw(request.prefix)
    if len(token_ids) > max_prompt_tokens:
        return token_ids
    redacted = redact_text(redact_private_keys(request.prefix), file_type(request.path))
    return token_ids if redacted == request.prefix else writer.tokenizer.encode_raw(redacted)
