"use strict";
// Replaces each chart by an interactive one, drawn from the table below it. Tooltips show the text of
// the table's cells, which the server has formatted in the reader's language.

(() => {
  const HEIGHT_PX = 236;
  const BARS = ["--series-1", "--series-2", "--series-3"];
  const LINES = [["--series-1"], ["--series-4", [6, 4]], ["--series-3", [2, 3]], ["--soft", [10, 3, 2, 3]]];
  // Distances of ticks; uPlot would choose fractions of one request.
  const WHOLE = Array.from({ length: 13 }, (_, power) => [1, 2, 5].map((digit) => digit * 10 ** power)).flat();
  const drawn = new Map(); // element -> its chart

  function tableOf(figure) {
    const rows = [...figure.querySelectorAll(".chart-table tbody tr")];
    const cellsOf = (row) => [...row.querySelectorAll("[data-value]")];
    const values = rows.map((row) => cellsOf(row).map(({ dataset: { value } }) => (value === "" ? null : Number(value))));
    return {
      names: [...figure.querySelectorAll(".chart-table thead th.number")].map((cell) => cell.textContent),
      times: rows.map((row) => row.cells[0].textContent),
      days: rows.map((row) => row.dataset.day),
      texts: rows.map((row) => [...row.cells].slice(1).map((cell) => cell.textContent)),
      series: (values[0] ?? []).map((_, place) => values.map((at) => at[place])),
    };
  }

  function writerOf(unit) {
    const styles = {
      count: { notation: "compact" },
      share: { style: "percent", maximumFractionDigits: 1 },
    };
    const money = { style: "currency", currency: unit, notation: "compact" };
    return new Intl.NumberFormat(document.documentElement.lang, styles[unit] ?? money);
  }

  // A custom property holds light-dark(...); only a computed colour is one of the two.
  function colourOf(place, name) {
    place.style.color = `var(${name})`;
    const { color } = getComputedStyle(place);
    place.style.color = "";
    return color;
  }

  // Draw bars over each other, starting with the sum of all series. A hidden series adds nothing.
  function heaped(table, hidden) {
    const sums = table.times.map(() => 0);
    return table.series.map((values, kind) =>
      values.map((value, at) => (hidden.has(kind) || value === null ? null : (sums[at] += value))),
    );
  }

  function dataOf(table, isLines, hidden) {
    const places = table.times.map((_, place) => place);
    if (!isLines) return [places, ...heaped(table, hidden).reverse()];
    return [places, ...table.series.map((values, kind) => (hidden.has(kind) ? values.map(() => null) : values))];
  }

  function seriesOf(place, table, isLines) {
    if (!isLines) {
      const paths = uPlot.paths.bars({ size: [0.84, 200] });
      return table.series.map((_, kind) => {
        const fill = () => colourOf(place, BARS[kind]);
        return { paths, fill, stroke: fill, width: 0, points: { show: false } };
      }).reverse();
    }
    // A value without neighbours would be a line without length.
    const lone = (plot, kind) => plot.data[kind].flatMap((value, at, all) =>
      value !== null && (all[at - 1] ?? null) === null && (all[at + 1] ?? null) === null ? [at] : []);
    return table.series.map((_, kind) => {
      const [name, dash] = LINES[kind];
      return { stroke: () => colourOf(place, name), dash, width: 2, points: { filter: lone, size: 5 } };
    });
  }

  function axesOf(place, table, unit) {
    const { fontFamily } = getComputedStyle(place);
    const number = writerOf(unit);
    const stroke = () => colourOf(place, "--soft"), line = () => colourOf(place, "--line");
    const shared = { stroke, font: `12px ${fontFamily}`, ticks: { show: false } };
    const widest = (plot, texts) => {
      plot.ctx.font = shared.font;
      return 10 + Math.max(20, ...(texts ?? []).map((text) => plot.ctx.measureText(text).width / devicePixelRatio));
    };
    return [
      { ...shared, size: 28, space: 74, incrs: [1, 2, 3, 4, 6, 7, 14, 30, 60], grid: { show: false },
        values: (_, places) => places.map((at) => table.times[at] ?? "") },
      { ...shared, ...(unit === "count" && { incrs: WHOLE }), size: widest, gap: 6, space: 40, grid: { stroke: line, width: 1 },
        values: (_, ticks) => ticks.map((tick) => number.format(tick)) },
    ];
  }

  function topOf(highest, unit) {
    const [, top] = uPlot.rangeNum(0, highest || 1, 0.1, true);
    return unit === "share" ? Math.min(1, top) : top;
  }

  function draw(figure) {
    const place = figure.querySelector(".chart-live");
    const table = tableOf(figure);
    if (drawn.has(place) || !table.times.length) return;
    figure.classList.add("is-live");
    place.hidden = false;
    const isLines = figure.dataset.chart === "lines", zooms = "zooms" in figure.dataset;
    const { unit } = figure.dataset;
    const hidden = new Set();
    const told = teller(place, table, hidden);
    const plot = new uPlot({
      width: place.clientWidth, height: HEIGHT_PX, padding: [10, 16, 0, 0],
      legend: { show: false },
      scales: {
        x: { time: false, range: () => [-0.5, table.times.length - 0.5] },
        y: { range: (_, low, high) => [0, topOf(high, unit)] },
      },
      axes: axesOf(place, table, unit),
      series: [{}, ...seriesOf(place, table, isLines)],
      cursor: { y: false, points: { show: isLines }, drag: { x: zooms, y: false, setScale: false } },
      hooks: {
        setCursor: [told],
        setSelect: [(self) => zooms && self.select.width > 0 && ask(table, chosen(self))],
      },
    }, dataOf(table, isLines, hidden), place);
    const resized = new ResizeObserver(() => plot.setSize({ width: place.clientWidth, height: HEIGHT_PX }));
    resized.observe(place);
    drawn.set(place, { plot, resized });
    toggles(figure, hidden, () => plot.setData(dataOf(table, isLines, hidden)));
    keys(place, plot, table, zooms);
    for (const hint of figure.querySelectorAll(".chart-hint")) hint.hidden = false;
  }

  function chosen(plot) {
    const last = plot.data[0].length - 1;
    const at = (left) => Math.min(last, Math.max(0, Math.round(plot.posToVal(left, "x"))));
    return [at(plot.select.left), at(plot.select.left + plot.select.width)];
  }

  // Zoom with the page's own filter: the URL holds the period, so the browser's Back button undoes it.
  function ask(table, [first, last]) {
    const address = new URL(location.href);
    const said = { range: "custom", start: table.days[first], end: table.days[last] };
    for (const [name, value] of Object.entries(said)) address.searchParams.set(name, value);
    location.assign(address);
  }

  function teller(place, table, hidden) {
    const said = document.createElement("div");
    said.className = "chart-reading";
    said.setAttribute("role", "status");
    said.hidden = true;
    place.append(said);
    return (plot) => {
      const at = plot.cursor.idx;
      said.hidden = at === null || at === undefined || plot.cursor.left < 0;
      if (said.hidden) return;
      const marks = place.closest(".chart").querySelectorAll(".legend-mark");
      const lines = table.names.flatMap((name, kind) => {
        if (hidden.has(kind)) return [];
        const line = document.createElement("span"), value = document.createElement("b");
        value.textContent = table.texts[at][kind];
        line.append(...(marks[kind] ? [marks[kind].cloneNode()] : []), `${name} `, value);
        return [line];
      });
      const time = document.createElement("span");
      time.textContent = table.times[at];
      said.replaceChildren(time, ...lines);
      put(said, plot, at);
    };
  }

  // Place the tooltip beside the cursor, on the side with more room.
  function put(said, plot, at) {
    const left = plot.over.offsetLeft + plot.valToPos(at, "x");
    const isRight = left > plot.width / 2;
    said.style.left = isRight ? "auto" : `${left + 12}px`;
    said.style.right = isRight ? `${plot.width - left + 12}px` : "auto";
  }

  function toggles(figure, hidden, redraw) {
    for (const item of figure.querySelectorAll(".legend li")) {
      const button = document.createElement("button"), kind = Number(item.dataset.kind) - 1;
      button.type = "button";
      button.setAttribute("aria-pressed", "true");
      button.append(...item.childNodes);
      button.addEventListener("click", () => {
        if (!hidden.delete(kind)) hidden.add(kind);
        button.setAttribute("aria-pressed", String(!hidden.has(kind)));
        redraw();
      });
      item.replaceChildren(button);
    }
  }

  function keys(place, plot, table, zooms) {
    const last = table.times.length - 1;
    let at = last, anchor = null;
    const left = (edge) => plot.valToPos(edge, "x");
    function go(to, isChoosing) {
      anchor = isChoosing && zooms ? (anchor ?? at) : null;
      at = Math.min(last, Math.max(0, to));
      plot.setCursor({ left: left(at), top: 0 });
      const [from, until] = [Math.min(anchor ?? at, at) - 0.5, Math.max(anchor ?? at, at) + 0.5];
      const width = anchor === null ? 0 : left(until) - left(from);
      plot.setSelect({ left: left(from), width, top: 0, height: plot.over.clientHeight }, false);
    }
    const leave = () => { anchor = null; go(at, false); plot.setCursor({ left: -10, top: -10 }); };
    const moves = { ArrowLeft: () => at - 1, ArrowRight: () => at + 1, Home: () => 0, End: () => last };
    place.addEventListener("keydown", (event) => {
      if (event.key in moves) go(moves[event.key](), event.shiftKey);
      else if (event.key === "Enter" && anchor !== null) ask(table, [Math.min(anchor, at), Math.max(anchor, at)]);
      else if (event.key === "Escape") leave();
      else return;
      event.preventDefault();
    });
    place.addEventListener("blur", leave);
  }

  function drawAll(root) {
    for (const figure of root.querySelectorAll("[data-chart]")) draw(figure);
  }
  drawAll(document);
  document.addEventListener("htmx:load", (event) => drawAll(event.target));
  document.addEventListener("htmx:beforeCleanupElement", (event) => {
    const held = drawn.get(event.target);
    drawn.delete(event.target);
    held?.resized.disconnect();
    held?.plot.destroy();
  });
  // Bars cache the colour of their paths, so create the paths again, too.
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    for (const { plot } of drawn.values()) plot.redraw();
  });
})();
