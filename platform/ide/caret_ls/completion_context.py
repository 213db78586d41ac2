"""Where a completion is wanted: a file, and the text around the cursor."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CompletionContext:
    uri: str
    path: str  # in its repository, with "/"; what the gateway hears
    language: str  # as the editor names it
    prefix: str
    suffix: str
    is_invoked: bool = False  # somebody pressed a key for it

    @property
    def line_before(self) -> str:
        """Of the cursor's line."""
        return self.prefix[max(self.prefix.rfind("\n"), self.prefix.rfind("\r")) + 1 :]

    @property
    def line_after(self) -> str:
        end = min((at for at in map(self.suffix.find, "\r\n") if at >= 0), default=None)
        return self.suffix[:end]
