"""Evidence for auditors: exports, data subject requests and audit sinks."""
