"""The control plane: owns every table; speaks to the data plane through `caret.contracts` only."""
