// The part of a suggestion that one key press accepts. Pure.

const FIRST_WORD = /^\s*(?:[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]+)/u;

// White space and the word after it, or a run of punctuation.
export function firstWord(text) {
  const found = FIRST_WORD.exec(text);
  return found ? found[0] : text;
}

export function numLines(text) {
  return text === "" ? 0 : text.split("\n").length;
}
