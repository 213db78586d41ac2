"""The language server of Caret: inline completions in an editor, over one stream to a gateway.

command_line > server (LSP) > assistant (the sentence: skip > recall > pause > ask > offer)
> link (the stream) | context, cache, outcomes ... (pure)
"""

from typing import Final

VERSION: Final = "0.1.0"
