// One suggestion, from the request to its outcome. Pure: it returns the outcomes to report.
//
// Rules:
// 1. Typed text that matches the suggestion shortens it; any other change ends it.
// 2. It is `shown` once, when text is visible, and `rejected` if it ends unused.
// 3. Accepted parts are reported one by one; the last one is `accepted`, with the whole suggestion.

import { firstWord, numLines } from "./words.js";

export class Suggestion {
  constructor(id, { now }) {
    this.id = id;
    this.all = ""; // the whole received text
    this.left = ""; // the part that is neither typed nor accepted yet
    this.isOver = false;
    this.outcomes = []; // to be reported, oldest first
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

  // Return whether the suggestion continues after the typed text.
  type(text) {
    if (this.isOver || text === "" || !this.left.startsWith(text)) return false;
    this.left = this.left.slice(text.length);
    if (this.left === "") this._finish("accepted", this.all);
    return true;
  }

  // Return the text to insert.
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
