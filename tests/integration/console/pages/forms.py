"""Read the forms of pages, and send them as a browser without scripts would."""

import re
from html import unescape
from typing import Any

from django.test import Client


def parse_form(page: str) -> dict[str, Any]:
    """Return the fields as a browser would send them, if the user changes nothing.

    Fields outside the main part of the page are left out. All forms in the main part are combined.
    """
    main = page[page.index('<main id="main"') :]
    fields: dict[str, Any] = {}
    for tag in re.findall(r"<input[^>]*>", main):
        name = re.search(r'name="([^"]+)"', tag)
        value = re.search(r'value="([^"]*)"', tag)
        input_type = re.search(r'type="([^"]+)"', tag)
        if name is None or name[1] == "csrfmiddlewaretoken":
            continue
        if input_type and input_type[1] in ("checkbox", "radio"):
            if " checked" not in tag:
                continue
            text = unescape(value[1]) if value else "on"
            fields.setdefault(name[1], []).append(text)
        else:
            fields[name[1]] = unescape(value[1]) if value else ""
    for name, text in re.findall(r'<textarea name="([^"]+)"[^>]*>([^<]*)</textarea>', main):
        fields[name] = unescape(text).strip()
    for name, options in re.findall(r'<select name="([^"]+)"[^>]*>(.*?)</select>', main, re.DOTALL):
        selected = re.search(r'<option value="([^"]*)" selected', options)
        first = re.search(r'<option value="([^"]*)"', options)
        option = selected or first  # a browser selects the first option by default
        fields[name] = "" if option is None else unescape(option[1])
    return fields


def post_form(client: Client, path: str, **fields: Any) -> Any:
    return client.post(path, fields)
