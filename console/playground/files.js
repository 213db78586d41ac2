// The files of the editor and their tabs. One file is shown; the others are context.

import { SAMPLES } from "./samples.js";

export class Files {
  constructor(list, { onChoose }) {
    this._list = list;
    this._onChoose = onChoose;
    this.all = [];
    this.active = 0;
  }

  get shown() {
    return this.all[this.active];
  }

  begin(language) {
    const now = Date.now() / 1000;
    this.all = SAMPLES[language].map((file) => ({ ...file, editedAt: now }));
    this.active = 0;
    this._draw();
  }

  // Return the text that is in the editor now.
  keep(text, cursor) {
    const isNew = text !== this.shown.text;
    const editedAt = isNew ? Date.now() / 1000 : this.shown.editedAt;
    this.all[this.active] = { ...this.shown, text, cursor, editedAt };
  }

  choose(place) {
    this.active = place;
    this._mark();
  }

  _draw() {
    this._list.replaceChildren(
      ...this.all.map((file, place) => {
        const tab = document.createElement("button");
        tab.type = "button";
        tab.className = "play-tab";
        tab.textContent = file.path;
        tab.addEventListener("click", () => this._onChoose(place));
        return tab;
      }),
    );
    this._mark();
  }

  _mark() {
    [...this._list.children].forEach((tab, place) => {
      tab.setAttribute("aria-pressed", String(place === this.active));
    });
  }
}
