"""The data plane: from a keystroke to a suggestion. Start reading at `pipeline.py`."""
