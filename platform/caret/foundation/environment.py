"""Functions that read settings from the environment at start; they raise BadSetting.

In each function, `name` is the name of an environment variable.
"""

import os
import re
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Final

_URL_PREFIX: Final = re.compile(r"[a-z0-9][a-z0-9-]*")


class BadSetting(Exception):
    """A setting is missing or malformed. The text names it and describes valid values."""


def env_text(name: str, default: str | None = None) -> str:
    """Return the text. Without a default, the setting is required."""
    value = os.environ.get(name, default)
    if value is None:
        raise BadSetting(f"{name} is not set and has no default.")
    return value


def env_bool(name: str, default: bool) -> bool:
    value = os.environ.get(name, str(default))
    if value not in ("True", "False"):
        raise BadSetting(f"{name} is {value!r}; write True or False.")
    return value == "True"


def env_int(name: str, default: int, *, low: int, high: int) -> int:
    value = os.environ.get(name, str(default))
    if not value.isascii() or not value.isdigit() or not low <= int(value) <= high:
        raise BadSetting(f"{name} is {value!r}; write a whole number from {low} to {high}.")
    return int(value)


def env_list(name: str, default: str = "", *, separator: str = ",") -> list[str]:
    """Return the values between the separators, stripped, without empty ones."""
    values = os.environ.get(name, default).split(separator)
    return [item.strip() for item in values if item.strip()]


def env_networks(name: str) -> list[IPv4Network | IPv6Network]:
    """Parse comma-separated networks such as 10.20.0.0/16; return [] if the setting is unset."""
    try:
        return [ip_network(text) for text in env_list(name)]
    except ValueError as error:
        raise BadSetting(f"{name}: {error}; write networks such as 10.20.0.0/16.") from None


def env_server(name: str) -> tuple[str, int] | None:
    """Parse an IP address and a port, such as 10.0.0.2:53; return None if unset or empty."""
    text = os.environ.get(name, "").strip()
    if not text:
        return None
    host, _, port = text.rpartition(":")
    error = BadSetting(f"{name} is {text!r}; write an IP address and a port, such as 10.0.0.2:53.")
    try:
        address, port_number = str(ip_address(host.strip("[]"))), int(port)
    except ValueError:
        raise error from None
    if not 1 <= port_number <= 65_535:
        raise error
    return address, port_number


def env_url_prefix(name: str) -> str | None:
    """Return the prefix of URL paths, such as `operators/`; None if the setting is unset or empty.

    The value may begin or end with slashes.
    """
    value = os.environ.get(name, "").strip("/")
    if value and _URL_PREFIX.fullmatch(value) is None:
        raise BadSetting(f"{name} is {value!r}; write lower-case letters, digits and hyphens.")
    return f"{value}/" if value else None


def env_optional_secret(name: str, *, default_file: Path) -> str | None:
    """Return the secret as `env_secret` does; None if it is unset and `default_file` is missing."""
    is_set = os.environ.get(name) or os.environ.get(f"{name}_FILE")
    return env_secret(name, default_file=default_file) if is_set or default_file.exists() else None


def env_secret(name: str, *, default_file: Path | None = None) -> str:
    """Return a secret: the value of `name`, or else the content of a file.

    The variable `name`_FILE contains the path of the file. If it is unset, the file is
    `default_file`.
    """
    if value := os.environ.get(name):
        return value
    file = os.environ.get(f"{name}_FILE") or default_file
    if file is None:
        raise BadSetting(
            f"{name} is not set. Set it, or set {name}_FILE to the path of a file that contains it."
        )
    try:
        return Path(file).read_text().strip()
    except OSError as error:
        raise BadSetting(f"{name} cannot be read: {error}.") from error
