// The playground: a real editor with suggestions from the gateway (`/v1/stream`).

import { Connection } from "./connection.js";
import { Editor } from "./editor.js";
import { endsSession } from "./figures.js";
import { Files } from "./files.js";
import { read } from "./page.js";
import { Pause } from "./pause.js";
import { completeFrame } from "./request.js";
import { fill, Results } from "./results.js";
import { Suggestion } from "./suggestion.js";

class Playground {
  constructor(page) {
    this._page = page;
    this._results = new Results(page, page.texts);
    this._files = new Files(page.tabs, { onChoose: (place) => this._choose(place) });
    this._pause = new Pause(() => this._ask("automatic"));
    this._suggestion = null; // the visible or arriving suggestion
    this._asked = new Map(); // id -> {text: received so far, trigger}, of requests in flight
    this._num = 0;
    this._connection = new Connection(page, {
      state: (name, sentence) => this._showState(name, sentence),
      frame: (frame) => this._received(frame),
    });
    this._editor = new Editor({
      parent: page.editor,
      nonce: page.nonce,
      label: page.texts.editor,
      describedBy: "play-keys",
      on: {
        changed: (typed) => this._changed(typed),
        moved: () => this._drop(),
        take: () => this._insert((suggestion) => suggestion.takeAll()),
        takeWord: () => this._insert((suggestion) => suggestion.takeWord()),
        reject: () => this._drop(),
        ask: () => this._ask("manual"),
      },
    });
    this._listen();
    this._begin();
  }

  _listen() {
    const { language, start, stop, ask, take } = this._page;
    language.addEventListener("change", () => this._begin());
    start.addEventListener("click", () => {
      this._connection.start();
      this._editor.focus();
    });
    stop.addEventListener("click", () => this._connection.stop());
    ask.addEventListener("click", () => {
      this._editor.focus();
      this._ask("manual");
    });
    // For devices without a Tab key.
    take.addEventListener("click", () => {
      this._insert((suggestion) => suggestion.takeAll());
      this._editor.focus();
    });
  }

  _begin() {
    this._drop();
    this._files.begin(this._page.language.value);
    this._show();
  }

  _choose(place) {
    this._drop();
    this._files.keep(this._editor.text, this._editor.cursor);
    this._files.choose(place);
    this._show();
    this._editor.focus();
  }

  _show() {
    const { text, cursor } = this._files.shown;
    this._editor.show({ text, cursor, language: this._page.language.value });
  }

  _showState(name, sentence) {
    const { state, start, stop, ask, texts } = this._page;
    state.dataset.state = name;
    state.textContent = texts.state[name];
    start.hidden = name !== "stopped";
    stop.hidden = name === "stopped";
    ask.disabled = name !== "ready";
    if (name === "stopped") {
      this._drop();
      this._asked.clear();
    }
    if (sentence !== "") this._say(sentence, "bad");
    else if (name === "ready") this._say(texts.ready, "good");
    else this._say("", "");
  }

  _say(sentence, tone) {
    this._page.said.dataset.tone = tone;
    this._page.said.textContent = sentence;
  }

  _changed(typed) {
    const suggestion = this._suggestion;
    if (suggestion !== null && typed !== null && suggestion.type(typed)) {
      this._tell(suggestion);
      this._suggest(suggestion.left);
      if (!suggestion.isOver) return;
      this._suggestion = null;
    } else {
      this._drop();
    }
    if (this._page.trigger.value === "pause") this._pause.begin();
  }

  // Return whether there was a suggestion to accept.
  _insert(take) {
    const suggestion = this._suggestion;
    const text = suggestion === null ? "" : take(suggestion);
    if (text === "") return false;
    if (suggestion.isOver) {
      this._connection.cancel(suggestion.id); // the rest is not needed
      this._suggestion = null;
    }
    this._tell(suggestion);
    this._editor.insert(text, suggestion.left);
    this._page.take.hidden = suggestion.left === "";
    if (suggestion.isOver) this._say("", "");
    if (suggestion.isOver && this._page.trigger.value === "pause") this._pause.begin();
    return true;
  }

  // Return whether a suggestion was visible.
  _drop() {
    this._pause.stop();
    const suggestion = this._suggestion;
    if (suggestion === null) return false;
    const wasSeen = suggestion.left !== "";
    this._suggestion = null;
    suggestion.reject();
    this._connection.cancel(suggestion.id);
    this._tell(suggestion);
    this._suggest("");
    return wasSeen;
  }

  _ask(trigger) {
    if (this._editor.hasSelection) return false;
    this._drop();
    this._files.keep(this._editor.text, this._editor.cursor);
    this._num += 1;
    const id = String(this._num);
    const isAsked = this._connection.ask(
      completeFrame({
        id,
        mode: this._page.mode.value,
        language: this._page.language.value,
        files: this._files.all,
        active: this._files.active,
        cursor: this._editor.cursor,
        trigger,
      }),
    );
    if (!isAsked) return false;
    this._suggestion = new Suggestion(id, { now: () => performance.now() });
    this._asked.set(id, { text: "", trigger });
    return true;
  }

  _received(frame) {
    if (frame.type === "delta") this._grow(frame);
    else this._ended(frame);
  }

  _grow({ id, text }) {
    if (!this._asked.has(id)) return; // from an earlier session
    this._asked.get(id).text += text;
    const suggestion = this._suggestion;
    if (suggestion === null || suggestion.id !== id) return;
    suggestion.grow(text);
    this._tell(suggestion);
    this._suggest(suggestion.left);
  }

  _suggest(text) {
    this._editor.suggest(text);
    if (text === "") this._say("", "");
    this._page.take.hidden = text === "";
  }

  _ended(frame) {
    const asked = this._asked.get(frame.id);
    this._asked.delete(frame.id);
    if (frame.finish_reason === "filtered" || frame.type === "error") this._dropIf(frame.id);
    // Ignore superseded requests and errors that concern other kinds of frames.
    if (asked !== undefined && frame.finish_reason !== "superseded" && frame.finish_reason !== "cancelled") {
      this._announce(this._results.add(frame, asked.text), asked);
    }
    if (endsSession(frame)) this._connection.stop("key");
  }

  _dropIf(id) {
    if (this._suggestion !== null && this._suggestion.id === id) this._drop();
  }

  // For screen readers. Do not announce an empty completion after a pause in typing.
  _announce({ outcome, sentences }, { text, trigger }) {
    const why = sentences.join(" ");
    if (outcome === "refused") this._say(why, "bad");
    else if (outcome === "nothing") this._say(trigger === "manual" ? why : "", "");
    else this._say(fill(this._page.texts.suggested, { text: text.trim().split("\n")[0] }), "");
  }

  _tell(suggestion) {
    for (const outcome of suggestion.outcomes.splice(0)) {
      this._connection.outcome(suggestion.id, outcome);
    }
  }
}

const page = read();
page.root.hidden = false;
new Playground(page);
