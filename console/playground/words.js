// Which part of a suggestion is taken at once. Pure.

const FIRST_WORD = /^\s*(?:[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]+)/u;

// The white space before a word, and the word; or a run of signs.
export function firstWord(text) {
  const found = FIRST_WORD.exec(text);
  return found ? found[0] : text;
}

export function numLines(text) {
  return text === "" ? 0 : text.split("\n").length;
}
