"""Requests that no browser sends: an attacker's requests to each URL.

A form is filled with values that its page offers, and then some fields get bad values. With bad
values only, the check of the first field would reject most requests.
"""

import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Final
from urllib.parse import quote

FORM: Final = "application/x-www-form-urlencoded"
# As bytes, because some are not valid text.
BAD_VALUES: Final = (
    b"",
    b"\0",
    b"a\0b",
    "\ud800".encode("utf-8", "surrogatepass"),
    b"\xff\xfe",
    b"9" * 5_000,
    b"-1",
    b"0",
    b"1" + b"0" * 20,
    b"1e300",
    b"nan",
    b"-inf",
    "٣".encode(),  # a digit to some parsers
    "²".encode(),  # a digit to others, but not a number
    b"0001-01-01",
    b"9999-12-31",
    b"9999-12-31T23:59:59Z",
    b"0001-01-01T00:00",
    b"2026-02-30",
    b"00000000-0000-0000-0000-000000000000",
    b"../../etc/passwd",
    b"=1+1",
    b"%s%(x)s{0}",
    b"<script>",
    b"'\"--;",
    b"[[1]]",
    b"{" * 2_000,
    b"(" * 200,
    b"*" * 500,
    b"a" * 70_000,
    b"a@" + b"b." * 100,
    b"//evil.example",
    b"https://[::1",
    b"10.0.0.0/99",
    b"eyJ4IjoxfQ==",  # {"x":1} in Base64
    b"WzEsMl0",  # [1,2] in Base64, without padding
    b"\xe2\x80\xae\xf0\x9f\x92\xa9",  # a right-to-left override and an emoji
)
# Tried in queries, besides the parameters of the URLs in a page.
_PARAMETERS: Final = (
    "cursor",
    "format",
    "range",
    "start",
    "end",
    "first",
    "last",
    "next",
    "q",
    "day",
    "month",
    "from",
    "to",
    "version",
    "sort",
    "state",
    "pool",
    "tenant",
    "path",
    "limit",
    "part",
)
# The values of inputs that are empty on their page, by the input's type.
_DEFAULTS: Final = {
    "date": b"2026-11-01",
    "number": b"3",
    "email": b"a@b.example",
    "url": b"https://x.example/y",
}
_QUERY_PARAMETER: Final = re.compile(r"[?&]([a-z_]{1,30})=")


@dataclass(slots=True)
class Form:
    """A form as its page offers it."""

    action: str  # "": the page's URL
    is_post: bool
    offered: dict[str, list[bytes]] = field(default_factory=dict)  # allowed values, by field


def query_of(values: Mapping[str, bytes]) -> str:
    return "&".join(f"{quote(name)}={quote(value)}" for name, value in values.items())


def forms_of(page: str) -> list[Form]:
    reader = _FormParser()
    reader.feed(page)
    return reader.forms


def parameters_of(page: str) -> list[str]:
    return sorted({*_PARAMETERS, *_QUERY_PARAMETER.findall(page.replace("&amp;", "&"))})


def fill_form(form: Form, chance: random.Random) -> dict[str, bytes]:
    """Fill the form, with bad values in up to three fields; sometimes leave one out."""
    values = {name: chance.choice(choices) for name, choices in form.offered.items()}
    for name in chance.sample(sorted(values), min(len(values), chance.randint(1, 3))):
        values[name] = chance.choice(BAD_VALUES)
    if values and chance.random() < 0.1:
        del values[chance.choice(sorted(values))]
    return values


def generate_queries(names: list[str], chance: random.Random) -> Iterator[dict[str, bytes]]:
    """Yield an endless sequence of queries with one or more bad parameters."""
    while True:
        num_names = chance.choice((1, 1, 1, 2, 4))  # mostly one
        chosen_names = chance.sample(names, num_names)
        yield {name: chance.choice(BAD_VALUES) for name in chosen_names}


class _FormParser(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.forms: list[Form] = []
        self._select_name = ""  # the name of the select element that is being read

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        name = attributes.get("name", "")
        if tag == "form":
            self.forms.append(
                Form(attributes.get("action", ""), attributes.get("method", "").lower() == "post")
            )
        elif tag == "select":
            self._select_name = name
        elif not self.forms:
            return
        elif tag == "option" and self._select_name:
            self._add_offered_value(self._select_name, attributes.get("value", "").encode())
        elif tag in ("input", "textarea", "button") and name:
            self._add_offered_value(
                name,
                attributes.get("value", "").encode() or _default_value(attributes.get("type", "")),
            )

    def handle_endtag(self, tag: str) -> None:
        if tag == "select":
            self._select_name = ""

    def _add_offered_value(self, name: str, value: bytes) -> None:
        self.forms[-1].offered.setdefault(name, []).append(value)


def _default_value(input_type: str) -> bytes:
    return _DEFAULTS.get(input_type, b"Something")
