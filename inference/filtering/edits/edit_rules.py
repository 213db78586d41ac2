"""The rules that withhold an edit. Pure.

An edit is shown as a whole or not at all.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from caret.foundation.parsing.grammars import Grammar, grammar_of
from inference.completion.edit import RecentEdit
from inference.completion.request import AdmittedRequest, CompletionRequest
from inference.context.edits.editable_region import EditableRegion
from inference.context.redaction.redact import REDACTED
from inference.filtering.edits.line_replacement import LineReplacement
from inference.filtering.filter_reason import FilterReason
from inference.filtering.line_gate import LineChecks
from inference.filtering.syntax_check import is_syntax_broken
from inference.filtering.syntax_excerpt import extract_excerpt

_WIDE_EXCERPT: Final = 1  # an index into syntax_excerpt.SIZES


def find_edit_grammar(admitted: AdmittedRequest) -> Grammar | None:
    """Return the grammar for checking the edit's syntax.

    None: the language has no grammar, or an experiment skips the check.
    """
    if admitted.variant.filter == "plain":
        return None
    return grammar_of(admitted.request.language, admitted.request.path)


def find_objection(
    replacement: LineReplacement,
    region: EditableRegion,
    request: CompletionRequest,
    checks: LineChecks,
    grammar: Grammar | None,
) -> FilterReason | None:
    """Return the reason why the edit must not be shown; None: it may be shown."""
    if any(marker in line for line in replacement.added for marker in region.edit_format.markers):
        return FilterReason.MARKERS
    if _has_secret(replacement, region, checks):
        return FilterReason.SECRET
    new_lines = [line for line in replacement.added if line not in replacement.removed]
    if checks.is_public is not None and checks.is_public("\n".join(new_lines)):
        return FilterReason.PUBLIC_CODE
    if _undoes_typing(replacement, region, _list_edits_of_file(request)):
        return FilterReason.UNDOES_TYPING
    if grammar is not None and _breaks_syntax(replacement, region, request, grammar):
        return FilterReason.SYNTAX
    return None


def _has_secret(replacement: LineReplacement, region: EditableRegion, checks: LineChecks) -> bool:
    """Return whether the edit adds a secret, or changes a line with a secret.

    If the region has a secret, the model saw a placeholder instead. An edit that changes such a
    line, or adds a placeholder, is withheld even if the policy has no secret filter: it would
    replace the secret with the placeholder.
    """
    if region.shown_lines != region.lines:
        shown_lines = region.shown_lines[replacement.start : replacement.end]
        if shown_lines != replacement.removed or REDACTED in "\n".join(replacement.added):
            return True
    is_secret = checks.contains_secret
    return is_secret is not None and any(map(is_secret, replacement.added))


def _list_edits_of_file(request: CompletionRequest) -> list[RecentEdit]:
    return [edit for edit in request.recent_edits if edit.path == request.path]


def _undoes_typing(
    replacement: LineReplacement, region: EditableRegion, edits: Sequence[RecentEdit]
) -> bool:
    """Return whether the model's edit only deletes typed text, or undoes a recent edit of the user.

    A model's edit that is more than a line away from the cursor is not checked: the user may want
    to delete the same text there, because they have moved it.
    """
    if not replacement.start - 1 <= region.cursor_line <= replacement.end:
        return False
    deleted, inserted = replacement.changed_texts
    for edit in edits:
        if not inserted and _is_in_typed_text(deleted.strip(), edit.added):
            return True
        before, after = edit.removed.splitlines(), edit.added.splitlines()
        if list(replacement.removed) == after and list(replacement.added) == before:
            return True
    return False


def _is_in_typed_text(deleted: str, typed: str) -> bool:
    """Return whether the deleted text is in the typed text.

    If `deleted` is empty, only white space was deleted. Then return whether a blank line was typed.
    """
    typed = typed.replace("\r\n", "\n")
    if deleted:
        return deleted in typed
    return any(not line.strip() for line in typed.splitlines())


def _breaks_syntax(
    replacement: LineReplacement,
    region: EditableRegion,
    request: CompletionRequest,
    grammar: Grammar,
) -> bool:
    lines = (request.prefix + request.suffix).replace("\r\n", "\n").replace("\r", "\n").split("\n")
    start, end = region.start_line + replacement.start, region.start_line + replacement.end
    excerpt = extract_excerpt(
        "".join(_with_breaks(lines[:start])), "\n".join(lines[end:]), _WIDE_EXCERPT
    )
    removed = "".join(_with_breaks(replacement.removed))
    added = "".join(_with_breaks(replacement.added))
    return is_syntax_broken(grammar, excerpt, removed, added)


def _with_breaks(lines: Sequence[str]) -> Iterator[str]:
    return (f"{line}\n" for line in lines)
