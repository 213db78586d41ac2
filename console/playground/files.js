// The files and their tabs. The editor shows one, the others are context.

import { SAMPLES } from "./samples.js";

export class Files {
  constructor(list, { onSelect }) {
    this._list = list;
    this._onSelect = onSelect;
    this.all = [];
    this.active = 0;
  }

  get shown() {
    return this.all[this.active];
  }

  load(language) {
    const now = Date.now() / 1000;
    this.all = SAMPLES[language].map((file) => ({ ...file, editedAt: now }));
    this.active = 0;
    this._draw();
  }

  // Stores the editor's current text.
  store(text, cursor) {
    const isNew = text !== this.shown.text;
    const editedAt = isNew ? Date.now() / 1000 : this.shown.editedAt;
    this.all[this.active] = { ...this.shown, text, cursor, editedAt };
  }

  select(index) {
    this.active = index;
    this._markActive();
  }

  _draw() {
    this._list.replaceChildren(
      ...this.all.map((file, index) => {
        const tab = document.createElement("button");
        tab.type = "button";
        tab.className = "play-tab";
        tab.textContent = file.path;
        tab.addEventListener("click", () => this._onSelect(index));
        return tab;
      }),
    );
    this._markActive();
  }

  _markActive() {
    [...this._list.children].forEach((tab, index) => {
      tab.setAttribute("aria-pressed", String(index === this.active));
    });
  }
}
