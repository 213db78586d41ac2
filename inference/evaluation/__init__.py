"""The operator's evaluation of a pool: tasks with known answers, and scores with intervals."""
