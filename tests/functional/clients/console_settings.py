"""The settings of clients that are not Caret's own, as the console shows them."""

import re

from console.texts.editor_settings import EDITORS


def find_template(code: str) -> str:
    """Return the settings of the client with this code, with the placeholders URL and KEY."""
    return next(editor.text for editor in EDITORS if editor.code == code)


def fill_template(template: str, url: str, key: str) -> str:
    values = {"URL": url, "KEY": key}
    return re.sub(r"\b(URL|KEY)\b", lambda match: values[match[0]], template)


def make_settings(code: str, url: str, key: str) -> str:
    """Return the client's settings with the URL of a gateway and an API key in them."""
    return fill_template(find_template(code), url, key)
