"""assemble: the request's texts become a prompt within the tier's token budget."""

from typing import Final

from caret.contracts.policy import Mode
from inference.completion.request import Admitted, CompletionRequest
from inference.completion.retrieved import Snippet
from inference.context.budget import PROMPT_TOKENS, Budget, share_out
from inference.context.chat import chat_prompt
from inference.context.files import encode_files
from inference.context.layout import lay_out
from inference.context.prompt import Parts, Prompt
from inference.context.writer import Encoder, PromptWriter
from inference.errors import BadRequest

_MARKER_TOKENS: Final = 4  # at most: begin, prefix, suffix, middle
_MAX_CHARS_PER_TOKEN: Final = 32  # on average: no text of a language comes near


def assemble(
    writer: PromptWriter, admitted: Admitted, _snippets: tuple[Snippet, ...] = ()
) -> Prompt:
    """Raises BadRequest: `prompt_too_long` for a raw prompt beyond the budget, and what chat_prompt
    raises."""
    request = admitted.request
    total = min(PROMPT_TOKENS[request.tier], writer.max_context_tokens - request.max_tokens)
    if request.messages:
        return chat_prompt(writer, request.messages, max_tokens=total)
    if request.is_raw:
        token_ids, num_stable = _raw(writer, request, total), 0
    else:
        token_ids, num_stable = _fim(writer, admitted, total)
    return Prompt(
        token_ids=token_ids,
        stop_token_ids=writer.stop_token_ids,
        is_single_line=_is_single_line(request),
        num_stable_tokens=num_stable,
    )


def _raw(writer: PromptWriter, request: CompletionRequest, total: int) -> list[int]:
    # So long that it need not be counted: counting 512 KB would hold the loop for 170 ms.
    if len(request.prefix) <= total * _MAX_CHARS_PER_TOKEN:
        token_ids = [*writer.markers.begin, *writer.tokens.encode_raw(request.prefix)]
        if len(token_ids) <= total:
            return token_ids
    raise BadRequest("prompt_too_long", f"A raw prompt may have {total} tokens.")


def _fim(writer: PromptWriter, admitted: Admitted, total: int) -> tuple[list[int], int]:
    """The prompt, and how many tokens of its beginning are other files."""
    request = admitted.request
    encode = Encoder(writer, holder=writer.lines.holder_of(admitted.principal))
    room = total - _MARKER_TOKENS
    budget = _budget(writer, request, room)
    # What nobody is estimated to need is there for whoever turns out denser than estimated.
    spare = room - budget.files_tokens - budget.suffix_tokens - budget.prefix_tokens
    files = encode_files(
        encode, request.files, current_path=request.path, max_tokens=budget.files_tokens + spare
    )
    room -= len(files)
    max_suffix = min(budget.suffix_tokens + spare, room - budget.prefix_tokens)
    suffix = encode.head(request.suffix, max_tokens=max_suffix)
    prefix = encode.tail(request.prefix, max_tokens=room - len(suffix))
    parts = Parts(files=files, suffix=suffix, prefix=prefix)
    num_stable = len(writer.markers.begin) + len(files)
    return lay_out(writer.order, writer.markers, parts), num_stable


def _budget(writer: PromptWriter, request: CompletionRequest, total: int) -> Budget:
    """Shares by estimate, so that each text is encoded once; the encoders hold them exactly."""

    def estimate(num_chars: int) -> int:
        # A fifth more than on average: code denser than the sample must not be starved.
        return int(num_chars / writer.chars_per_token * 1.2) + 2

    return share_out(
        total,
        files=estimate(sum(len(file.path) + len(file.text) for file in request.files))
        if request.files
        else 0,
        suffix=estimate(len(request.suffix)),
        prefix=estimate(len(request.prefix)),
    )


def _is_single_line(request: CompletionRequest) -> bool:
    """Inline completions end with the line, unless the cursor stands on a fresh one."""
    if request.is_raw or request.mode is not Mode.INLINE:
        return False
    line_before = request.prefix.rpartition("\n")[2]
    line_after = request.suffix.partition("\n")[0]
    return bool(line_before.strip() or line_after.strip())
