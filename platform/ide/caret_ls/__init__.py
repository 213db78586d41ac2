"""Caret's language server: suggestions, next edits, docstrings and chats in an editor.

A request for a suggestion passes through `server` (LSP) and `completion_provider` (the steps to a
suggestion) to `gateway_connection` (the stream to a gateway). `session` creates the last two of
these and all objects that live as long as the session. Modules whose docstring says "Pure" do no
I/O and read no clock.
"""

from typing import Final

VERSION: Final = "0.1.0"
