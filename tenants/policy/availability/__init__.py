"""What this installation offers to policies: models, and rules that it can enforce."""
