// The editor: CodeMirror with ghost text and its keys. It does not know the gateway.

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

import { ghostField, setGhost } from "./ghost.js";
import { LANGUAGES } from "./languages.js";
import { theme } from "./theme.js";

const TAB_LEAVES_MS = 2000; // the same time as in CodeMirror

export class Editor {
  // `on`: {changed(typed), moved(), take(), takeWord(), reject(), ask()}. The last four return whether
  // they handled the key. `typed` is the text inserted at the cursor; null: another change.
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

  // Show another file. Changes in the previous file cannot be undone from here.
  show({ text, cursor, language }) {
    this._view.setState(this._state(text, language, Math.min(cursor, text.length)));
  }

  suggest(text) {
    const ghost = text === "" ? null : { pos: this.cursor, text };
    this._view.dispatch({ effects: setGhost.of(ghost) });
  }

  // Insert `text` at the cursor, and show the remaining suggestion after it.
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
      { key: "Tab", run: () => this._on.take() },
      { key: "Ctrl-ArrowRight", run: () => this._on.takeWord() },
      { key: "Alt-ArrowRight", run: () => this._on.takeWord() },
      { key: "Escape", run: () => this._reject() },
      { key: "Alt-\\", run: () => this._on.ask() },
    ];
  }

  // The next Tab leaves the editor, even if there was no suggestion to reject.
  _reject() {
    this._view.setTabFocusMode(TAB_LEAVES_MS);
    return this._on.reject();
  }

  _updated(update) {
    const isOwn = update.transactions.some((each) => each.isUserEvent("input.complete"));
    if (isOwn) return;
    if (update.docChanged) this._on.changed(typed(update));
    else if (update.selectionSet) this._on.moved();
  }
}

// Return the text inserted at the cursor; null if anything else changed.
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
