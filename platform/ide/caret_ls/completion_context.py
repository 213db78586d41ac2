"""The context of a completion: a file, and the text around the cursor."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CompletionContext:
    uri: str
    path: str  # in its repository, with "/"; sent to the gateway
    language: str  # language ID of the editor
    prefix: str
    suffix: str
    is_invoked: bool = False  # the user pressed a key for it
    mode: str = "inline"  # a value of `mode_choice.CompletionMode`
    is_mode_requested: bool = False  # the user chose the mode by a command

    @property
    def line_before(self) -> str:
        """The part of the cursor's line before the cursor."""
        return self.prefix[max(self.prefix.rfind("\n"), self.prefix.rfind("\r")) + 1 :]

    @property
    def line_after(self) -> str:
        end = min((at for at in map(self.suffix.find, "\r\n") if at >= 0), default=None)
        return self.suffix[:end]
