"""The settings of other clients, as the console shows them."""

import re

from console.texts.editor_settings import EDITORS


def settings_of(code: str) -> str:
    """Return the settings of the client with this code, with the placeholders URL and KEY."""
    return next(editor.text for editor in EDITORS if editor.code == code)


def fill_in(settings: str, url: str, key: str) -> str:
    """Replace the placeholders URL and KEY."""
    values = {"URL": url, "KEY": key}
    return re.sub(r"\b(URL|KEY)\b", lambda match: values[match[0]], settings)


def settings_for(code: str, url: str, key: str) -> str:
    """Return the client's settings with the URL of a gateway and an API key in them."""
    return fill_in(settings_of(code), url, key)
