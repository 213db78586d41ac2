"""Caret's language server: inline completions in an editor, over one stream to a gateway.

A request of the editor passes through `server` (LSP) and `completion_provider` (the steps to a
suggestion) to `gateway_connection` (the stream). `session` creates these objects and those that
they use. Modules whose docstring says "Pure" do no I/O and read no clock.
"""

from typing import Final

VERSION: Final = "0.1.0"
