"""What a customer verifies by files alone, without anything of the installation."""

import os
from pathlib import Path

from playwright.sync_api import Page

from tests.stack.commands import manage


def fetched(page: Page, role: str, name: str, folder: Path) -> Path:
    """The file that a button or a link of the page leads to, by the name that it comes with."""
    with page.expect_download() as download:
        page.get_by_role(role, name=name).first.click()  # type: ignore[arg-type]  # one of two
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return path


def verifies(command: str, file: Path, keys: Path) -> str:
    """What `manage.py` says of it."""
    bare = {"PATH": os.environ["PATH"]}
    return manage(command, str(file), "--public-key", str(keys), environment=bare).stdout


def spoil(file: Path) -> None:
    """Its middle byte is another."""
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
