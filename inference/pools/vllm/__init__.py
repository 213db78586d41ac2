"""Adapters for vLLM: completions, health, identity, metrics and KV events."""
