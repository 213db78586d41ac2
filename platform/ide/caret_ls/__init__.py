"""Caret's language server: inline completions in an editor, over one stream to a gateway.

cli > server (LSP) > completion_provider (skip > recall > pause > request > offer)
    > gateway_connection (the stream) | suggestion_cache, outcome_tracker ... (pure)
"""

from typing import Final

VERSION: Final = "0.1.0"
