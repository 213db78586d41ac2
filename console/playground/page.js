// Finds the page's elements that the script uses, and its translated texts.

const byId = (id) => document.getElementById(id);

export function readPage() {
  const root = byId("playground");
  return {
    root,
    nonce: root.dataset.nonce,
    streamUrl: root.dataset.streamUrl,
    startUrl: root.dataset.startUrl,
    endUrl: root.dataset.endUrl,
    token: root.querySelector("[name=csrfmiddlewaretoken]").value,
    texts: JSON.parse(byId("playground-texts").textContent),
    editor: byId("play-editor"),
    tabs: byId("play-tabs"),
    language: byId("play-language"),
    mode: byId("play-mode"),
    trigger: byId("play-trigger"),
    start: byId("play-start"),
    stop: byId("play-stop"),
    requestNow: byId("play-request-now"),
    accept: byId("play-accept"),
    state: byId("play-state"),
    message: byId("play-message"),
    nothingYet: byId("play-nothing-yet"),
    latest: byId("play-latest"),
    outcome: byId("play-outcome"),
    prompt: byId("play-prompt"),
    bar: byId("play-bar"),
    cached: byId("play-cached"),
    legend: byId("play-legend"),
    files: byId("play-files"),
    table: byId("play-table"),
    rows: byId("play-rows"),
    noRows: byId("play-no-rows"),
    numbers: Object.fromEntries(
      [...root.querySelectorAll("[data-number]")].map((element) => [element.dataset.number, element]),
    ),
  };
}
