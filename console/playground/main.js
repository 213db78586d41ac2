// The playground: a real editor with suggestions from the gateway's `/v1/stream`.

import { Connection } from "./connection.js";
import { Editor } from "./editor.js";
import { endsSession } from "./completion_meta.js";
import { Files } from "./files.js";
import { readPage } from "./page.js";
import { Debouncer } from "./debounce.js";
import { completeFrame } from "./request.js";
import { fill, RequestList } from "./request_list.js";
import { Suggestion } from "./suggestion.js";

class Playground {
  constructor(page) {
    this._page = page;
    this._requests = new RequestList(page, page.texts);
    this._files = new Files(page.tabs, { onSelect: (index) => this._selectFile(index) });
    this._debouncer = new Debouncer(() => this._request("automatic"));
    this._suggestion = null; // the visible or the requested one
    this._requested = new Map(); // id -> {text received so far, trigger}, of requests in flight
    this._lastId = 0;
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
        moved: () => this._dismiss(),
        acceptAll: () => this._insert((suggestion) => suggestion.acceptAll()),
        acceptWord: () => this._insert((suggestion) => suggestion.acceptWord()),
        dismiss: () => this._dismiss(),
        requestNow: () => this._request("manual"),
      },
    });
    this._listen();
    this._loadFiles();
  }

  _listen() {
    const { language, start, stop, requestNow, accept } = this._page;
    language.addEventListener("change", () => this._loadFiles());
    start.addEventListener("click", () => {
      this._connection.start();
      this._editor.focus();
    });
    stop.addEventListener("click", () => this._connection.stop());
    requestNow.addEventListener("click", () => {
      this._editor.focus();
      this._request("manual");
    });
    // For keyboards without a Tab key.
    accept.addEventListener("click", () => {
      this._insert((suggestion) => suggestion.acceptAll());
      this._editor.focus();
    });
  }

  _loadFiles() {
    this._dismiss();
    this._files.load(this._page.language.value);
    this._showFile();
  }

  _selectFile(index) {
    this._dismiss();
    this._files.store(this._editor.text, this._editor.cursor);
    this._files.select(index);
    this._showFile();
    this._editor.focus();
  }

  _showFile() {
    const { text, cursor } = this._files.shown;
    this._editor.show({ text, cursor, language: this._page.language.value });
  }

  _showState(name, sentence) {
    const { state, start, stop, requestNow, texts } = this._page;
    state.dataset.state = name;
    state.textContent = texts.state[name];
    start.hidden = name !== "stopped";
    stop.hidden = name === "stopped";
    requestNow.disabled = name !== "ready";
    if (name === "stopped") {
      this._dismiss();
      this._requested.clear();
    }
    if (sentence !== "") this._showMessage(sentence, "bad");
    else if (name === "ready") this._showMessage(texts.ready, "good");
    else this._showMessage("", "");
  }

  _showMessage(sentence, tone) {
    this._page.message.dataset.tone = tone;
    this._page.message.textContent = sentence;
  }

  _changed(typed) {
    const suggestion = this._suggestion;
    if (suggestion !== null && typed !== null && suggestion.type(typed)) {
      this._reportOutcomes(suggestion);
      this._suggest(suggestion.remaining);
      if (!suggestion.isOver) return;
      this._suggestion = null;
    } else {
      this._dismiss();
    }
    if (this._page.trigger.value === "pause") this._debouncer.begin();
  }

  // Returns whether there was text to insert.
  _insert(acceptPart) {
    const suggestion = this._suggestion;
    const text = suggestion === null ? "" : acceptPart(suggestion);
    if (text === "") return false;
    if (suggestion.isOver) {
      this._connection.cancel(suggestion.id); // the rest of the completion is not needed
      this._suggestion = null;
    }
    this._reportOutcomes(suggestion);
    this._editor.insert(text, suggestion.remaining);
    this._page.accept.hidden = suggestion.remaining === "";
    if (suggestion.isOver) this._showMessage("", "");
    if (suggestion.isOver && this._page.trigger.value === "pause") this._debouncer.begin();
    return true;
  }

  // Returns whether a suggestion was visible.
  _dismiss() {
    this._debouncer.stop();
    const suggestion = this._suggestion;
    if (suggestion === null) return false;
    const wasSeen = suggestion.remaining !== "";
    this._suggestion = null;
    suggestion.reject();
    this._connection.cancel(suggestion.id);
    this._reportOutcomes(suggestion);
    this._suggest("");
    return wasSeen;
  }

  _request(trigger) {
    if (this._editor.hasSelection) return false;
    this._dismiss();
    this._files.store(this._editor.text, this._editor.cursor);
    this._lastId += 1;
    const id = String(this._lastId);
    const isSent = this._connection.request(
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
    if (!isSent) return false;
    this._suggestion = new Suggestion(id, { now: () => performance.now() });
    this._requested.set(id, { text: "", trigger });
    return true;
  }

  _received(frame) {
    if (frame.type === "delta") this._addText(frame);
    else this._ended(frame);
  }

  _addText({ id, text }) {
    if (!this._requested.has(id)) return; // a request of an earlier session
    this._requested.get(id).text += text;
    const suggestion = this._suggestion;
    if (suggestion === null || suggestion.id !== id) return;
    suggestion.append(text);
    this._reportOutcomes(suggestion);
    this._suggest(suggestion.remaining);
  }

  _suggest(text) {
    this._editor.suggest(text);
    if (text === "") this._showMessage("", "");
    this._page.accept.hidden = text === "";
  }

  _ended(frame) {
    const request = this._requested.get(frame.id);
    this._requested.delete(frame.id);
    if (frame.finish_reason === "filtered" || frame.type === "error") this._dismissIf(frame.id);
    // Do not list superseded and cancelled requests, nor errors about other frames.
    if (request !== undefined && frame.finish_reason !== "superseded" && frame.finish_reason !== "cancelled") {
      this._announce(this._requests.add(frame, request.text), request);
    }
    if (endsSession(frame)) this._connection.stop("key");
  }

  _dismissIf(id) {
    if (this._suggestion !== null && this._suggestion.id === id) this._dismiss();
  }

  // For screen readers. An automatic request without a suggestion is not announced.
  _announce({ outcome, sentences }, { text, trigger }) {
    const explanation = sentences.join(" ");
    if (outcome === "refused") this._showMessage(explanation, "bad");
    else if (outcome === "nothing") this._showMessage(trigger === "manual" ? explanation : "", "");
    else this._showMessage(fill(this._page.texts.suggested, { text: text.trim().split("\n")[0] }), "");
  }

  _reportOutcomes(suggestion) {
    for (const outcome of suggestion.outcomes.splice(0)) {
      this._connection.outcome(suggestion.id, outcome);
    }
  }
}

const page = readPage();
page.root.hidden = false;
new Playground(page);
