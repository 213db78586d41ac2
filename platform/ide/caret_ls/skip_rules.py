"""Rules that decide whether a completion request is skipped, and the reasons to skip one. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from caret_ls.completion_context import CompletionContext
from caret_ls.content_exclusion import is_excluded
from caret_ls.file_kind import FileKind
from caret_ls.mode_choice import CompletionMode
from caret_ls.syntax_regions import SyntaxRegion, region_at


class SkipReason(StrEnum):
    """The reason why the user gets no suggestion, edit, docstring or answer.

    Extensions of editors show a text for each value.
    """

    PAUSED = "paused"
    LANGUAGE_OFF = "language_off"  # by the user's settings
    SELECTION = "selection"  # text is selected
    EXCLUDED = "excluded"  # the policy or the user excludes the file
    # The policy or the API key does not allow the mode.
    MODE_OFF = "mode_off"  # the mode `inline`
    BLOCK_OFF = "block_off"
    DOCSTRING_OFF = "docstring_off"
    CHAT_OFF = "chat_off"
    EDIT_OFF = "edit_off"  # or the user's settings do not allow next edits
    NO_MODEL = "no_model"  # that serves the mode for the tenant
    SECRET_FILE = "secret_file"  # noqa: S105  # not a password but a reason's name
    GENERATED_FILE = "generated_file"
    IN_COMMENT = "in_comment"
    IN_STRING = "in_string"
    STATEMENT_ENDED = "statement_ended"  # the cursor is after `;` or `}` at the end of a line
    MID_LINE = "mid_line"  # there is text after the cursor in its line
    BLANK_FILE = "blank_file"
    COMPLETION_LIST_OPEN = "completion_list_open"
    NOT_REQUESTED = "not_requested"  # the editor has not requested anything yet
    # Results of a request; some are known before it is sent.
    NEWER_KEYSTROKE = "newer_keystroke"
    NOTHING_TO_SUGGEST = "nothing_to_suggest"
    OVERLOADED = "overloaded"
    OVER_BUDGET = "over_budget"
    SIGNED_OUT = "signed_out"
    OFFLINE = "offline"
    REFUSED = "refused"  # the gateway refused the request for another reason
    FILE_CLOSED = "file_closed"
    WITHHELD = "withheld"  # the gateway's filter withheld the answer of a chat
    # Results of the command that writes a docstring.
    NO_FUNCTION = "no_function"
    HAS_DOCSTRING = "has_docstring"
    FILE_CHANGED = "file_changed"  # before the docstring arrived


@dataclass(frozen=True, slots=True)
class SkipRules:
    """The user's settings and the tenant's policy."""

    is_paused: bool = False
    disabled_languages: frozenset[str] = frozenset()
    excluded: Sequence[str] = ()  # globs of the policy and of the user
    complete_in_comments: bool = False
    complete_in_strings: bool = False
    modes: frozenset[str] = frozenset(CompletionMode)  # allowed by the policy and the key


MODE_OFF_REASONS: Final = {
    CompletionMode.INLINE: SkipReason.MODE_OFF,
    CompletionMode.BLOCK: SkipReason.BLOCK_OFF,
    CompletionMode.DOCSTRING: SkipReason.DOCSTRING_OFF,
    CompletionMode.CHAT: SkipReason.CHAT_OFF,
    CompletionMode.EDIT: SkipReason.EDIT_OFF,
}
KIND_REASONS: Final = {
    FileKind.SECRET: SkipReason.SECRET_FILE,
    FileKind.GENERATED: SkipReason.GENERATED_FILE,
}
_REGION_REASONS: Final = {
    SyntaxRegion.COMMENT: SkipReason.IN_COMMENT,
    SyntaxRegion.STRING: SkipReason.IN_STRING,
}


def find_skip_reason(
    context: CompletionContext, rules: SkipRules, *, kind: FileKind, has_selection: bool
) -> SkipReason | None:
    """Return why to skip the request, or None.

    A request that the user invokes is skipped only if it is forbidden.
    """
    prohibition = _find_prohibition(context, rules, kind)
    if prohibition is not None or context.is_invoked:
        return prohibition
    return _find_unpromising(context, rules, has_selection=has_selection)


def _find_prohibition(
    context: CompletionContext, rules: SkipRules, kind: FileKind
) -> SkipReason | None:
    if is_excluded(context.path, rules.excluded):
        return SkipReason.EXCLUDED
    if context.mode not in rules.modes:
        return MODE_OFF_REASONS[CompletionMode(context.mode)]
    return KIND_REASONS.get(kind)


def _find_unpromising(
    context: CompletionContext, rules: SkipRules, *, has_selection: bool
) -> SkipReason | None:
    """Return why an automatic request is not wanted or hardly useful."""
    if rules.is_paused:
        return SkipReason.PAUSED
    if context.language.lower() in rules.disabled_languages:
        return SkipReason.LANGUAGE_OFF
    if has_selection:
        return SkipReason.SELECTION
    return _check_text(context, rules)


def _check_text(context: CompletionContext, rules: SkipRules) -> SkipReason | None:
    if context.mode == CompletionMode.DOCSTRING:  # always in a string or comment
        return None
    before, after = context.line_before, context.line_after
    if not context.prefix.strip() and not context.suffix.strip():
        return SkipReason.BLANK_FILE
    if before.rstrip().endswith((";", "}")) and not after.strip():
        return SkipReason.STATEMENT_ENDED
    # Only closing brackets and quotes, which editors add, and punctuation may follow the cursor.
    if after.strip(" \t)]}>\"'`;:,"):
        return SkipReason.MID_LINE
    return _check_region(region_at(context.language, context.prefix), rules)


def _check_region(region: SyntaxRegion, rules: SkipRules) -> SkipReason | None:
    is_wanted = {
        SyntaxRegion.COMMENT: rules.complete_in_comments,
        SyntaxRegion.STRING: rules.complete_in_strings,
    }
    return None if is_wanted.get(region, True) else _REGION_REASONS[region]
