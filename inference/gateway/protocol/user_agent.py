"""The editor behind a request, read from its headers. Always one of our own few names."""

from typing import Final

MAX_READ_CHARS: Final = 256  # of a header; the rest says nothing new

# The first match names the editor. Forks come before the editors that they are based on.
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
    """Return the editor that the first telling header names; "" if none does."""
    for header in headers:
        text = (header or "")[:MAX_READ_CHARS].lower()
        for sign, name in _SIGNS:
            if sign in text:
                return name
    return ""
