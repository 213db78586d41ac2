"use strict";
// Replaces each chart by an interactive one, drawn from the table below it. Tooltips show the text of
// the table's cells, which the server has formatted in the reader's language. A value has two indices:
// `kind`, that of its series, and `at`, that of its time.

(() => {
  const HEIGHT_PX = 236;
  const BAR_COLOURS = ["--series-1", "--series-2", "--series-3"];
  // Colour and dashes.
  const LINE_STYLES = [["--series-1"], ["--series-4", [6, 4]], ["--series-3", [2, 3]], ["--soft", [10, 3, 2, 3]]];
  // Distances of ticks for counts. uPlot itself would choose fractions, too.
  const WHOLE_DISTANCES = Array.from({ length: 13 }, (_, power) => [1, 2, 5].map((digit) => digit * 10 ** power)).flat();
  const plots = new Map(); // .chart-live element -> {plot, resizeObserver}

  function readTable(figure) {
    const rows = [...figure.querySelectorAll(".chart-table tbody tr")];
    const cellsOf = (row) => [...row.querySelectorAll("[data-value]")];
    const values = rows.map((row) => cellsOf(row).map(({ dataset: { value } }) => (value === "" ? null : Number(value))));
    return {
      names: [...figure.querySelectorAll(".chart-table thead th.number")].map((cell) => cell.textContent),
      times: rows.map((row) => row.cells[0].textContent),
      days: rows.map((row) => row.dataset.day),
      texts: rows.map((row) => [...row.cells].slice(1).map((cell) => cell.textContent)),
      series: (values[0] ?? []).map((_, kind) => values.map((row) => row[kind])),
    };
  }

  function numberFormatOf(unit) {
    const styles = {
      count: { notation: "compact" },
      share: { style: "percent", maximumFractionDigits: 1 },
    };
    const money = { style: "currency", currency: unit, notation: "compact" };
    return new Intl.NumberFormat(document.documentElement.lang, styles[unit] ?? money);
  }

  // The custom property has the colours of both modes: light-dark(...). The computed colour is one of them.
  function colourOf(element, name) {
    element.style.color = `var(${name})`;
    const { color } = getComputedStyle(element);
    element.style.color = "";
    return color;
  }

  // Return the upper ends of stacked bars. A hidden series adds nothing.
  function stack(table, hidden) {
    const sums = table.times.map(() => 0);
    return table.series.map((values, kind) =>
      values.map((value, at) => (hidden.has(kind) || value === null ? null : (sums[at] += value))),
    );
  }

  function dataOf(table, isLines, hidden) {
    const indices = table.times.map((_, at) => at);
    // Bars are drawn over each other, the highest first.
    if (!isLines) return [indices, ...stack(table, hidden).reverse()];
    return [indices, ...table.series.map((values, kind) => (hidden.has(kind) ? values.map(() => null) : values))];
  }

  function seriesOf(element, table, isLines) {
    if (!isLines) {
      const paths = uPlot.paths.bars({ size: [0.84, 200] });
      return table.series.map((_, kind) => {
        const fill = () => colourOf(element, BAR_COLOURS[kind]);
        return { paths, fill, stroke: fill, width: 0, points: { show: false } };
      }).reverse();
    }
    // A value without neighbours gets a point: its line would have no length.
    const isolatedPoints = (plot, index) => plot.data[index].flatMap((value, at, all) =>
      value !== null && (all[at - 1] ?? null) === null && (all[at + 1] ?? null) === null ? [at] : []);
    return table.series.map((_, kind) => {
      const [name, dash] = LINE_STYLES[kind];
      return { stroke: () => colourOf(element, name), dash, width: 2, points: { filter: isolatedPoints, size: 5 } };
    });
  }

  function axesOf(element, table, unit) {
    const { fontFamily } = getComputedStyle(element);
    const number = numberFormatOf(unit);
    const stroke = () => colourOf(element, "--soft"), line = () => colourOf(element, "--line");
    const shared = { stroke, font: `12px ${fontFamily}`, ticks: { show: false } };
    const labelWidth = (plot, texts) => {
      plot.ctx.font = shared.font;
      return 10 + Math.max(20, ...(texts ?? []).map((text) => plot.ctx.measureText(text).width / devicePixelRatio));
    };
    return [
      { ...shared, size: 28, space: 74, incrs: [1, 2, 3, 4, 6, 7, 14, 30, 60], grid: { show: false },
        values: (_, indices) => indices.map((at) => table.times[at] ?? "") },
      { ...shared, ...(unit === "count" && { incrs: WHOLE_DISTANCES }), size: labelWidth, gap: 6, space: 40, grid: { stroke: line, width: 1 },
        values: (_, ticks) => ticks.map((tick) => number.format(tick)) },
    ];
  }

  function topOf(highest, unit) {
    const [, top] = uPlot.rangeNum(0, highest || 1, 0.1, true);
    return unit === "share" ? Math.min(1, top) : top;
  }

  function draw(figure) {
    const element = figure.querySelector(".chart-live");
    const table = readTable(figure);
    if (plots.has(element) || !table.times.length) return;
    figure.classList.add("is-live");
    element.hidden = false;
    const isLines = figure.dataset.chart === "lines", canZoom = "zooms" in figure.dataset;
    const { unit } = figure.dataset;
    const hidden = new Set(); // kinds
    const plot = new uPlot({
      width: element.clientWidth, height: HEIGHT_PX, padding: [10, 16, 0, 0],
      legend: { show: false },
      scales: {
        x: { time: false, range: () => [-0.5, table.times.length - 0.5] },
        y: { range: (_, low, high) => [0, topOf(high, unit)] },
      },
      axes: axesOf(element, table, unit),
      series: [{}, ...seriesOf(element, table, isLines)],
      cursor: { y: false, points: { show: isLines }, drag: { x: canZoom, y: false, setScale: false } },
      hooks: {
        setCursor: [createTooltip(element, table, hidden)],
        setSelect: [(self) => canZoom && self.select.width > 0 && openPeriod(table, selectedTimes(self))],
      },
    }, dataOf(table, isLines, hidden), element);
    const resizeObserver = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: HEIGHT_PX }));
    resizeObserver.observe(element);
    plots.set(element, { plot, resizeObserver });
    addLegendButtons(figure, hidden, () => plot.setData(dataOf(table, isLines, hidden)));
    addKeys(element, plot, table, canZoom);
    for (const hint of figure.querySelectorAll(".chart-hint")) hint.hidden = false;
  }

  // Return the indices of the first and the last selected time.
  function selectedTimes(plot) {
    const last = plot.data[0].length - 1;
    const indexAt = (left) => Math.min(last, Math.max(0, Math.round(plot.posToVal(left, "x"))));
    return [indexAt(plot.select.left), indexAt(plot.select.left + plot.select.width)];
  }

  // Zoom with the page's own filter: the URL holds the period, so the browser's Back button undoes it.
  function openPeriod(table, [first, last]) {
    const address = new URL(location.href);
    const parameters = { range: "custom", start: table.days[first], end: table.days[last] };
    for (const [name, value] of Object.entries(parameters)) address.searchParams.set(name, value);
    location.assign(address);
  }

  // Return a function that shows the values under the plot's cursor.
  function createTooltip(element, table, hidden) {
    const tooltip = document.createElement("div");
    tooltip.className = "chart-tooltip";
    tooltip.setAttribute("role", "status");
    tooltip.hidden = true;
    element.append(tooltip);
    return (plot) => {
      const at = plot.cursor.idx;
      tooltip.hidden = at === null || at === undefined || plot.cursor.left < 0;
      if (tooltip.hidden) return;
      const marks = element.closest(".chart").querySelectorAll(".legend-mark");
      const lines = table.names.flatMap((name, kind) => {
        if (hidden.has(kind)) return [];
        const line = document.createElement("span"), value = document.createElement("b");
        value.textContent = table.texts[at][kind];
        line.append(...(marks[kind] ? [marks[kind].cloneNode()] : []), `${name} `, value);
        return [line];
      });
      const time = document.createElement("span");
      time.textContent = table.times[at];
      tooltip.replaceChildren(time, ...lines);
      moveTooltip(tooltip, plot, at);
    };
  }

  // Move the tooltip beside the cursor, to the side with more room.
  function moveTooltip(tooltip, plot, at) {
    const left = plot.over.offsetLeft + plot.valToPos(at, "x");
    const isRight = left > plot.width / 2;
    tooltip.style.left = isRight ? "auto" : `${left + 12}px`;
    tooltip.style.right = isRight ? `${plot.width - left + 12}px` : "auto";
  }

  // Make the legend's items buttons that hide and show their series.
  function addLegendButtons(figure, hidden, redraw) {
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

  // Move the cursor with the arrow keys. With Shift they select times, which Enter opens.
  function addKeys(element, plot, table, canZoom) {
    const last = table.times.length - 1;
    let at = last, anchor = null; // anchor: the time at which the selection began
    const left = (edge) => plot.valToPos(edge, "x");
    function moveTo(index, isSelecting) {
      anchor = isSelecting && canZoom ? (anchor ?? at) : null;
      at = Math.min(last, Math.max(0, index));
      plot.setCursor({ left: left(at), top: 0 });
      const [from, until] = [Math.min(anchor ?? at, at) - 0.5, Math.max(anchor ?? at, at) + 0.5];
      const width = anchor === null ? 0 : left(until) - left(from);
      plot.setSelect({ left: left(from), width, top: 0, height: plot.over.clientHeight }, false);
    }
    const hideCursor = () => { anchor = null; moveTo(at, false); plot.setCursor({ left: -10, top: -10 }); };
    const moves = { ArrowLeft: () => at - 1, ArrowRight: () => at + 1, Home: () => 0, End: () => last };
    element.addEventListener("keydown", (event) => {
      if (event.key in moves) moveTo(moves[event.key](), event.shiftKey);
      else if (event.key === "Enter" && anchor !== null) openPeriod(table, [Math.min(anchor, at), Math.max(anchor, at)]);
      else if (event.key === "Escape") hideCursor();
      else return;
      event.preventDefault();
    });
    element.addEventListener("blur", hideCursor);
  }

  function drawAll(root) {
    for (const figure of root.querySelectorAll("[data-chart]")) draw(figure);
  }
  drawAll(document);
  document.addEventListener("htmx:load", (event) => drawAll(event.target));
  document.addEventListener("htmx:beforeCleanupElement", (event) => {
    const drawn = plots.get(event.target);
    plots.delete(event.target);
    drawn?.resizeObserver.disconnect();
    drawn?.plot.destroy();
  });
  // uPlot caches the colours of bars with their paths. A redraw creates both again.
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    for (const { plot } of plots.values()) plot.redraw();
  });
})();
