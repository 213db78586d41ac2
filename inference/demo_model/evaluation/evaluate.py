"""Measure an exported model on whole files that were not used for training.

    python -m inference.demo_model.evaluation.evaluate --weights inference/demo_model/weights

Prints one JSON object with:

- the loss in nats per token
- for single lines, with the cursor in mid-line and greedy decoding: the share of completions that
  match exactly, and the share of completions that make the file valid Python
- the share of names that are copied from the prompt (see `name_probes`)

With SPM variant 2, a prompt ends before the word at the cursor. The model may write only texts that
begin with this word, as with the gateway (token healing).
"""

import argparse
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional
from transformers import AutoModelForCausalLM

from inference.context.prompt.cursor_text import CursorText
from inference.context.tokenization.tokenizer import Tokenizer as GatewayTokenizer
from inference.context.tokenization.tokenizer import load_tokenizer
from inference.demo_model.corpus import SourceFile, read_corpus, standard_library
from inference.demo_model.evaluation.name_probes import NameProbe, choose_name_probes
from inference.demo_model.evaluation.probes import (
    EvalProbe,
    ProbeScore,
    choose_probes,
    is_parsable,
    score_probe,
)
from inference.demo_model.export import WEIGHTS_FOLDER
from inference.demo_model.fim import FimCut, TrainingOrder, arrange_prompt
from inference.demo_model.training.batches import fim_ids

WINDOW_TOKENS = 2048  # predicted at once when the loss is measured
PREFIX_TOKENS = 1024  # of a prompt, at most
SUFFIX_TOKENS = 256  # of a prompt, at most
MAX_NEW_TOKENS = 48
CHARS_PER_TOKEN = 8  # more than code has on average; windows are then cut to their token limits
# Ranges of the length of the expected text, in characters. No line has 10,000.
ANSWER_LENGTHS = ((1, 8), (9, 20), (21, 10_000))
NUM_SAMPLES = 16  # completions in the report, for each order


@dataclass(frozen=True, slots=True)
class ModelCompleter:
    model: Any  # transformers publishes no types
    tokenizer: Tokenizer
    gateway_tokenizer: GatewayTokenizer  # of the same vocabulary, for token healing
    token_texts: tuple[str, ...]  # by token ID

    def complete(self, fim_cut: FimCut, order: TrainingOrder) -> str:
        """Return the text up to the first token with a line break, or up to MAX_NEW_TOKENS."""
        cursor_text = CursorText(fim_cut.prefix, fim_cut.suffix)
        if order is TrainingOrder.SPM_VARIANT_2:
            cursor_text = cursor_text.heal(self.gateway_tokenizer.split_word)
        prefix, suffix = self._cut_windows(replace(fim_cut, prefix=cursor_text.prefix))
        tokens = arrange_prompt(order, fim_ids(self.tokenizer), prefix=prefix, suffix=suffix)
        text = self._generate(tokens, required=cursor_text.healed_prefix)
        return text.removeprefix(cursor_text.healed_prefix)

    def visible_text(self, fim_cut: FimCut) -> str:
        """Return the parts of prefix and suffix that fit into a prompt, joined by a line break."""
        prefix, suffix = self._cut_windows(fim_cut)
        return f"{self.tokenizer.decode(prefix)}\n{self.tokenizer.decode(suffix)}"

    def sum_nats(self, tokens: Sequence[int]) -> float:
        """Return the sum of the losses of all tokens except the first."""
        window = torch.tensor([tokens])
        with torch.no_grad():
            logits = self.model(window).logits[0, :-1]
        return functional.cross_entropy(logits.float(), window[0, 1:], reduction="sum").item()

    def _cut_windows(self, fim_cut: FimCut) -> tuple[list[int], list[int]]:
        prefix = self._encode(fim_cut.prefix[-CHARS_PER_TOKEN * PREFIX_TOKENS :])
        suffix = self._encode(fim_cut.suffix[: CHARS_PER_TOKEN * SUFFIX_TOKENS])
        return prefix[-PREFIX_TOKENS:], suffix[:SUFFIX_TOKENS]

    def _generate(self, tokens: list[int], *, required: str) -> str:
        """Generate a text that begins with the required one."""
        window = torch.tensor([tokens])

        def find_allowed_tokens(_row: int, sequence: Tensor) -> list[int]:
            num_written = len(self.tokenizer.decode(sequence[len(tokens) :].tolist()))
            return self._find_beginnings(required[num_written:])

        with torch.no_grad():
            out = self.model.generate(
                window,
                attention_mask=torch.ones_like(window),
                max_new_tokens=MAX_NEW_TOKENS,
                do_sample=False,
                stopping_criteria=[self._is_line_complete],
                prefix_allowed_tokens_fn=find_allowed_tokens,
            )
        text: str = self.tokenizer.decode(out[0, len(tokens) :].tolist())
        return text

    def _find_beginnings(self, text: str) -> list[int]:
        """Return the tokens that begin the text, and those that begin with the whole text.

        For an empty text, these are all tokens.
        """
        return [
            token
            for token, token_text in enumerate(self.token_texts)
            if token_text.startswith(text) or (token_text and text.startswith(token_text))
        ]

    def _is_line_complete(self, tokens: Tensor, scores: Tensor) -> Tensor:
        """Return whether to stop: after the first line, because only this line is scored."""
        newest: str = self.tokenizer.decode(tokens[0, -1:].tolist())
        return torch.tensor(["\n" in newest])

    def _encode(self, text: str) -> list[int]:
        ids: list[int] = self.tokenizer.encode(text, add_special_tokens=False).ids
        return ids


def load_completer(weights: Path) -> ModelCompleter:
    model = AutoModelForCausalLM.from_pretrained(weights, dtype=torch.float32)
    model.train(False)
    tokenizer = Tokenizer.from_file(str(weights / "tokenizer.json"))
    return ModelCompleter(
        model,
        tokenizer,
        load_tokenizer(str(weights)),
        tuple(tokenizer.decode([token]) for token in range(tokenizer.get_vocab_size())),
    )


def measure_nats(completer: ModelCompleter, files: Sequence[SourceFile]) -> dict[str, float]:
    """Measure the loss of all tokens except the first of each file."""
    nats, num_tokens, num_bytes = 0.0, 0, 0
    for file in files:
        tokens: list[int] = completer.tokenizer.encode(file.text).ids
        num_bytes += len(file.text.encode())
        for start in range(0, len(tokens) - 1, WINDOW_TOKENS):
            # The last token of a window is predicted there, and is the first token of the next one.
            window = tokens[start : start + WINDOW_TOKENS + 1]
            nats += completer.sum_nats(window)
            num_tokens += len(window) - 1
    return {
        "files": len(files),
        "tokens": num_tokens,
        "nats_per_token": round(nats / num_tokens, 3),
        "nats_per_byte": round(nats / num_bytes, 3),
    }


def summarize_lines(scores: Sequence[ProbeScore]) -> dict[str, Any]:
    by_length = {}
    for shortest, longest in ANSWER_LENGTHS:
        group = [score for score in scores if shortest <= len(score.probe.cut.middle) <= longest]
        by_length[f"{shortest}-{longest}"] = _share_of([score.is_exact for score in group])
    return {
        "probes": len(scores),
        "exact": _share_of([score.is_exact for score in scores]),
        "exact_by_answer_chars": by_length,
        "parses": _share_of([score.is_parsable for score in scores]),
        "parses_with_nothing_inserted": _share_of(
            [_is_parsable_without_middle(score.probe) for score in scores]
        ),
    }


def summarize_names(probes: Sequence[NameProbe], completions: Sequence[str]) -> dict[str, Any]:
    """Return the shares of copied names.

    Probes with the cursor at the start of the name have a share of their own (`copied_at_start`),
    because another name may be right there, too. `copied_inside` is the share of all other probes.
    """
    results = [
        (bool(probe.typed_part), probe.is_copied_by(text))
        for probe, text in zip(probes, completions, strict=True)
    ]
    return {
        "probes": len(results),
        "copied": _share_of([is_copied for _, is_copied in results]),
        "copied_at_start": _share_of(
            [is_copied for has_typed, is_copied in results if not has_typed]
        ),
        "copied_inside": _share_of([is_copied for has_typed, is_copied in results if has_typed]),
    }


def sample_completions(scores: Sequence[ProbeScore], seed: int) -> list[dict[str, Any]]:
    """Return a random sample of the completions, with the expected texts."""
    sampled = random.Random(seed).sample(scores, min(NUM_SAMPLES, len(scores)))
    return [
        {
            "path": score.probe.path,
            "before": score.probe.cut.prefix.rsplit("\n", 1)[-1],
            "completion": score.completion,
            "expected": score.probe.cut.middle,
            "parses": score.is_parsable,
        }
        for score in sampled
    ]


def _is_parsable_without_middle(probe: EvalProbe) -> bool:
    return is_parsable(probe.cut.prefix + probe.cut.suffix)


def _share_of(flags: Sequence[bool]) -> float | None:
    """Return the share of true flags, or None if there are no flags."""
    return round(sum(flags) / len(flags), 3) if flags else None


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="inference.demo_model.evaluation.evaluate", description=__doc__
    )
    parser.add_argument("--weights", type=Path, default=WEIGHTS_FOLDER, metavar="DIR")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--max-probes", type=int, default=None)
    options = parser.parse_args()
    held_out = read_corpus(standard_library()).held_out
    completer = load_completer(options.weights)
    probes = choose_probes(held_out, options.seed)[: options.max_probes]
    name_probes = choose_name_probes(held_out, completer.visible_text, options.seed)[
        : options.max_probes
    ]
    report: dict[str, Any] = {"held_out": measure_nats(completer, held_out)}
    for order in TrainingOrder:
        scores = [score_probe(probe, completer.complete(probe.cut, order)) for probe in probes]
        report[order.value] = summarize_lines(scores)
        name_completions = [completer.complete(probe.cut, order) for probe in name_probes]
        report[f"{order.value}_names"] = summarize_names(name_probes, name_completions)
        report[f"{order.value}_samples"] = sample_completions(scores, options.seed)
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
