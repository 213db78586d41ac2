// Finds the part of a suggestion that one keystroke accepts. Pure.

const FIRST_WORD = /^\s*(?:[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]+)/u;

// Returns the first word, or run of symbols, with the white space before it.
export function firstWord(text) {
  const found = FIRST_WORD.exec(text);
  return found ? found[0] : text;
}

export function numLines(text) {
  return text === "" ? 0 : text.split("\n").length;
}
