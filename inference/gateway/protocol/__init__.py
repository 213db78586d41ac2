"""The `caret.v1` stream protocol: frames, state machine, connection and outcome reports."""
