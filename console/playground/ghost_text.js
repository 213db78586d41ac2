// Ghost text: shows a suggestion in the editor without changing the document. The first line is at
// the cursor, the other lines are below the cursor's line.

import { StateEffect, StateField } from "@codemirror/state";
import { Decoration, EditorView, WidgetType } from "@codemirror/view";

export const setGhost = StateEffect.define(); // {pos, text}; null: none

class Ghost extends WidgetType {
  constructor(text, isBlock) {
    super();
    this.text = text;
    this.isBlock = isBlock;
  }

  eq(other) {
    return other.text === this.text && other.isBlock === this.isBlock;
  }

  toDOM() {
    const element = document.createElement(this.isBlock ? "div" : "span");
    element.className = "ghost";
    element.textContent = this.text;
    // The page's live region announces the suggestion once it is complete.
    element.setAttribute("aria-hidden", "true");
    return element;
  }

  ignoreEvent() {
    return true;
  }
}

export const ghostField = StateField.define({
  create: () => null,
  update(ghost, transaction) {
    for (const effect of transaction.effects) if (effect.is(setGhost)) return effect.value;
    // A change that keeps the suggestion sets the rest of it with an effect.
    return transaction.docChanged || transaction.selection ? null : ghost;
  },
  provide: (field) =>
    EditorView.decorations.compute([field, "doc"], (state) => decorationsOf(state, state.field(field))),
});

function decorationsOf(state, ghost) {
  if (ghost === null || ghost.text === "") return Decoration.none;
  const [first, ...others] = ghost.text.split("\n");
  const marks = [];
  if (first !== "") {
    const widget = new Ghost(first, false);
    marks.push(Decoration.widget({ widget, side: 1 }).range(ghost.pos));
  }
  if (others.length > 0) {
    const widget = new Ghost(others.join("\n"), true);
    const end = state.doc.lineAt(ghost.pos).to;
    marks.push(Decoration.widget({ widget, side: 2, block: true }).range(end));
  }
  return Decoration.set(marks);
}
