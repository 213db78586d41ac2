"""The base class of all consumers, and readers of common headers."""

from collections.abc import Awaitable, Callable
from typing import Any, Final
from urllib.parse import parse_qs

from channels.consumer import AsyncConsumer, get_handler_name
from channels.exceptions import StopConsumer

MAX_READ_CHARS: Final = 256  # of a header; the rest is ignored

# The first match names the editor. Forks come before the editors that they are based on.
_SIGNS: Final = (
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
EDITORS: Final = frozenset(name for _, name in _SIGNS)


def detect_editor(*headers: str | None) -> str:
    """Return the editor named by the first header that names a known one; "" if none does."""
    for header in headers:
        text = (header or "")[:MAX_READ_CHARS].lower()
        for sign, name in _SIGNS:
            if sign in text:
                return name
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
        """Called once, when the scope is known and no message has arrived yet."""

    async def release(self) -> None:
        """Release everything that the exchange holds. Called once, however it ended."""
        raise NotImplementedError

    async def dispatch(self, message: Message) -> None:
        await getattr(self, get_handler_name(message))(message)


def header(scope: Scope, name: bytes) -> str | None:
    """Return the first value of a header. Header names are lower case in ASGI.

    A value may be a path, which most clients send as UTF-8 and some as Latin-1. Both are decoded
    correctly, because content exclusion compares paths.
    """
    for key, value in scope["headers"]:
        if key == name:
            try:
                return str(value.decode())
            except UnicodeDecodeError:
                return str(value.decode("latin-1"))
    return None


def read_editor(scope: Scope) -> str:
    """Return the editor that the client names.

    It is in X-Caret-Editor, in the query (for plugins that send no headers of their own), or in the
    User-Agent.
    """
    query: bytes = scope.get("query_string", b"")
    editor_in_query = parse_qs(query.decode("latin-1")).get("editor", [""])[0] if query else ""
    return detect_editor(
        header(scope, b"x-caret-editor"), editor_in_query, header(scope, b"user-agent")
    )


def read_bearer_key(scope: Scope) -> str | None:
    """Return the API key of the Authorization header. Keys in URLs are never read."""
    scheme, _, credentials = (header(scope, b"authorization") or "").partition(" ")
    return credentials.strip() if scheme.lower() == "bearer" and credentials.strip() else None


def client_address(scope: Scope) -> str | None:
    """Return the client's address; None: a peer on a Unix socket.

    Uvicorn has already replaced it by the address that a trusted proxy reports.
    """
    client = scope.get("client")
    return str(client[0]) if client else None


def read_api_key(scope: Scope) -> str | None:
    """Return the bearer key, or the key in the `api-key` header of Azure clients."""
    return read_bearer_key(scope) or header(scope, b"api-key") or None
