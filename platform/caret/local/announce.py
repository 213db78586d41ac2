"""Prints the addresses, a login and an API key when everything runs."""

from collections.abc import Callable

from caret.local.state_file import UpEntry


def print_summary(entry: UpEntry, *, say: Callable[[str], None]) -> None:
    tenant = entry["tenants"][0]
    say("")
    say(f"  Console   {entry['console_url']}")
    say(f"            {tenant['admin_email']}  {tenant['admin_password']}")
    say(f"  Gateway   {entry['gateway_url']}")
    say(f"            API key of {tenant['slug']}: {tenant['api_key']}")
    for pool in entry["pools"]:
        say(f"  Pool      {pool['name']} ({pool['tier']}): {pool['url']}")
    say("")
