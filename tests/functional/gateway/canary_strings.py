"""Canary strings that tests plant in requests, and all places where they might be stored."""

import secrets
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import Any

import redis

from tests.functional.gateway.gateway_stack import Frame
from tests.stack.services import Services


class PlantedStrings:
    """Strings that occur nowhere else, and the place where each was planted."""

    def __init__(self) -> None:
        self.places: dict[str, str] = {}  # by string

    def plant(self, place: str) -> str:
        text = f"Planted{secrets.token_hex(12)}"
        self.places[text] = place
        return text

    def frame(self, identifier: str, kind: str = "") -> Frame:
        """Return a `complete` frame in the mode fim, with a string in every field of free text.

        `kind` is appended to the names of the places, to distinguish several frames.
        """
        return {
            "type": "complete",
            "id": identifier,
            "mode": "fim",
            "path": f"{self.plant(f'path{kind}')}.py",
            "prefix": f"class {self.plant(f'prefix{kind}')}:\n    def run(self):\n        self.",
            "suffix": f"\n\n    def {self.plant(f'suffix{kind}')}(self):\n        pass\n",
            "files": [
                {"path": self.plant(f"file's path{kind}"), "text": self.plant(f"file's text{kind}")}
            ],
            "repository": {
                "name": self.plant(f"repository{kind}"),
                "framework": self.plant(f"framework{kind}"),
                "imports": [self.plant(f"import{kind}")],
            },
            "definitions": [
                {
                    "path": self.plant(f"definition's path{kind}"),
                    "text": self.plant(f"definition's text{kind}"),
                }
            ],
            "model": self.plant(f"model{kind}"),
            "max_tokens": 8,
            "traceparent": self.plant(f"traceparent{kind}"),
            self.plant(f"unknown field{kind}"): self.plant(f"value of an unknown field{kind}"),
        }

    def edit_frame(self, identifier: str) -> Frame:
        """Return a `complete` frame in the mode edit, with strings in the fields of this mode."""
        edit = {
            "path": self.plant("path of a recent edit"),
            "start_line": 0,
            "removed": f"{self.plant('removed line')}\n",
            "added": f"{self.plant('added line')}\n",
        }
        diagnostic = {"line": 0, "severity": "error", "message": self.plant("diagnostic")}
        return {
            "type": "complete",
            "id": identifier,
            "mode": "edit",
            "path": f"{self.plant('path of an edit')}.py",
            "prefix": f"x = {self.plant('prefix of an edit')}\n",
            "recent_edits": [edit],
            "diagnostics": [diagnostic],
        }

    def file_opened_frame(self) -> Frame:
        """Return a `file_opened` frame with a string in every field of free text."""
        return {
            "type": "file_opened",
            "path": f"{self.plant('path of an opened file')}.py",
            "text": f"# {self.plant('an opened file')}\n" * 80,  # enough text for a warm-up
            "files": [
                {
                    "path": self.plant("path beside it"),
                    "text": f"{self.plant('text beside it')} = 1\n",
                }
            ],
            "repository": {
                "name": self.plant("repository of an opened file"),
                "framework": self.plant("framework of an opened file"),
                "imports": [self.plant("import of an opened file")],
            },
        }

    def code(self, place: str) -> str:
        """Return code that the model can continue."""
        return f"def {self.plant(place)}(self):\n    return "

    def other_protocols(self) -> list[tuple[str, dict[str, Any]]]:
        """Return paths and valid bodies for all protocols except OpenAI's completions."""
        segments = {
            "prefix": self.code("prefix of Tabby"),
            "suffix": f"\n{self.plant('suffix of Tabby')}\n",
            "filepath": f"{self.plant('path of Tabby')}.py",
            "git_url": f"git@example.com:acme/{self.plant('repository of Tabby')}.git",
            "declarations": [
                {"filepath": self.plant("declared in"), "body": self.code("declaration")}
            ],
        }
        infill = {
            "input_prefix": f"# {self.plant('input_prefix')}\n",
            "input_suffix": f"\n# {self.plant('input_suffix')}\n",
            "prompt": f"{self.plant('line of the cursor')} = ",
            "input_extra": [
                {"filename": self.plant("extra's name"), "text": self.code("extra's text")}
            ],
            "n_predict": 8,
        }
        chat = {
            "messages": [
                {"role": "system", "content": self.plant("system's message")},
                {"role": "user", "content": f"What does {self.plant('question')} do?"},
            ],
            "max_tokens": 8,
        }
        mistral = {"prompt": self.code("FIM"), "suffix": f"\n{self.plant('suffix of FIM')}\n"}
        ollama = {"prompt": self.code("Ollama"), "suffix": f"\n{self.plant('suffix of Ollama')}\n"}
        return [
            ("/v1/completions", {"language": "python", "segments": segments}),
            ("/infill", infill),
            ("/infill", {**infill, "prompt": self.plant("prompt of a warm-up"), "n_predict": 0}),
            ("/v1/chat/completions", chat),
            ("/v1/chat/completions", {**chat, "stream": True}),
            ("/v1/fim/completions", {**mistral, "max_tokens": 8}),
            ("/api/generate", {**ollama, "options": {"num_predict": 8}}),
            ("/api/generate", {**ollama, "stream": False, "options": {"num_predict": 8}}),
        ]

    def body(self, kind: str, **fields: Any) -> dict[str, Any]:
        """Return a body for OpenAI's completions. `kind` is as in `frame`."""
        return {
            "model": self.plant(f"model{kind}"),
            "prompt": f"x = {self.plant(f'prompt{kind}')}\ny = ",
            "stop": [self.plant(f"stop{kind}")],
            "user": self.plant(f"user{kind}"),
            "max_tokens": 8,
            **fields,
        }


class StoredData:
    """Everything that is stored: the files in each folder of the home, and the values in Redis."""

    def __init__(self, services: Services) -> None:
        self._home = services.paths.home
        self._contents: defaultdict[str, bytearray] = defaultdict(bytearray)
        for file in self._home.rglob("*"):
            # These are the installation's own secrets and demonstration keys, not a customer's.
            if file.is_file() and (folder := self._folder(file)) != "secrets":
                with suppress(FileNotFoundError):  # a server has just deleted it
                    content = file.read_bytes()
                    # The file's name is searched too.
                    self._contents[folder] += bytes(file.relative_to(self._home)) + content
        with redis.Redis.from_url(services.redis_url) as connection:
            # Texts in a compressed dump would not be found.
            connection.config_set("rdbcompression", "no")
            for name in connection.scan_iter():
                self._contents["Redis"] += name + (connection.dump(name) or b"")

    def find_holders(self, text: str) -> set[str]:
        """Return the names of the folders that contain the text, and "Redis" if Redis does."""
        return {place for place, content in self._contents.items() if text.encode() in content}

    def _folder(self, file: Path) -> str:
        return file.relative_to(self._home).parts[0]
