// One suggestion, from its request to its outcome. Pure: collects the outcomes to report.
//
// Rules:
// 1. Typing the suggested text shortens the suggestion; typing anything else ends it.
// 2. It is `shown` once, when it has text, and `rejected` if it ends unused.
// 3. Each accepted part is reported at once. The last one is `accepted`, with the whole text.

import { firstWord, numLines } from "./partial_accept.js";

export class Suggestion {
  constructor(id, { now }) {
    this.id = id;
    this.all = ""; // all text received
    this.remaining = ""; // the part that is neither typed nor accepted yet
    this.isOver = false;
    this.outcomes = []; // to be reported, oldest first
    this._now = now;
    this._shownAt = null;
  }

  append(text) {
    if (this.isOver) return;
    if (this._shownAt === null && text !== "") {
      this._shownAt = this._now();
      this.outcomes.push({ event: "shown", after_ms: 0 });
    }
    this.all += text;
    this.remaining += text;
  }

  // Returns whether the suggestion continues after the typed text.
  type(text) {
    if (this.isOver || text === "" || !this.remaining.startsWith(text)) return false;
    this.remaining = this.remaining.slice(text.length);
    if (this.remaining === "") this._finish("accepted", this.all);
    return true;
  }

  // Returns the text to insert.
  acceptWord() {
    return this._accept(firstWord(this.remaining));
  }

  acceptAll() {
    return this._accept(this.remaining);
  }

  reject() {
    if (this.isOver) return;
    if (this._shownAt === null) this.isOver = true;
    else this._finish("rejected", this.remaining);
  }

  _accept(text) {
    if (this.isOver || text === "") return "";
    this.remaining = this.remaining.slice(text.length);
    if (this.remaining === "") this._finish("accepted", this.all);
    else this._addOutcome("partially_accepted", text);
    return text;
  }

  _finish(event, text) {
    this.isOver = true;
    this._addOutcome(event, text);
  }

  _addOutcome(event, text) {
    const afterMs = Math.max(0, Math.round(this._now() - this._shownAt));
    this.outcomes.push({ event, chars: text.length, lines: numLines(text), after_ms: afterMs });
  }
}
