"""The review of a policy draft: the effect of a change, its reason, saving."""
