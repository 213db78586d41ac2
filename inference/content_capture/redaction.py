"""What looks like a secret leaves content before it leaves the gateway; content whose secret stands
where the cursor stood is not sent at all."""

from typing import Final

import msgspec

from caret.contracts.captured_content import Item, KeptCompletion, Turn
from inference.retrieval.redaction import redacted

_NO_PATH: Final = ""


async def cleaned(item: Item) -> Item | None:
    """None: a secret runs across the cursor, where cutting it out would leave a part."""
    if not isinstance(item, KeptCompletion):
        return msgspec.structs.replace(item, text=await redacted(_NO_PATH, item.text))
    if await _hides_a_secret_at_the_cursor(item):
        return None
    return msgspec.structs.replace(
        item,
        prefix=await redacted(item.path, item.prefix),
        suffix=await redacted(item.path, item.suffix),
        completion=await redacted(item.path, item.completion),
        chat=tuple([Turn(turn.role, await redacted(_NO_PATH, turn.text)) for turn in item.chat]),
    )


async def _hides_a_secret_at_the_cursor(item: KeptCompletion) -> bool:
    """Each line that the cursor cuts, before and after the completion came to stand in it."""
    before, after = item.prefix.rpartition("\n")[2], item.suffix.partition("\n")[0]
    whole = f"{before}{item.completion}{after}"
    lines = {before + after, *whole.split("\n")}
    # A private key's first half is found by its header in either part.
    return any([await redacted(item.path, line) != line for line in lines if line.strip()])
