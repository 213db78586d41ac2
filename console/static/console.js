"use strict";
// The console's script. Pages work without it; it makes them faster to use.

(() => {
  const YEAR_S = 365 * 24 * 3600;

  // From the second page on, the server shows times in the browser's time zone.
  if (!/(^|; )caret-zone=/.test(document.cookie)) {
    const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    const secure = location.protocol === "https:" ? "; Secure" : "";
    if (zone) document.cookie = `caret-zone=${zone}; Path=/; Max-Age=${YEAR_S}; SameSite=Lax${secure}`;
  }

  const palette = document.getElementById("palette");
  const field = document.getElementById("palette-q");

  function openPalette(event) {
    if (!palette || palette.open) return;
    event.preventDefault();
    palette.showModal();
    field.select();
    field.dispatchEvent(new Event("opened"));
  }

  // Up and down select a search result; Enter in the field opens the first one.
  function walk(event) {
    const links = [...palette.querySelectorAll(".found-link")];
    const here = links.indexOf(document.activeElement);
    if (event.key === "ArrowDown") (links[here + 1] ?? links[0])?.focus();
    else if (event.key === "ArrowUp") (here > 0 ? links[here - 1] : field).focus();
    else if (event.key === "Enter" && document.activeElement === field && links.length) links[0].click();
    else return;
    event.preventDefault();
  }

  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") openPalette(event);
    else if (palette?.open) walk(event);
    else if (event.key === "Escape") leave();
  });

  function leave() {
    if (location.hash === "#menu") location.hash = "";
    for (const menu of document.querySelectorAll("details.menu[open]")) menu.open = false;
  }

  async function copy(button) {
    const label = button.querySelector("span");
    const before = label.textContent;
    await navigator.clipboard.writeText(button.dataset.copy);
    label.textContent = button.dataset.copied;
    setTimeout(() => { label.textContent = before; }, 1600);
  }

  document.addEventListener("click", (event) => {
    const on = (selector) => event.target.closest(selector);
    if (on("[data-palette]")) openPalette(event);
    if (on("[data-dismiss]")) on(".toast").remove();
    if (on("[data-copy]")) copy(on("[data-copy]"));
    if (event.target === palette) palette.close();
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      if (!menu.contains(event.target)) menu.open = false;
    }
  });

  // Apply changed filters at once, and remove the button that is needed without scripts.
  document.addEventListener("change", (event) => {
    const form = event.target.closest("form[data-live]");
    if (form) form.requestSubmit();
  });

  function show(root) {
    for (const button of root.querySelectorAll("[data-dismiss], [data-copy]")) button.hidden = false;
    for (const button of root.querySelectorAll("form[data-live] [data-apply]")) button.hidden = true;
  }
  show(document);
  // If the tabs do not fit, scroll to the current one.
  for (const here of document.querySelectorAll(".tabs [aria-current]")) {
    const [row, tab] = [here.closest(".tabs"), here.getBoundingClientRect()];
    row.scrollLeft += tab.left - row.getBoundingClientRect().left - (row.clientWidth - tab.width) / 2;
  }
  document.addEventListener("htmx:load", (event) => show(event.target));
})();
