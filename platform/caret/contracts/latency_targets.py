"""Latency targets of completions, for metrics, logs and the explanations of slow requests."""

from typing import Final

from caret.contracts.policy import Mode

# From the request's arrival at the gateway until the first text is sent, at the 99th percentile.
FIRST_TOKEN_TARGETS_MS: Final[dict[Mode, float]] = {
    Mode.INLINE: 100.0,
    Mode.FIM: 150.0,
    Mode.BLOCK: 500.0,
    Mode.DOCSTRING: 500.0,
    Mode.CHAT: 2_000.0,
    # An edit is sent as a whole, after its last token, and the model also repeats unchanged lines.
    Mode.EDIT: 5_000.0,
}
# The part of the inline target that each stage may take, at the same percentile. In other modes,
# only `generate` may take longer, in proportion to the mode's target.
STAGE_BUDGETS_MS: Final[dict[str, float]] = {
    "receive": 0.5,
    "authenticate": 0.5,
    "admit": 1.0,
    "assemble": 5.0,
    "route": 1.0,
    "generate": 60.0,  # to the engine's first token
    "filter": 2.0,  # from the engine's first token until the first text is sent
}
