// The editor: CodeMirror with ghost text and its key bindings. Knows nothing of the gateway.

import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { bracketMatching, indentOnInput, indentUnit } from "@codemirror/language";
import { EditorState, Prec } from "@codemirror/state";
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  keymap,
  lineNumbers,
} from "@codemirror/view";

import { ghostField, setGhost } from "./ghost_text.js";
import { LANGUAGES } from "./languages.js";
import { theme } from "./editor_theme.js";

const TAB_LEAVES_MS = 2000; // CodeMirror's default

export class Editor {
  // `on`: {changed(typed), moved(), acceptAll(), acceptWord(), dismiss(), requestNow()}. The last four
  // return whether they handled the key. `typed`: the text inserted at the cursor; null for any other
  // change.
  constructor({ parent, nonce, label, describedBy, on }) {
    this._on = on;
    this._attributes = { "aria-label": label, "aria-describedby": describedBy, tabindex: "0" };
    this._nonce = nonce;
    this._view = new EditorView({ parent, state: this._state("", "python") });
  }

  get text() {
    return this._view.state.doc.toString();
  }

  get cursor() {
    return this._view.state.selection.main.head;
  }

  get hasSelection() {
    return !this._view.state.selection.main.empty;
  }

  // Shows another file, with an empty undo history.
  show({ text, cursor, language }) {
    this._view.setState(this._state(text, language, Math.min(cursor, text.length)));
  }

  suggest(text) {
    const ghost = text === "" ? null : { pos: this.cursor, text };
    this._view.dispatch({ effects: setGhost.of(ghost) });
  }

  // Inserts `text` at the cursor and shows the rest of the suggestion after it.
  insert(text, rest) {
    const at = this.cursor;
    const end = at + text.length;
    this._view.dispatch({
      changes: { from: at, insert: text },
      selection: { anchor: end },
      effects: setGhost.of(rest === "" ? null : { pos: end, text: rest }),
      scrollIntoView: true,
      userEvent: "input.complete",
    });
  }

  focus() {
    this._view.focus();
  }

  _state(text, language, cursor = 0) {
    const { parser, indent } = LANGUAGES[language];
    return EditorState.create({
      doc: text,
      selection: { anchor: cursor },
      extensions: [
        EditorView.cspNonce.of(this._nonce),
        EditorView.contentAttributes.of(this._attributes),
        Prec.highest(keymap.of(this._keys())),
        ghostField,
        lineNumbers(),
        history(),
        drawSelection(),
        highlightActiveLine(),
        indentOnInput(),
        bracketMatching(),
        indentUnit.of(" ".repeat(indent)),
        parser,
        theme,
        keymap.of([...defaultKeymap, ...historyKeymap, indentWithTab]),
        EditorView.updateListener.of((update) => this._updated(update)),
      ],
    });
  }

  _keys() {
    return [
      { key: "Tab", run: () => this._on.acceptAll() },
      { key: "Ctrl-ArrowRight", run: () => this._on.acceptWord() },
      { key: "Alt-ArrowRight", run: () => this._on.acceptWord() },
      { key: "Escape", run: () => this._dismiss() },
      { key: "Alt-\\", run: () => this._on.requestNow() },
    ];
  }

  // The next Tab leaves the editor, with or without a suggestion.
  _dismiss() {
    this._view.setTabFocusMode(TAB_LEAVES_MS);
    return this._on.dismiss();
  }

  _updated(update) {
    const isOwn = update.transactions.some((transaction) => transaction.isUserEvent("input.complete"));
    if (isOwn) return;
    if (update.docChanged) this._on.changed(typed(update));
    else if (update.selectionSet) this._on.moved();
  }
}

// Returns the text that was inserted at the cursor; null if anything else changed.
function typed(update) {
  const before = update.startState.selection.main;
  let text = null;
  let num = 0;
  update.changes.iterChanges((from, to, _fromNow, _toNow, inserted) => {
    num += 1;
    if (from === to && from === before.head && before.empty) text = inserted.toString();
  });
  return num === 1 ? text : null;
}
