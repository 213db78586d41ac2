"""The models and the enforceable rules that this installation offers to policies."""
