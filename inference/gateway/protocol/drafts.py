"""Turns clients' frames into drafts: requests that the receive stage then validates. Pure."""

from inference.completion.edit import Diagnostic, RecentEdit
from inference.completion.incoming_request import ContextFile, Definition, UnvalidatedRequest
from inference.gateway.protocol.frames import CompleteFrame, FileFrame, FileOpenedFrame
from inference.gateway.receive import (
    MAX_DEFINITIONS,
    MAX_DIAGNOSTICS,
    MAX_FILES,
    MAX_RECENT_EDITS,
)


def to_draft(frame: CompleteFrame) -> UnvalidatedRequest:
    return UnvalidatedRequest(
        mode=frame.mode,
        prefix=frame.prefix,
        suffix=frame.suffix,
        path=frame.path,
        language=frame.language,
        files=_to_files(frame.files),
        repository=frame.repository.name,
        # The framework counts as one more import. Empty names are left out.
        imports=tuple(filter(None, (frame.repository.framework, *frame.repository.imports))),
        max_tokens=frame.max_tokens,
        trigger=frame.trigger,
        alternative=frame.alternative,
        model=frame.model,
        # One more than allowed, so that `receive` rejects too many:
        recent_edits=tuple(
            RecentEdit(edit.path, edit.start_line, edit.removed, edit.added)
            for edit in frame.recent_edits[: MAX_RECENT_EDITS + 1]
        ),
        diagnostics=tuple(
            Diagnostic(diagnostic.line, diagnostic.severity, diagnostic.message)
            for diagnostic in frame.diagnostics[: MAX_DIAGNOSTICS + 1]
        ),
        definitions=tuple(
            Definition(definition.path, definition.text)
            for definition in frame.definitions[: MAX_DEFINITIONS + 1]
        ),
    )


def to_warmup_draft(frame: FileOpenedFrame) -> UnvalidatedRequest:
    """Return a warm-up with the cursor at a line near the middle of the file.

    Only the beginning of the prompt is warmed up, and the cursor's position hardly affects it.
    """
    middle = frame.text.rfind("\n", 0, len(frame.text) // 2) + 1
    return UnvalidatedRequest(
        mode="inline",
        prefix=frame.text[:middle],
        suffix=frame.text[middle:],
        path=frame.path,
        language=frame.language,
        files=_to_files(frame.files),
        repository=frame.repository.name,
        trigger="prefetch",
        is_warm_up=True,
    )


def _to_files(frames: list[FileFrame]) -> tuple[ContextFile, ...]:
    """Convert one file more than the limit allows, so that `receive` rejects too many files."""
    return tuple(
        ContextFile(file.path, file.text, file.edited_at, is_pinned=file.is_pinned)
        for file in frames[: MAX_FILES + 1]
    )
