"""Canary strings that are planted in requests, and all places where they might be stored."""

import secrets
from collections import defaultdict
from pathlib import Path
from typing import Any

import redis

from tests.functional.gateway.gateway_stack import Frame
from tests.stack.services import Services


class Plants:
    """Strings that occur nowhere else, and the place where each was planted."""

    def __init__(self) -> None:
        self.places: dict[str, str] = {}

    def new(self, place: str) -> str:
        text = f"Planted{secrets.token_hex(12)}"
        self.places[text] = place
        return text

    def frame(self, identifier: str, kind: str = "") -> Frame:
        """Return a `complete` frame with a string in every field that accepts one."""
        return {
            "type": "complete",
            "id": identifier,
            "mode": "fim",
            "path": f"{self.new(f'path{kind}')}.py",
            "prefix": f"class {self.new(f'prefix{kind}')}:\n    def run(self):\n        self.",
            "suffix": f"\n\n    def {self.new(f'suffix{kind}')}(self):\n        pass\n",
            "files": [
                {"path": self.new(f"file's path{kind}"), "text": self.new(f"file's text{kind}")}
            ],
            "repository": {
                "name": self.new(f"repository{kind}"),
                "framework": self.new(f"framework{kind}"),
                "imports": [self.new(f"import{kind}")],
            },
            "max_tokens": 8,
            "traceparent": self.new(f"traceparent{kind}"),
            self.new(f"unknown field{kind}"): self.new(f"value of an unknown field{kind}"),
        }

    def opened(self) -> Frame:
        """Return an `file_opened` frame."""
        return {
            "type": "file_opened",
            "path": f"{self.new('path of an opened file')}.py",
            "text": f"# {self.new('an opened file')}\n" * 80,  # enough text for a warm-up
            "files": [
                {"path": self.new("path beside it"), "text": f"{self.new('text beside it')} = 1\n"}
            ],
            "repository": {"name": self.new("repository of an opened file")},
        }

    def code(self, place: str) -> str:
        return f"def {self.new(place)}(self):\n    return "

    def dialects(self) -> list[tuple[str, dict[str, Any]]]:
        """Return a path and a valid body for each protocol except OpenAI's completions."""
        segments = {
            "prefix": self.code("prefix of Tabby"),
            "suffix": f"\n{self.new('suffix of Tabby')}\n",
            "filepath": f"{self.new('path of Tabby')}.py",
            "git_url": f"git@example.com:acme/{self.new('repository of Tabby')}.git",
            "declarations": [
                {"filepath": self.new("declared in"), "body": self.code("declaration")}
            ],
        }
        infill = {
            "input_prefix": f"# {self.new('input_prefix')}\n",
            "input_suffix": f"\n# {self.new('input_suffix')}\n",
            "prompt": f"{self.new('line of the cursor')} = ",
            "input_extra": [
                {"filename": self.new("extra's name"), "text": self.code("extra's text")}
            ],
            "n_predict": 8,
        }
        chat = {
            "messages": [
                {"role": "system", "content": self.new("system's message")},
                {"role": "user", "content": f"What does {self.new('question')} do?"},
            ],
            "max_tokens": 8,
        }
        mistral = {"prompt": self.code("FIM"), "suffix": f"\n{self.new('suffix of FIM')}\n"}
        ollama = {"prompt": self.code("Ollama"), "suffix": f"\n{self.new('suffix of Ollama')}\n"}
        return [
            ("/v1/completions", {"language": "python", "segments": segments}),
            ("/infill", infill),
            ("/infill", {**infill, "prompt": self.new("prompt of a warm-up"), "n_predict": 0}),
            ("/v1/chat/completions", chat),
            ("/v1/chat/completions", {**chat, "stream": True}),
            ("/v1/fim/completions", {**mistral, "max_tokens": 8}),
            ("/api/generate", {**ollama, "options": {"num_predict": 8}}),
            ("/api/generate", {**ollama, "stream": False, "options": {"num_predict": 8}}),
        ]

    def body(self, kind: str, **fields: Any) -> dict[str, Any]:
        return {
            "model": self.new(f"model{kind}"),
            "prompt": f"x = {self.new(f'prompt{kind}')}\ny = ",
            "stop": [self.new(f"stop{kind}")],
            "user": self.new(f"user{kind}"),
            "max_tokens": 8,
            **fields,
        }


class Haystack:
    """Everything stored: the files below each folder of the home, and the values in Redis."""

    def __init__(self, services: Services) -> None:
        self._home = services.paths.home
        self._contents: defaultdict[str, bytearray] = defaultdict(bytearray)
        for file in self._home.rglob("*"):
            # These are the installation's own secrets and demonstration keys, not a customer's.
            if file.is_file() and (folder := self._folder(file)) != "secrets":
                # The file's name is searched too.
                self._contents[folder] += bytes(file.relative_to(self._home)) + file.read_bytes()
        with redis.Redis.from_url(services.redis_url) as connection:
            for name in connection.scan_iter():
                self._contents["Redis"] += name + (connection.dump(name) or b"")

    def holders(self, text: str) -> set[str]:
        return {place for place, content in self._contents.items() if text.encode() in content}

    def _folder(self, file: Path) -> str:
        return file.relative_to(self._home).parts[0]
