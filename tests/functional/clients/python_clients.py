"""Calls the gateway with Python clients, and prints each result or error as JSON.

Runs in the environment of requirements.txt. Standard input is the scenario as a JSON object: url,
key, home (a new folder for the settings of `llm`), prefix and suffix.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # no download

import litellm
import ollama
import openai
from langchain_ollama import ChatOllama
from langchain_openai import ChatOpenAI, OpenAI
from mistralai.client import Mistral

SCENARIO = json.load(sys.stdin)
URL, KEY, HOME = SCENARIO["url"], SCENARIO["key"], Path(SCENARIO["home"])
PREFIX, SUFFIX = SCENARIO["prefix"], SCENARIO["suffix"]
MESSAGES = [{"role": "user", "content": PREFIX}]
HEADERS = {"Authorization": f"Bearer {KEY}"}
LLM_MODELS = f"""\
- model_id: caret
  model_name: caret
  api_base: {URL}/v1
  api_key_name: caret
"""


def call_openai() -> dict[str, Any]:
    client = openai.OpenAI(base_url=f"{URL}/v1", api_key=KEY, max_retries=0)
    completion = client.completions.create(
        model="caret", prompt=PREFIX, suffix=SUFFIX, max_tokens=12
    )
    several = client.completions.create(model="caret", prompt=[PREFIX, "x = "], max_tokens=4)
    stream = client.chat.completions.create(
        model="caret", messages=MESSAGES, max_tokens=4, temperature=0.7, stream=True
    )
    chunks = list(stream)
    try:  # the gateway supports no tools
        client.chat.completions.create(model="caret", messages=MESSAGES, tools=[{}])
    except openai.BadRequestError as error:
        refusal = [error.code, error.param]
    return {
        "text": completion.choices[0].text,
        "models": [model.id for model in client.models.list()],
        "model": client.models.retrieve(completion.model).id,
        "indexes": [choice.index for choice in several.choices],
        "finish_reason": chunks[-1].choices[0].finish_reason,
        "refusal": refusal,
    }


def call_ollama() -> dict[str, Any]:
    client = ollama.Client(host=URL, headers=HEADERS)
    model = client.list().models[0].model
    options = {"num_predict": 12}
    completion = client.generate(model=model, prompt=PREFIX, suffix=SUFFIX, options=options)
    lines = list(client.chat(model=model, messages=MESSAGES, options=options, stream=True))
    try:  # the gateway supports no embeddings
        client.embed(model=model, input="a")
    except ollama.ResponseError as error:
        refusal = [error.status_code, error.error]
    return {
        "text": completion.response,
        "running": client.ps().models[0].model,
        "capabilities": client.show(model).capabilities,
        "done": lines[-1].done,
        # Without messages, Ollama only loads the model.
        "loading": client.chat(model=model, messages=[]).done_reason,
        "refusal": refusal,
    }


def call_mistral() -> dict[str, Any]:
    client = Mistral(api_key=KEY, server_url=URL)
    model = client.models.list().data[0]
    fields = {"model": model.id, "prompt": PREFIX, "suffix": SUFFIX, "max_tokens": 12}
    events = list(client.fim.stream(**fields))
    chat = client.chat.complete(model=model.id, messages=MESSAGES, max_tokens=4)
    return {
        "text": client.fim.complete(**fields).choices[0].message.content,
        "streamed": "".join(event.data.choices[0].delta.content for event in events),
        "type": model.type,
        "model": client.models.retrieve(model_id=model.id).id,
        "finish_reason": chat.choices[0].finish_reason,
    }


def call_langchain() -> dict[str, Any]:
    fields = {"base_url": f"{URL}/v1", "api_key": KEY, "model": "caret", "max_tokens": 8}
    ollama_fields = {"base_url": URL, "client_kwargs": {"headers": HEADERS}, "num_predict": 4}
    answer = ChatOllama(model="demo", **ollama_fields).invoke(PREFIX)
    return {
        "text": OpenAI(**fields).invoke(PREFIX),
        "several": len(OpenAI(**fields).generate([PREFIX, "x = "]).generations),
        "chat": ChatOpenAI(**fields).invoke(PREFIX).response_metadata["model_name"],
        "ollama": answer.response_metadata["done"],
    }


def call_litellm() -> dict[str, Any]:
    fields = {"api_base": f"{URL}/v1", "api_key": KEY, "max_tokens": 12}
    text = litellm.text_completion(
        model="text-completion-openai/caret", prompt=PREFIX, suffix=SUFFIX, **fields
    )
    chat = litellm.completion(model="openai/caret", messages=MESSAGES, **fields)
    return {"text": text.choices[0].text, "finish_reason": chat.choices[0].finish_reason}


def call_llm() -> dict[str, Any]:
    """Run the command-line program `llm`, with its own folder of settings."""
    HOME.mkdir()
    (HOME / "extra-openai-models.yaml").write_text(LLM_MODELS)
    (HOME / "keys.json").write_text(json.dumps({"caret": KEY}))
    command = [
        Path(sys.executable).with_name("llm"),
        "-m",
        "caret",
        "-o",
        "max_tokens",
        "4",
        PREFIX,
    ]
    environment = {**os.environ, "LLM_USER_PATH": str(HOME)}
    process = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return {"returncode": process.returncode, "errors": process.stderr}


def run(call: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    try:
        return call()
    except Exception as error:  # noqa: BLE001  # the test shows the error
        return {"error": f"{type(error).__name__}: {error}"}


CALLS = {
    "openai": call_openai,
    "ollama": call_ollama,
    "mistral": call_mistral,
    "langchain": call_langchain,
    "litellm": call_litellm,
    "llm": call_llm,
}
sys.stdout.write(json.dumps({name: run(call) for name, call in CALLS.items()}) + "\n")
