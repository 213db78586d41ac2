"""The data types that the stages of a completion pass on to each other."""
