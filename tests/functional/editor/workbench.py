"""A VS Code window in a browser, used through keys and visible elements."""

from contextlib import suppress
from pathlib import Path
from typing import Final

from playwright.sync_api import FrameLocator, Locator, Page, expect
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from tests.stack.waiting import wait_until

_OPENS_MS: Final = 90_000.0  # with a cold start of all parts
_SUGGESTS_MS: Final = 60_000.0
_NO_SUGGESTION_MS: Final = 3_000.0  # a suggestion usually appears much sooner
_DIALOG_MS: Final = 3_000.0
_KEY_MS: Final = 80.0  # from one key to the next
_SAVES_S: Final = 60.0
_DRAWS_S: Final = 60.0
_PALETTE: Final = ".quick-input-widget"
_NO_BREAK: Final = "\u00a0"  # the editor draws some spaces as no-break spaces
# Before each frame that the browser draws: appends the text of the suggestion's lines below the
# cursor's line to `seenSuggestions`, if it has changed.
_WATCH: Final = """() => {
  const seen = (window.seenSuggestions = []);
  const record = () => {
    const lines = document.querySelectorAll(".suggest-preview-text .view-line");
    const text = [...lines].map((line) => line.textContent).join("\\n");
    if (seen.at(-1) !== text) seen.push(text);
    window.requestAnimationFrame(record);
  };
  record();
}"""
# Returns the texts of all ::after elements in the editor: extensions draw with them.
_DRAWN: Final = """() => [...document.querySelectorAll(".view-line span")]
  .map((span) => getComputedStyle(span, "::after").content)
  .filter((content) => content !== "none")
  .join("\\n")"""


class Workbench:
    """A window with one folder open."""

    def __init__(self, page: Page, url: str, folder: Path) -> None:
        self._page = page
        self._folder = folder
        page.goto(f"{url}/?folder={folder}")
        expect(page.locator(".explorer-folders-view")).to_be_visible(timeout=_OPENS_MS)

    @property
    def status(self) -> Locator:
        """Return the extension's item in the status bar."""
        return self._page.locator(".statusbar-item[aria-label^='Caret: ']")

    @property
    def ghost(self) -> Locator:
        """Return the parts of the suggestion's first line."""
        return self._page.locator(".view-lines > .view-line span[class*='ghost-text']")

    @property
    def chosen_word(self) -> Locator:
        """Return the selected entry of the editor's own word list."""
        return self._page.locator(".suggest-widget .monaco-list-row.focused .label-name")

    @property
    def notices(self) -> Locator:
        return self._page.locator(".notification-list-item-message")

    @property
    def chat(self) -> FrameLocator:
        """Return the page of the chat panel."""
        return self._page.frame_locator("iframe.webview.ready").frame_locator("#active-frame")

    def expect_tab(self, title: str) -> None:
        """Wait until a tab with this title is active."""
        tab = self._page.locator(".tab.active").filter(has_text=title)
        expect(tab).to_be_visible(timeout=_OPENS_MS)

    def expect_status(self, status: str) -> None:
        expect(self.status).to_have_attribute("aria-label", f"Caret: {status}", timeout=_OPENS_MS)

    def run_command(self, command: str) -> None:
        self.press_keys("F1")  # opens the list of commands
        expect(self._page.locator(f"{_PALETTE} input")).to_be_focused()
        self._page.keyboard.type(command)
        line = self._page.locator(f"{_PALETTE} .monaco-list-row.focused")
        expect(line).to_contain_text(command)
        self.press_keys("Enter")

    def sign_in(self, key: str) -> None:
        self.run_command("Caret: Enter an API Key")
        expect(self._page.locator(f"{_PALETTE} input[type=password]")).to_be_visible()
        self._page.keyboard.type(key)
        self._page.keyboard.press("Enter")

    def open_file(self, name: str) -> Path:
        """Open a file of the folder, with the cursor at its end."""
        self._page.locator(f".explorer-folders-view [aria-label='{name}']").dblclick()
        expect(self._page.locator(f".tab.active[data-resource-name='{name}']")).to_be_visible()
        expect(self._page.locator(".editor-instance .native-edit-context")).to_be_focused()
        self.press_keys("Control+End")
        return self._folder / name

    def open_url_with(self, command: str) -> str:
        """Return the URL of the page that the command opens beside the editor."""
        page = self.open_page_with(command)
        url = page.url
        page.close()
        return url

    def open_page_with(self, command: str) -> Page:
        """Return the page that the command opens beside the editor."""
        with self._page.context.expect_page() as opened:
            self.run_command(command)
            # The dialog appears for a URL that is not trusted yet.
            with suppress(PlaywrightTimeout):
                dialog = self._page.locator(".monaco-dialog-box")
                dialog.get_by_role("button", name="Open", exact=True).click(timeout=_DIALOG_MS)
        opened.value.wait_for_load_state()
        return opened.value

    def type_text(self, text: str) -> None:
        self._page.keyboard.type(text, delay=_KEY_MS)

    def press_keys(self, keys: str) -> None:
        self._page.keyboard.press(keys)

    def wait_for_suggestion(self) -> str:
        """Wait for a suggestion and return its first line."""
        expect(self.ghost.first).to_be_visible(timeout=_SUGGESTS_MS)
        return "".join(self.ghost.all_text_contents()).replace(_NO_BREAK, " ")

    def expect_no_suggestion(self) -> None:
        """Wait for some seconds, and check that no suggestion is visible."""
        self._page.wait_for_timeout(_NO_SUGGESTION_MS)
        assert self.ghost.count() == 0

    def save_and_expect(self, file: Path, text: str) -> None:
        """Save the file, and wait until it contains `text`."""
        self.press_keys("Control+s")
        wait_until(lambda: text in file.read_text(), timeout_s=_SAVES_S)

    def watch_suggestion(self) -> None:
        """Record the suggestion's text below the cursor's line at each change."""
        self._page.evaluate(_WATCH)

    def seen_suggestions(self) -> list[str]:
        """Return the recorded texts in order; "" stands for no suggestion."""
        texts: list[str] = self._page.evaluate("() => window.seenSuggestions")
        return [text.replace(_NO_BREAK, " ") for text in texts]

    def wait_for_last_line(self, line: str, *, timeout_s: float) -> None:
        """Wait until the suggestion ends with this line."""

        def has_line() -> bool:
            return self.seen_suggestions()[-1].rpartition("\n")[2] == line

        wait_until(has_line, timeout_s=timeout_s)

    def wait_for_hint(self, text: str) -> None:
        """Wait until the editor draws this text behind a line."""
        wait_until(lambda: text in self._drawn_texts(), timeout_s=_DRAWS_S)

    def wait_for_no_hint(self) -> None:
        """Wait until the editor draws no hint. Each hint begins with "Tab: "."""
        wait_until(lambda: "Tab: " not in self._drawn_texts(), timeout_s=_DRAWS_S)

    def _drawn_texts(self) -> str:
        """Return the texts that extensions draw between those of the file."""
        texts: str = self._page.evaluate(_DRAWN)
        return texts.replace(_NO_BREAK, " ")

    def take_screenshot(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        self._page.screenshot(path=file)
