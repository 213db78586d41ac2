// Finds the page's elements that the script uses, and its translated texts.

const byId = (id) => document.getElementById(id);

export function read() {
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
    ask: byId("play-ask"),
    take: byId("play-accept"),
    state: byId("play-state"),
    said: byId("play-status"),
    nothingYet: byId("play-nothing-yet"),
    latest: byId("play-latest"),
    outcome: byId("play-outcome"),
    prompt: byId("play-prompt"),
    bar: byId("play-bar"),
    cached: byId("play-cached"),
    legend: byId("play-legend"),
    files: byId("play-files"),
    table: byId("play-table"),
    lines: byId("play-lines"),
    noLines: byId("play-no-lines"),
    numbers: Object.fromEntries(
      [...root.querySelectorAll("[data-number]")].map((each) => [each.dataset.number, each]),
    ),
  };
}
