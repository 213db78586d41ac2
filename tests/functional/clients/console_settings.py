"""The settings of other clients, as the console shows them."""

import re

from console.texts.editor_settings import EDITORS


def settings_of(code: str) -> str:
    """Return a client's settings with the words URL and KEY."""
    return next(editor.text for editor in EDITORS if editor.code == code)


def fill_in(settings: str, url: str, key: str) -> str:
    values = {"URL": url, "KEY": key}
    return re.sub(r"\b(URL|KEY)\b", lambda match: values[match[0]], settings)


def settings_for(code: str, url: str, key: str) -> str:
    """Return a client's settings with the address of a gateway and an API key."""
    return fill_in(settings_of(code), url, key)
