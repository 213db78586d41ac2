"""The audit log: each entry is written in the transaction of the change that it describes."""
