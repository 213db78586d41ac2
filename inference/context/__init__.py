"""Assembly: from what the client sent to the token ids of a prompt. Pure, but for the tokenizer."""
