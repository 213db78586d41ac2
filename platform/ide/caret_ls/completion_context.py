"""The context of a completion: the file, the text around the cursor, and the mode."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CompletionContext:
    uri: str
    path: str  # in its repository, with "/"; outside of a repository, only the file's name
    language: str  # language ID of the editor
    prefix: str  # the text before the cursor; of a long file, only the end of this text
    suffix: str  # the text after the cursor; of a long file, only the start of this text
    is_invoked: bool = False  # the user pressed a key to get a suggestion
    mode: str = "inline"  # a value of `mode_choice.CompletionMode`
    is_mode_requested: bool = False  # the user chose the mode by a command

    @property
    def line_before(self) -> str:
        """The part of the cursor's line before the cursor."""
        return self.prefix[max(self.prefix.rfind("\n"), self.prefix.rfind("\r")) + 1 :]

    @property
    def line_after(self) -> str:
        """The part of the cursor's line after the cursor, without the line end."""
        positions = (self.suffix.find("\n"), self.suffix.find("\r"))
        end = min((position for position in positions if position >= 0), default=None)
        return self.suffix[:end]
