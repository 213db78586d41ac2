// One suggestion, from the request to what became of it. Pure: it says what to tell the gateway.
//
// Rules:
// 1. What is typed and is what was suggested next takes that much off it; anything else ends it.
// 2. It is `shown` once, when there is something to be seen; `rejected` if it ends unused.
// 3. Parts are told as they are taken; the last part is the `accepted`, with all that was suggested.

import { firstWord, numLines } from "./words.js";

export class Suggestion {
  constructor(id, { now }) {
    this.id = id;
    this.all = ""; // all that came
    this.left = ""; // of it, what is neither typed nor taken yet
    this.isOver = false;
    this.outcomes = []; // to be told, oldest first
    this._now = now;
    this._shownAt = null;
  }

  grow(text) {
    if (this.isOver) return;
    if (this._shownAt === null && text !== "") {
      this._shownAt = this._now();
      this.outcomes.push({ event: "shown", after_ms: 0 });
    }
    this.all += text;
    this.left += text;
  }

  // Whether it goes on behind what was typed.
  type(text) {
    if (this.isOver || text === "" || !this.left.startsWith(text)) return false;
    this.left = this.left.slice(text.length);
    if (this.left === "") this._finish("accepted", this.all);
    return true;
  }

  // What is to be inserted.
  takeWord() {
    return this._take(firstWord(this.left));
  }

  takeAll() {
    return this._take(this.left);
  }

  reject() {
    if (this.isOver) return;
    if (this._shownAt === null) this.isOver = true;
    else this._finish("rejected", this.left);
  }

  _take(text) {
    if (this.isOver || text === "") return "";
    this.left = this.left.slice(text.length);
    if (this.left === "") this._finish("accepted", this.all);
    else this._tell("partially_accepted", text);
    return text;
  }

  _finish(event, text) {
    this.isOver = true;
    this._tell(event, text);
  }

  _tell(event, text) {
    const after = Math.max(0, Math.round(this._now() - this._shownAt));
    this.outcomes.push({ event, chars: text.length, lines: numLines(text), after_ms: after });
  }
}
