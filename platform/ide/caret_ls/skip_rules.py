"""When no completion is worth asking for. Pure; each reason has a name, for who asks why."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from caret_ls.completion_context import CompletionContext
from caret_ls.content_exclusion import is_excluded
from caret_ls.file_kind import FileKind
from caret_ls.syntax_regions import SyntaxRegion, region_at


class SkipReason(StrEnum):
    """Why nothing was suggested, in words that an extension may translate by their names."""

    PAUSED = "paused"
    LANGUAGE_OFF = "language_off"
    SELECTION = "selection"
    EXCLUDED = "excluded"
    MODE_OFF = "mode_off"
    SECRET_FILE = "secret_file"  # noqa: S105  # no password: a reason's name
    GENERATED_FILE = "generated_file"
    IN_COMMENT = "in_comment"
    IN_STRING = "in_string"
    STATEMENT_ENDED = "statement_ended"
    MID_LINE = "mid_line"
    BLANK_FILE = "blank_file"
    COMPLETION_LIST_OPEN = "word_list"
    NOT_REQUESTED = "not_asked"  # by the editor, yet
    # What became of a request that was made.
    NEWER_KEYSTROKE = "newer_keystroke"
    NOTHING_TO_SUGGEST = "nothing_to_suggest"
    OVERLOADED = "overloaded"
    OVER_BUDGET = "over_budget"
    SIGNED_OUT = "signed_out"
    OFFLINE = "offline"
    REFUSED = "refused"
    FILE_CLOSED = "file_gone"


@dataclass(frozen=True, slots=True)
class SkipRules:
    """What the user has set and the gateway has told."""

    is_paused: bool = False
    languages_off: frozenset[str] = frozenset()
    excluded: Sequence[str] = ()  # globs, the gateway's and the user's
    in_comments: bool = False
    in_strings: bool = False
    is_allowed: bool = True  # by policy, the mode


_NATURES = {FileKind.SECRET: SkipReason.SECRET_FILE, FileKind.GENERATED: SkipReason.GENERATED_FILE}
_REGIONS = {SyntaxRegion.COMMENT: SkipReason.IN_COMMENT, SyntaxRegion.STRING: SkipReason.IN_STRING}


def skip_reason(
    place: CompletionContext, rules: SkipRules, *, nature: FileKind, has_selection: bool
) -> SkipReason | None:
    """None: it is worth asking. What was invoked is asked for wherever that is allowed."""
    forbidden = _forbidden(place, rules, nature)
    if forbidden is not None or place.is_invoked:
        return forbidden
    return _unpromising(place, rules, has_selection=has_selection)


def _forbidden(place: CompletionContext, rules: SkipRules, nature: FileKind) -> SkipReason | None:
    if is_excluded(place.path, rules.excluded):
        return SkipReason.EXCLUDED
    if not rules.is_allowed:
        return SkipReason.MODE_OFF
    return _NATURES.get(nature)


def _unpromising(
    place: CompletionContext, rules: SkipRules, *, has_selection: bool
) -> SkipReason | None:
    if rules.is_paused:
        return SkipReason.PAUSED
    if place.language.lower() in rules.languages_off:
        return SkipReason.LANGUAGE_OFF
    if has_selection:
        return SkipReason.SELECTION
    return _by_text(place, rules)


def _by_text(place: CompletionContext, rules: SkipRules) -> SkipReason | None:
    before, after = place.line_before, place.line_after
    if not place.prefix.strip() and not place.suffix.strip():
        return SkipReason.BLANK_FILE
    if before.rstrip().endswith((";", "}")) and not after.strip():
        return SkipReason.STATEMENT_ENDED
    # Behind the cursor only what editors close by themselves, or what ends a line.
    if after.strip(" \t)]}>\"'`;:,"):
        return SkipReason.MID_LINE
    return _by_region(region_at(place.language, place.prefix), rules)


def _by_region(region: SyntaxRegion, rules: SkipRules) -> SkipReason | None:
    is_wanted = {SyntaxRegion.COMMENT: rules.in_comments, SyntaxRegion.STRING: rules.in_strings}
    return None if is_wanted.get(region, True) else _REGIONS[region]
