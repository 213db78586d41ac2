"""Why a completion ended before the model did, or was withheld: stable names, for the numbers."""

from enum import StrEnum


class FilterReason(StrEnum):
    LINE_END = "line_end"  # of a request for a single line
    BLOCK_END = "block_end"  # the next line leaves the cursor's block
    BLANK_LINE = "blank_line"  # ends what nobody asked for
    REPEATS_SUFFIX = "repeats_suffix"  # says what follows the cursor already says
    REPETITION = "repetition"  # a third time the same
    HEALING_MISMATCH = "healing_mismatch"  # does not go on with the word that is being typed
    INCOMPLETE_CHARACTER = "garbled"  # half a character
    BLANK = "blank"  # white space only
    SYNTAX = "syntax"  # what followed would have left the file more broken
    SECRET = "secret"  # noqa: S105  # a reason, no password
    PUBLIC_CODE = "public_code"
    ENGINE_DISCONNECTED = "engine_disconnected"  # in mid-stream, and no other replica could go on
