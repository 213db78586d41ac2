"""Prompt formats of models that propose edits: one entry of data and pure functions per format.

The model reads the recent edits and an excerpt of the file. A part of the excerpt around the cursor
is marked as editable: the editable region. The model answers with that region as it should become.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from caret.foundation.environment import BadSetting
from inference.completion.edit import Diagnostic, RecentEdit


@dataclass(frozen=True, slots=True)
class EditExcerpt:
    """A part of the file. Line breaks are `\\n`."""

    path: str
    is_file_start: bool  # it begins with the file's first line
    above: str  # whole lines above the editable region, each with its line break
    region: str  # the editable region, without its last line break
    cursor: int  # the number of characters of `region` before the cursor
    below: str  # whole lines below the editable region, the last one without its line break


@dataclass(frozen=True, slots=True)
class EditFormat:
    """The format of one series of models.

    Token counts are those of the editor that the model was trained for. Larger excerpts would be
    unlike the model's training data.
    """

    name: str
    region_tokens: int  # of the editable region
    context_tokens: int  # of the lines above the region, and of those below it
    edits_tokens: int  # of the recent edits and diagnostics
    markers: tuple[str, ...]  # a file that contains one of them cannot be edited
    end_marker: str  # an answer is complete when it contains this marker
    render_edit: Callable[[RecentEdit], str]
    # Renders diagnostics, each with the text of its line.
    render_diagnostics: Callable[[Sequence[tuple[str, Diagnostic]]], str]
    instruction: str  # before the edits
    render_excerpt: Callable[[EditExcerpt], str]
    response: str  # after the excerpt; the answer follows
    parse: Callable[[str], str | None]  # the new region of an answer; None: the answer has none


# Zeta, of Zed Industries: Qwen2.5-Coder, trained on the data set zed-industries/zeta. The markers
# are ordinary text for its tokenizer.
_ZETA_FILE_START: Final = "<|start_of_file|>"
_ZETA_REGION_START: Final = "<|editable_region_start|>"
_ZETA_REGION_END: Final = "<|editable_region_end|>"
_ZETA_CURSOR: Final = "<|user_cursor_is_here|>"


def _render_zeta_edit(edit: RecentEdit) -> str:
    removed, added = _split_lines(edit.removed), _split_lines(edit.added)
    lines = [f"-{line}" for line in removed] + [f"+{line}" for line in added]
    # Diffs count lines from 1. If no line was removed, a standard unified diff has the number of
    # the line before the added lines. The training data has the number of the first added line
    # instead, because Zed wrote it with imara-diff.
    first = edit.start_line + 1
    header = f"@@ -{first},{len(removed)} +{first},{len(added)} @@"
    diff = "\n".join([header, *lines])
    return f'User edited "{edit.path}":\n```diff\n{diff}\n\n```\n\n'


def _split_lines(text: str) -> list[str]:
    """Split at line feeds only, as editors do: `str.splitlines` also splits at form feeds."""
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    return lines if lines[-1] else lines[:-1]  # the text usually ends with a line break


def _render_zeta_diagnostics(diagnostics: Sequence[tuple[str, Diagnostic]]) -> str:
    """List the diagnostics in plain words, because the training data has no format for them."""
    reports = [
        f"{diagnostic.severity} at `{line}`: {diagnostic.message}"
        for line, diagnostic in diagnostics
    ]
    listing = "\n".join(" ".join(report.split()) for report in reports)
    return f"Diagnostics:\n```\n{listing}\n```\n\n"


def _render_zeta_excerpt(excerpt: EditExcerpt) -> str:
    region = excerpt.region[: excerpt.cursor] + _ZETA_CURSOR + excerpt.region[excerpt.cursor :]
    file_start = f"{_ZETA_FILE_START}\n" if excerpt.is_file_start else ""
    below = f"\n{excerpt.below}" if excerpt.below else ""
    return (
        f"```{excerpt.path}\n{file_start}{excerpt.above}{_ZETA_REGION_START}\n{region}\n"
        f"{_ZETA_REGION_END}{below}\n```\n\n"
    )


def _parse_zeta(answer: str) -> str | None:
    _, start, rest = answer.partition(_ZETA_REGION_START)
    region, end, _ = rest.partition(_ZETA_REGION_END)
    if not start or not end:
        return None
    return region.replace(_ZETA_CURSOR, "").removeprefix("\n").removesuffix("\n")


EDIT_FORMATS: Final = (
    EditFormat(
        name="zeta",
        region_tokens=350,
        context_tokens=150,
        edits_tokens=500,
        markers=(_ZETA_FILE_START, _ZETA_REGION_START, _ZETA_REGION_END, _ZETA_CURSOR),
        end_marker=_ZETA_REGION_END,
        render_edit=_render_zeta_edit,
        render_diagnostics=_render_zeta_diagnostics,
        instruction=(
            "### Instruction:\nYou are a code completion assistant and your task is to analyze user"
            " edits and then rewrite an excerpt that the user provides, suggesting the appropriate"
            " edits within the excerpt, taking into account the cursor location.\n\n"
            "### User Edits:\n\n"
        ),
        render_excerpt=lambda excerpt: f"### User Excerpt:\n\n{_render_zeta_excerpt(excerpt)}",
        response="### Response:\n\n",
        parse=_parse_zeta,
    ),
)


def get_edit_format(name: str) -> EditFormat:
    """Return the format. Raises BadSetting."""
    for edit_format in EDIT_FORMATS:
        if edit_format.name == name:
            return edit_format
    names = ", ".join(edit_format.name for edit_format in EDIT_FORMATS)
    raise BadSetting(f"Unknown edit format {name}; the formats are {names}.")
