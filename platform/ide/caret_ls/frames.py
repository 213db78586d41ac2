"""Frames of the stream protocol `caret.v1`, which platform/docs/protocol.md explains. Pure."""

import json
from dataclasses import dataclass
from typing import Any, Final

from caret_ls.completion_context import CompletionContext
from caret_ls.outcome_tracker import EditorOutcome

SUBPROTOCOL: Final = "caret.v1"
MAX_NAME_CHARS: Final = 512  # of a path or of a repository's name
Frame = dict[str, Any]  # the JSON object of a frame


@dataclass(frozen=True, slots=True)
class FrameFile:
    """A file that is sent as context."""

    path: str  # in the repository
    text: str  # of a long file, perhaps only a part
    edited_at: float  # Unix seconds; 0: unknown
    is_pinned: bool = False  # the repository chose it as context for all users

    def to_fields(self) -> Frame:
        fields: Frame = {"path": self.path, "text": self.text, "edited_at": self.edited_at}
        return fields | {"is_pinned": True} if self.is_pinned else fields


@dataclass(frozen=True, slots=True)
class FrameDefinition:
    """A few lines of another file, which define a symbol."""

    path: str  # of that file, in the repository
    text: str

    def to_fields(self) -> Frame:
        return {"path": self.path, "text": self.text}


@dataclass(frozen=True, slots=True)
class RequestContext:
    """The context of a request besides the text around the cursor."""

    files: tuple[FrameFile, ...] = ()  # the pinned ones, then the others, last edited first
    definitions: tuple[FrameDefinition, ...] = ()  # sent with completions, except edits
    repository: str = ""  # its name; "": the file is in no repository
    framework: str = ""  # of the file, such as `django`; "": not known
    imports: tuple[str, ...] = ()  # the modules that the file imports

    def to_fields(self) -> Frame:
        return {
            "files": [file.to_fields() for file in self.files],
            "repository": {
                "name": self.repository[:MAX_NAME_CHARS],
                "framework": self.framework,
                "imports": list(self.imports),
            },
        }


def build_complete(
    id: str, context: CompletionContext, request_context: RequestContext, *, trigger: str
) -> Frame:
    frame: Frame = {
        "type": "complete",
        "id": id,
        "mode": context.mode,
        "path": context.path[:MAX_NAME_CHARS],
        "language": context.language,
        "prefix": context.prefix,
        "suffix": context.suffix,
        "trigger": trigger,
        **request_context.to_fields(),
    }
    if request_context.definitions and context.mode != "edit":
        frame["definitions"] = [item.to_fields() for item in request_context.definitions]
    return frame


def build_file_opened(
    path: str, language: str, text: str, request_context: RequestContext
) -> Frame:
    return {
        "type": "file_opened",
        "path": path[:MAX_NAME_CHARS],
        "language": language,
        "text": text,
        **request_context.to_fields(),
    }


def build_cancel(id: str) -> Frame:
    return {"type": "cancel", "id": id}


def build_policy_query(repository: str) -> Frame:
    return {"type": "policy", "repository": repository[:MAX_NAME_CHARS]}


def build_typing(chars: dict[str, int]) -> Frame:
    """Create a typing report: `chars` has the number of typed characters by language."""
    return {"type": "typing", "chars": chars}


def build_outcome(report: EditorOutcome, *, shares_text: bool) -> Frame:
    """Create an outcome frame.

    It contains code only if the user shares it: the accepted text as the user later edited it.
    """
    frame: Frame = {
        "type": "outcome",
        "id": report.id,
        "event": report.event.value,
        "after_ms": report.after_ms,
    }
    if report.request_id:
        frame["request_id"] = report.request_id
    optional = {
        "chars": report.chars,
        "lines": report.lines,
        "edited_ratio": report.edited_ratio,
        "display_ms": report.display_ms,
    }
    frame |= {name: value for name, value in optional.items() if value is not None}
    if shares_text and report.text is not None:
        frame["text"] = report.text
    return frame


def encode_frame(frame: Frame) -> str:
    """Encode a frame as ASCII. So it may contain lone surrogates, which UTF-8 cannot encode."""
    return json.dumps(frame, separators=(",", ":"))


def decode_frame(text: str) -> Frame:
    """Decode a frame. Return {} for a text that is not a JSON object, such as a proxy's error."""
    try:
        frame = json.loads(text)
    except ValueError:
        return {}
    return frame if isinstance(frame, dict) else {}
