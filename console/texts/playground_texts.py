"""Texts about completions, for the playground's script and for the test of an API key.

Most are looked up by a code that the gateway sends. `{name}` in a text stands for a value that the
script adds.
"""

from typing import Any, Final

from django.utils.translation import gettext_lazy as _

# By the result of a request, as the script determines it.
_RESULTS: Final = {
    "shown": _("Shown"),
    "nothing": _("No suggestion"),
    "refused": _("Rejected"),
}
FINISHES: Final = {  # by finish reason
    "stop": _("The completion ended normally."),
    "length": _("The completion reached the maximum length."),
    "cancelled": _("You cancelled the request."),
    "superseded": _("A newer request for the same file replaced this one."),
    "shed": _("There is no capacity right now. The next keystroke sends a new request."),
    "budget_exceeded": _(
        "A hard budget is used up. Completions resume next month, or when an administrator raises "
        "the budget."
    ),
    "filtered": _("A filter removed the completion."),
    "error": _("The request failed."),
}
# By filter reason: why the filter truncated or withheld text.
_FILTER_REASONS: Final = {
    "line_end": _("A single-line completion ends at the end of the line."),
    "block_end": _("The next line would have left the block."),
    "blank_line": _("The completion ended at a blank line."),
    "repeats_suffix": _("The completion repeated the code after the cursor."),
    "repetition": _("The completion repeated itself."),
    "healing_mismatch": _("The completion did not continue the word at the cursor."),
    "incomplete_character": _("The completion contained an incomplete character."),
    "blank": _("The completion contained only white space."),
    "syntax": _("The rest would have introduced syntax errors."),
    "secret": _("The completion contained text that looks like a secret."),
    "public_code": _("The completion matches public code, which your policy does not allow."),
    "no_change": _("The model changed nothing."),
    "unfinished": _("The model did not finish the edit."),
    "markers": _("The edit contained markers of the model's format."),
    "undoes_typing": _("The edit would have undone what you just typed."),
    "engine_disconnected": _(
        "The connection to the engine was lost, and no other engine could take over."
    ),
}
ERRORS: Final = {  # by the gateway's error code
    "invalid_json": _("The gateway could not read the request."),
    "binary_frame": _("The gateway could not read the request."),
    "unknown_type": _(
        "The gateway does not support this kind of request. It may be an older version."
    ),
    "invalid_field": _("A field in the request is invalid."),
    "unsupported_parameter": _("The gateway does not support a parameter of the request."),
    "unknown_mode": _("The gateway does not support this mode."),
    "unknown_language": _("The gateway does not support this language."),
    "prompt_too_long": _("The prompt is too long and cannot be shortened."),
    "invalid_messages": _("The model's chat template does not accept these messages."),
    "duplicate_id": _("This request was already sent."),
    "unknown_id": _("The gateway does not recognise this suggestion."),
    "duplicate_outcome": _("The outcome of this suggestion was already reported."),
    "wrong_subprotocol": _("The gateway uses a different protocol version."),
    "missing_api_key": _("The request has no API key."),
    "invalid_api_key": _("The key is no longer valid. Select Start to continue."),
    "revoked_api_key": _("The key was revoked. Select Start to continue."),
    "expired_api_key": _(
        "The key has expired, or you started the playground in another tab. Select Start "
        "to continue."
    ),
    "tenant_suspended": _(
        "This tenant is suspended or closing and gets no completions. Ask an owner to contact the "
        "operator of Caret."
    ),
    "trial_ended": _(
        "The trial of this tenant has ended, and it gets no completions. Ask an owner to contact "
        "the operator of Caret."
    ),
    "origin_not_allowed": _(
        "The gateway does not allow requests from this page's address (CARET_ALLOWED_ORIGINS)."
    ),
    "feature_disabled": _("Your policy does not allow this mode."),
    "insufficient_scope": _("The playground's key does not allow this mode."),
    "path_excluded": _(
        "Your policy excludes files at this path, or comments in the prompt name too many paths to "
        "check."
    ),
    "path_required": _("Your policy requires a file path with each request."),
    "mode_unavailable": _("No model supports this mode. Ask the operator of Caret."),
    "model_not_found": _("This installation has no model with this name."),
    "no_pool": _("No pool serves this mode for your tenant. Ask the operator of Caret."),
    "model_not_allowed": _("Your policy does not allow the model for this mode."),
    "region_not_allowed": _("Your tenant does not allow completions in this region."),
    "not_found": _("The gateway has no endpoint at this address."),
    "method_not_allowed": _("The gateway does not accept this kind of request."),
    "too_slow": _("The connection is too slow: the request timed out."),
    "too_large": _("A file is too large for a request."),
    "too_many_connections": _("This key has too many open connections."),
    "too_many_requests": _("Too many requests are in progress."),
    "rate_limited": _("You reached the request limit of your policy."),
    "token_quota_exceeded": _("You reached the daily token limit of your policy."),
    "budget_exceeded": _(
        "A hard budget is used up. Completions resume next month, or when an administrator raises "
        "the budget."
    ),
    "prompt_refused": _("The engine does not accept this prompt."),
    "engine_refused": _("The engine rejected the request."),
    "engine_invalid_response": _("The engine sent an invalid response."),
    "engine_disconnected": _("The connection to the engine was lost."),
    "engine_unavailable": _("No engine is available right now."),
    "engine_busy": _("The engine is busy."),
    "engine_timeout": _("The engine did not respond in time."),
    "gateway_at_capacity": _("The gateway is at capacity."),
    "snapshots_stale": _("The gateway cannot check keys right now."),
    "deadline_exceeded": _("The request took longer than 30 seconds."),
    "internal_error": _("Something went wrong in the gateway. See its log for details."),
}
SEGMENTS: Final = {  # by the type of a prompt segment
    "markers": _("FIM markers"),
    "repository": _("Repository"),
    "pinned_files": _("Pinned files"),
    "files": _("Other files"),
    "snippets": _("Retrieved snippets"),
    "definitions": _("Definitions of symbols"),
    "path": _("File path"),
    "suffix": _("After the cursor"),
    "prefix": _("Before the cursor"),
    "edits": _("Recent edits"),
    "excerpt": _("Lines around the cursor"),
    "messages": _("Messages"),
    "raw": _("Whole prompt"),
}
COLUMNS: Final = {  # by the name of a figure in the playground's table of requests
    "result": _("Result"),
    "first_token_ms": _("First token"),
    "total_ms": _("Total"),
    "time_to_engine_ms": _("Time to engine"),
    "assemble_ms": _("Assemble"),
    "engine_ms": _("Engine"),
    "prompt_tokens": _("Prompt"),
    "cached_tokens": _("Cached"),
    "generated_tokens": _("Generated"),
}
# All texts of the script, under the names that the script uses.
TEXTS: Final[dict[str, Any]] = {
    "editor": _("Code"),
    "outcome": _RESULTS,
    "finish": FINISHES,
    "cut": _FILTER_REASONS,
    "error": ERRORS,
    "segment": SEGMENTS,
    "column": COLUMNS,
    "empty": _("The model had nothing to add."),
    "retry": _("Try again in {seconds} s."),
    "suggested": _("Suggestion: {text}"),
    "ready": _("Ready. Type, or press Alt+\\ to request a suggestion."),
    "state": {
        "stopped": _("Not started"),
        "starting": _("Creating a key"),
        "connecting": _("Connecting"),
        "ready": _("Connected"),
    },
    "stopped": {
        "hour": _("Your one-hour session has ended. Select Start to continue."),
        "key": _("The key has expired. Select Start to continue."),
        "unreachable": _(
            "Cannot connect. Either this browser cannot reach the gateway, the gateway "
            "does not allow this page's address (CARET_ALLOWED_ORIGINS), or the key is "
            "no longer valid."
        ),
    },
    "noConsole": _("The console sent an unexpected response. Reload the page."),
    "signedOut": _("You are signed out. Reload the page to sign in."),
    "tokens": _("{tokens} tokens"),
    "tokensCached": _("{tokens} tokens, {cached} cached"),
    "cached": _(
        "The line below marks the cached part of the prompt. The engine computed only the rest."
    ),
    "cachedUnknown": _("The engine did not report how much of the prompt was cached."),
    "files": _("The prompt contains {used} of {sent} other files."),
    "excluded": _("Your policy excludes {excluded} of them."),
    "snippets": _("Retrieval found {found} snippets."),
}
