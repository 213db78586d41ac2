import assert from "node:assert/strict";
import { test } from "node:test";

import { firstWord, numLines } from "../../../../console/playground/partial_accept.js";

for (const [text, expected] of [
  ["count + 1", "count"],
  [" + 1", " +"],
  ["+= größe", "+="],
  ["größe_2(", "größe_2"],
  ["\n    return", "\n    return"],
  ["(self)", "("],
  ["   ", "   "],
  ["", ""],
]) {
  test(`the first word of ${JSON.stringify(text)}`, () => assert.equal(firstWord(text), expected));
}

test("the words make up the text", () => {
  const text = "  if a >= größe:\n\treturn [x for x in y]\n";
  let left = text;
  let taken = "";
  while (left !== "") {
    const word = firstWord(left);
    taken += word;
    left = left.slice(word.length);
  }
  assert.equal(taken, text);
});

test("lines are counted as the gateway counts them", () => {
  assert.deepEqual(["", "a", "a\n", "a\nb"].map(numLines), [0, 1, 2, 2]);
});
