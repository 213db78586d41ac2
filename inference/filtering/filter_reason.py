"""The reasons why the filter truncates or withholds a completion.

Usage records contain the values, so existing values must not change.
"""

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
    SECRET = "secret"  # noqa: S105  # the completion contains a secret
    PUBLIC_CODE = "public_code"  # copies code of the index of public code
    NO_CHANGE = "no_change"  # an edit that changes nothing
    UNFINISHED = "unfinished"  # an edit without its end
    MARKERS = "markers"  # an edit with markers of the model's format in its text
    UNDOES_TYPING = "undoes_typing"  # an edit that undoes what the user has just done
    ENGINE_DISCONNECTED = "engine_disconnected"  # the engine failed; no other replica continued
