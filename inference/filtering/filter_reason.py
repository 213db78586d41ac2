"""Why the filter truncated or withheld a completion. The values are stable, for usage records."""

from enum import StrEnum


class FilterReason(StrEnum):
    LINE_END = "line_end"  # the request was for a single line
    BLOCK_END = "block_end"  # the next line leaves the cursor's block
    BLANK_LINE = "blank_line"  # ends completions in the mode inline
    REPEATS_SUFFIX = "repeats_suffix"  # repeats the text after the cursor
    REPETITION = "repetition"  # repeats lines a third time, or a text several times in one line
    HEALING_MISMATCH = "healing_mismatch"  # does not continue the word that is being typed
    INCOMPLETE_CHARACTER = "incomplete_character"  # bytes that are not a whole character
    BLANK = "blank"  # white space only
    SYNTAX = "syntax"  # the following text would have made the file more invalid
    SECRET = "secret"  # noqa: S105  # a reason, not a password
    PUBLIC_CODE = "public_code"
    NO_CHANGE = "no_change"  # an edit that changes nothing
    UNFINISHED = "unfinished"  # an edit without its end
    MARKERS = "markers"  # an edit with markers of the model's format in its text
    UNDOES_TYPING = "undoes_typing"  # an edit that undoes what the user has just done
    ENGINE_DISCONNECTED = "engine_disconnected"  # broke off, and no other replica could continue
