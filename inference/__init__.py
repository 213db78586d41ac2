"""The data plane: from a keystroke to grey text. `pipeline.py` is the place to start reading."""
