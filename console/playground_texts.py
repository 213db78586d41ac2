"""The texts of the playground's script. They are here so that they can be translated."""

from typing import Any, Final

from django.utils.translation import gettext_lazy as _

_OUTCOMES: Final = {
    "shown": _("Shown"),
    "nothing": _("Nothing came"),
    "refused": _("Refused"),
}
_FINISHES: Final = {
    "stop": _("It ended at a good place."),
    "length": _("It ended at the most tokens that one completion may have."),
    "cancelled": _("It was taken back."),
    "superseded": _("A newer request for the same file took its place."),
    "shed": _("There was no capacity for it just now; the next keystroke asks again."),
    "budget": _("A hard budget is spent: nothing is completed until the month ends."),
    "filtered": _("What the model wrote was withheld."),
    "error": _("It failed."),
}
# Reasons why the filter truncated or withheld text.
_CUTS: Final = {
    "line_end": _("Here one line was wanted, and the line was whole."),
    "block_end": _("The next line would have left the block."),
    "blank_line": _("A blank line came, and nobody had asked for what follows."),
    "repeats_suffix": _("It went on with what already stands behind the cursor."),
    "repetition": _("It said the same for the third time."),
    "healing_mismatch": _("It did not go on with the word that is being typed."),
    "garbled": _("It had half a character in it."),
    "blank": _("It was white space only."),
    "syntax": _("What followed would have left the file more broken than it was."),
    "secret": _("It had a secret in it, or what looks like one."),
    "public_code": _("It is the same as public code, which the policy does not allow."),
    "engine_disconnected": _("The engine was lost on the way, and no other could go on."),
}
_ERRORS: Final = {
    "invalid_json": _("The gateway could not read the request."),
    "binary_frame": _("The gateway could not read the request."),
    "unknown_type": _("The gateway does not know this kind of request; it may be older."),
    "invalid_field": _("A field of the request is malformed."),
    "unknown_mode": _("The gateway does not know this mode."),
    "unknown_language": _("The gateway does not know this language."),
    "prompt_too_long": _("The prompt is longer than it may be, and cannot be cut."),
    "invalid_messages": _("The model's chat template does not take these messages."),
    "duplicate_id": _("This request was sent before."),
    "unknown_id": _("The gateway does not know the suggestion that this is about."),
    "duplicate_outcome": _("What became of this suggestion was told before."),
    "wrong_subprotocol": _("The gateway speaks another protocol."),
    "missing_api_key": _("No key came with the request."),
    "invalid_api_key": _("The key is not good any more. Start again."),
    "revoked_api_key": _("The key was revoked. Start again."),
    "expired_api_key": _(
        "The key has ended: after an hour, or by a start in another tab. Start again."
    ),
    "tenant_suspended": _("This tenant is suspended: nothing is completed for it."),
    "origin_not_allowed": _(
        "The gateway does not allow this page's address (CARET_ALLOWED_ORIGINS)."
    ),
    "feature_disabled": _("The policy has switched this mode off."),
    "insufficient_scope": _("The playground's key is not good for this mode."),
    "path_excluded": _("The policy keeps files at this path from the model."),
    "path_required": _("The policy requires that a request names its file."),
    "model_not_allowed": _("The policy does not allow the model that serves this mode."),
    "region_not_allowed": _("The policy does not allow completions in this region."),
    "not_found": _("The gateway has nothing at this address."),
    "method_not_allowed": _("The gateway does not take this kind of request."),
    "too_slow": _("The request arrived, or its answer was read, too slowly."),
    "too_large": _("The file, or another one, is larger than a request may be."),
    "too_many_connections": _("This key has too many connections."),
    "too_many_requests": _("Too many requests are under way at once."),
    "rate_limited": _("The policy's limit of requests is reached."),
    "budget_exceeded": _("The policy's limit of tokens for today is reached."),
    "budget": _("A hard budget is spent: nothing is completed until the month ends."),
    "prompt_refused": _("The engine does not accept this prompt."),
    "engine_refused": _("The engine refused the request."),
    "engine_invalid_response": _("The engine's answer could not be read."),
    "engine_disconnected": _("The engine was lost while it answered."),
    "engine_unavailable": _("No engine is there just now."),
    "engine_busy": _("The engine is busy."),
    "engine_timeout": _("The engine takes too long."),
    "gateway_at_capacity": _("The gateway is full."),
    "snapshots_stale": _("The gateway cannot check keys just now."),
    "deadline": _("It took longer than 30 seconds."),
    "internal": _("Something went wrong in the gateway; its log says what."),
}
SEGMENTS: Final = {
    "markers": _("Markers"),
    "repository": _("Repository"),
    "files": _("Other files"),
    "snippets": _("Found by retrieval"),
    "path": _("This file's path"),
    "suffix": _("After the cursor"),
    "prefix": _("Before the cursor"),
    "messages": _("Messages"),
    "raw": _("Whole prompt"),
}
COLUMNS: Final = {
    "result": _("Result"),
    "first_token_ms": _("First token"),
    "total_ms": _("Total"),
    "queue_ms": _("Queue"),
    "assemble_ms": _("Assembly"),
    "engine_ms": _("Engine"),
    "prompt_tokens": _("Prompt"),
    "cached_tokens": _("Cached"),
    "generated_tokens": _("Generated"),
}
TEXTS: Final[dict[str, Any]] = {
    "editor": _("Code"),
    "outcome": _OUTCOMES,
    "finish": _FINISHES,
    "cut": _CUTS,
    "error": _ERRORS,
    "segment": SEGMENTS,
    "column": COLUMNS,
    "empty": _("The model had nothing to add here."),
    "retry": _("Try again in {seconds} s."),
    "suggested": _("Suggested: {text}"),
    "ready": _("Ready. Type, or press Alt+\\ to ask."),
    "state": {
        "stopped": _("Not started"),
        "starting": _("Making a key"),
        "connecting": _("Connecting"),
        "ready": _("Connected"),
    },
    "stopped": {
        "hour": _("The hour is over. Start again to go on."),
        "key": _("The key has ended. Start again to go on."),
        "unreachable": _(
            "The gateway cannot be reached from this browser, does not allow this page's address"
            " (CARET_ALLOWED_ORIGINS), or does not know the key any more."
        ),
    },
    "noConsole": _("The console did not answer as it should. Load the page again."),
    "signedOut": _("You are signed out. Load the page again to sign in."),
    "tokens": _("{tokens} tokens"),
    "tokensCached": _("{tokens} tokens, {cached} cached"),
    "cached": _("The line below shows what the engine had cached: it read only the rest."),
    "cachedUntold": _("What the engine had cached it did not tell: it was stopped before."),
    "files": _("{used} of {sent} other files are in the prompt."),
    "excluded": _("The policy keeps {excluded} of them from the model."),
    "snippets": _("{found} passages were found by retrieval."),
}
