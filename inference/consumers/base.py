"""The base class of all consumers, and readers of common headers."""

from collections.abc import Awaitable, Callable
from typing import Any, Final
from urllib.parse import parse_qs

from channels.consumer import AsyncConsumer, get_handler_name
from channels.exceptions import StopConsumer

_MAX_READ_CHARS: Final = 256  # of a text that names the editor; the rest is ignored

# Text in a header or in the URL, and the editor that it stands for. The first match counts, so
# forks come before the editors that they are based on.
_EDITOR_SIGNS: Final = (
    ("cursor", "cursor"),
    ("windsurf", "windsurf"),
    ("trae", "trae"),
    ("kiro", "kiro"),
    ("positron", "positron"),
    ("code-server", "vscode"),
    ("code - oss", "vscode"),
    ("vscodium", "vscode"),
    ("visual studio code", "vscode"),
    ("vscode", "vscode"),
    ("visual studio", "visual_studio"),
    ("visualstudio", "visual_studio"),
    ("neovim", "neovim"),
    ("nvim", "neovim"),
    ("vim", "vim"),
    ("emacs", "emacs"),
    ("zed", "zed"),
    ("helix", "helix"),
    ("sublime", "sublime"),
    ("xcode", "xcode"),
    ("eclipse", "eclipse"),
    ("jupyter", "jupyter"),
    ("rstudio", "rstudio"),
    ("qt creator", "qt_creator"),
    ("qtcreator", "qt_creator"),
    ("kakoune", "kakoune"),
    ("lapce", "lapce"),
    ("textmate", "textmate"),
    ("android studio", "jetbrains"),
    ("openai", "openai"),  # OpenAI's libraries
    ("curl", "curl"),
    *((name, "jetbrains") for name in ("jetbrains", "intellij", "pycharm", "goland", "webstorm")),
    *((name, "jetbrains") for name in ("rider", "clion", "phpstorm", "rubymine", "rustrover")),
    *((name, "jetbrains") for name in ("androidstudio", "datagrip", "dataspell", "appcode")),
)
EDITORS: Final = frozenset(name for _, name in _EDITOR_SIGNS)


def detect_editor(*client_names: str | None) -> str:
    """Return one of EDITORS, from the first name that contains a known editor; "" if none does."""
    for client_name in client_names:
        text = (client_name or "")[:_MAX_READ_CHARS].lower()
        for sign, editor in _EDITOR_SIGNS:
            if sign in text:
                return editor
    return ""


Header = tuple[bytes, bytes]
Headers = list[Header]
Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
SendMessage = Callable[[Message], Awaitable[None]]
Scope = dict[str, Any]


class DataPlaneConsumer(AsyncConsumer):  # type: ignore[misc]  # channels publishes no types
    """A consumer without database access that receives messages only from its client.

    Channels closes old database connections before each message, through a thread shared by all
    connections, and runs a task for each channel layer. The data plane has neither a database nor
    channel layers, so messages go straight to their handler.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: SendMessage) -> None:
        self.scope, self.base_send = scope, send
        try:
            self.on_connect()
            while True:
                await self.dispatch(await receive())
        except StopConsumer:
            return
        finally:
            await self.release()

    def on_connect(self) -> None:
        """Prepare the consumer. Called once, when `scope` is set, before the first message."""

    async def release(self) -> None:
        """Release all resources of the connection. Called once, also after an error."""
        raise NotImplementedError

    async def dispatch(self, message: Message) -> None:
        await getattr(self, get_handler_name(message))(message)


def header(scope: Scope, name: bytes) -> str | None:
    """Return the first value of a header. Header names are lower case in ASGI.

    A value may be a path, which most clients send as UTF-8 and some as Latin-1. Content exclusion
    compares paths, so both encodings must be decoded correctly.
    """
    for key, value in scope["headers"]:
        if key == name:
            try:
                return str(value.decode())
            except UnicodeDecodeError:
                return str(value.decode("latin-1"))
    return None


def read_editor(scope: Scope) -> str:
    """Return one of EDITORS; "" if the client names no known editor.

    The header X-Caret-Editor comes first, then the query parameter `editor` (for plugins that
    cannot send their own headers), then the User-Agent.
    """
    query: bytes = scope.get("query_string", b"")
    editor_in_query = parse_qs(query.decode("latin-1")).get("editor", [""])[0] if query else ""
    return detect_editor(
        header(scope, b"x-caret-editor"), editor_in_query, header(scope, b"user-agent")
    )


def read_bearer_key(scope: Scope) -> str | None:
    """Return the API key of the Authorization header; None without one.

    A key in the URL is ignored.
    """
    scheme, _, credentials = (header(scope, b"authorization") or "").partition(" ")
    return credentials.strip() if scheme.lower() == "bearer" and credentials.strip() else None


def client_address(scope: Scope) -> str | None:
    """Return the client's IP address; None for a client on a Unix socket.

    Behind a trusted proxy, Uvicorn has already set the address that the proxy reports.
    """
    client = scope.get("client")
    return str(client[0]) if client else None


def read_api_key(scope: Scope) -> str | None:
    """Return the bearer key, or else the key in the header `api-key`, which Azure clients send."""
    return read_bearer_key(scope) or header(scope, b"api-key") or None
