"""Which editor asks, as far as its headers tell: one of a few names of ours, never its words."""

from typing import Final

MAX_READ_CHARS: Final = 256  # of a header; what follows says nothing new

# The first that is found in the header names the editor: forks before what they were made of.
_SIGNS: Final = (
    ("cursor", "cursor"),
    ("windsurf", "windsurf"),
    ("vscodium", "vscode"),
    ("visual studio code", "vscode"),
    ("vscode", "vscode"),
    ("visual studio", "visual_studio"),
    ("visualstudio", "visual_studio"),
    ("neovim", "neovim"),
    ("nvim", "neovim"),
    ("vim", "vim"),
    ("emacs", "emacs"),
    ("zed", "zed"),
    ("helix", "helix"),
    ("sublime", "sublime"),
    ("xcode", "xcode"),
    ("eclipse", "eclipse"),
    ("jupyter", "jupyter"),
    *((name, "jetbrains") for name in ("jetbrains", "intellij", "pycharm", "goland", "webstorm")),
    *((name, "jetbrains") for name in ("rider", "clion", "phpstorm", "rubymine", "rustrover")),
)
EDITORS: Final = frozenset(name for _, name in _SIGNS)


def detect_editor(*headers: str | None) -> str:
    """Of the first header that names one; "" when none does."""
    for header in headers:
        text = (header or "")[:MAX_READ_CHARS].lower()
        for sign, name in _SIGNS:
            if sign in text:
                return name
    return ""
