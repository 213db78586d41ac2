"""Makes the prompt that asks a model for the next edit (see `edit_formats`)."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from detect_secrets.util.filetype import FileType

from caret.contracts.usage import FinishReason
from inference.completion.edit import Diagnostic, RecentEdit
from inference.completion.request import CompletionRequest
from inference.completion.segment import (
    SegmentKind,
    SegmentTokens,
    count_segments,
    join_token_ids,
)
from inference.context.edits.editable_region import (
    EditContext,
    RegionLimits,
    find_edit_context,
)
from inference.context.prompt.model_formats.edit_formats import EditFormat
from inference.context.prompt.prompt import Prompt
from inference.context.prompt.prompt_writer import PromptWriter
from inference.context.redaction.redact import (
    REDACTED,
    file_type,
    redact_private_keys,
    redact_text,
)
from inference.errors import CompletionDropped

# An answer may have this many tokens more than the region: added text and the answer's markers.
_MAX_GROWTH_TOKENS: Final = 160
_DIAGNOSTICS_SHARE: Final = 0.4  # at most, of the tokens for edits and diagnostics together
_SPARSE_TEXT_FACTOR: Final = 1.5  # messages have more characters per token than code
_MAX_PATH_CHARS: Final = 200  # the end of a longer path is enough
# A line of a private key's body: a recent edit may contain such lines without the key's header.
_KEY_LINE: Final = re.compile(r"^[ \t]*[A-Za-z0-9+/=]{40,}[ \t\r]*$", re.MULTILINE)


def build_edit_prompt(writer: PromptWriter, request: CompletionRequest) -> Prompt:
    """Build the prompt that asks for the next edit, without secrets.

    CompletionDropped (filtered) means that the text around the cursor cannot be edited, or that the
    model's context is too small for it. Raises CompletionDropped.
    """
    edit_format = writer.edit_format
    assert edit_format is not None, "the pool was selected for its edit format"
    fixed_token_ids = {
        text: writer.tokenizer.encode(text) for text in _list_fixed_texts(edit_format)
    }
    total = min(
        writer.get_budget_tokens(request.tier), writer.max_context_tokens - request.max_tokens
    )
    room = total - len(writer.markers.begin) - sum(map(len, fixed_token_ids.values()))
    # If the format's token counts exceed the room, the region and the lines around it get only this
    # share of their token counts. Edits and diagnostics get the rest.
    share = min(1.0, room / _sum_tokens(edit_format))
    context = _find_context(writer, edit_format, request, share)
    if context is None:
        raise CompletionDropped(FinishReason.FILTERED)
    excerpt = writer.tokenizer.encode(edit_format.render_excerpt(context.excerpt))
    if len(excerpt) > room:
        raise CompletionDropped(FinishReason.FILTERED)
    edits = _encode_edits(
        writer,
        edit_format,
        request,
        context,
        max_tokens=min(edit_format.edits_tokens, room - len(excerpt)),
    )
    instruction = [*writer.markers.begin, *fixed_token_ids[edit_format.instruction]]
    pieces = [
        SegmentTokens(SegmentKind.MARKERS, instruction),
        SegmentTokens(SegmentKind.EDITS, edits),
        SegmentTokens(SegmentKind.EXCERPT, excerpt),
        SegmentTokens(SegmentKind.MARKERS, fixed_token_ids[edit_format.response]),
    ]
    num_region_tokens = len(writer.tokenizer.encode(context.excerpt.region))
    return Prompt(
        token_ids=join_token_ids(pieces),
        stop_token_ids=writer.stop_token_ids,
        is_single_line=False,
        num_stable_tokens=len(instruction),
        segments=count_segments(pieces),
        max_tokens=num_region_tokens + _MAX_GROWTH_TOKENS,
        region=context.region,
    )


def _list_fixed_texts(edit_format: EditFormat) -> tuple[str, str]:
    return edit_format.instruction, edit_format.response


def _sum_tokens(edit_format: EditFormat) -> int:
    """Return the sum of the format's token counts: region, lines above and below it, and edits."""
    return edit_format.region_tokens + 2 * edit_format.context_tokens + edit_format.edits_tokens


def _find_context(
    writer: PromptWriter, edit_format: EditFormat, request: CompletionRequest, share: float
) -> EditContext | None:
    # The share is negative if the fixed texts alone exceed the budget. Then no region fits.
    chars_per_token = writer.chars_per_token * max(share, 0.0)
    limits = RegionLimits(
        region_chars=int(edit_format.region_tokens * chars_per_token),
        context_chars=int(edit_format.context_tokens * chars_per_token),
    )
    return find_edit_context(
        edit_format,
        (request.prefix, request.suffix),
        limits,
        path=_shorten_path(request.path),
        kind=file_type(request.path),
    )


def _encode_edits(
    writer: PromptWriter,
    edit_format: EditFormat,
    request: CompletionRequest,
    context: EditContext,
    *,
    max_tokens: int,
) -> list[int]:
    """Return the tokens of the newest edits that fit, oldest first, and then of the diagnostics."""
    kind = file_type(request.path)
    diagnostics = _encode_diagnostics(
        writer,
        edit_format,
        _select_diagnostics(request.diagnostics, context, kind),
        max_tokens=int(max_tokens * _DIAGNOSTICS_SHARE),
    )
    room, encoded_edits = max_tokens - len(diagnostics), list[list[int]]()
    for edit in reversed(request.recent_edits):
        token_ids = writer.tokenizer.encode(edit_format.render_edit(_redact_edit(edit)))
        room -= len(token_ids)
        if room < 0:
            break
        encoded_edits.append(token_ids)
    return [token for token_ids in encoded_edits[::-1] for token in token_ids] + diagnostics


def _encode_diagnostics(
    writer: PromptWriter,
    edit_format: EditFormat,
    diagnostics: Sequence[tuple[str, Diagnostic]],
    *,
    max_tokens: int,
) -> list[int]:
    """Return the tokens of the first diagnostics that fit. Each comes with its line's text."""
    max_chars = max_tokens * writer.chars_per_token * _SPARSE_TEXT_FACTOR
    for count in range(len(diagnostics), 0, -1):
        text = edit_format.render_diagnostics(diagnostics[:count])
        if len(text) <= max_chars:  # a longer text need not be encoded
            token_ids = writer.tokenizer.encode(text)
            if len(token_ids) <= max_tokens:
                return token_ids
    return []


def _select_diagnostics(
    diagnostics: Sequence[Diagnostic], context: EditContext, kind: FileType
) -> list[tuple[str, Diagnostic]]:
    """Return the diagnostics of lines that the prompt shows, each with its line's text.

    The messages are returned without their secrets.
    """
    selected: list[tuple[str, Diagnostic]] = []
    for diagnostic in diagnostics:
        index = diagnostic.line - context.start_line
        if 0 <= index < len(context.shown_lines):
            line = context.shown_lines[index].strip()
            message = _redact(diagnostic.message, kind)
            selected.append((line, replace(diagnostic, message=message)))
    return selected


def _redact_edit(edit: RecentEdit) -> RecentEdit:
    kind = file_type(edit.path)
    return RecentEdit(
        path=_shorten_path(edit.path),
        start_line=edit.start_line,
        removed=_redact(edit.removed, kind),
        added=_redact(edit.added, kind),
    )


def _redact(text: str, kind: FileType) -> str:
    return _KEY_LINE.sub(REDACTED, redact_text(redact_private_keys(text), kind))


def _shorten_path(path: str) -> str:
    """Return the end of the path, without line breaks: they would end its line in the prompt."""
    return " ".join(path.split())[-_MAX_PATH_CHARS:]
