// Adds a slider to the curve of latency by prefix-cache hit rate. The slider moves a second mark along
// the curve, and the text beside it shows the latencies at that hit rate. The page is complete without
// this script.
for (const cliff of document.querySelectorAll(".operators-cliff")) {
  const { left, right, low, target } = Object.fromEntries(
    ["left", "right", "low", "target"].map((name) => [name, Number(cliff.dataset[name])]),
  );
  const curve = JSON.parse(cliff.dataset.curve);
  const svg = cliff.querySelector("svg");
  const control = cliff.querySelector(".operators-cliff-slider");
  const [slider, output] = [control.querySelector("input"), control.querySelector("output")];
  const grid = svg.querySelector(".grid");
  const mark = document.createElementNS("http://www.w3.org/2000/svg", "line");
  mark.setAttribute("class", "operators-cliff-mark");
  mark.setAttribute("y1", grid.getAttribute("y1"));
  mark.setAttribute("y2", grid.getAttribute("y2"));
  svg.append(mark);
  const nearest = (rate) =>
    curve.reduce((best, point) => (Math.abs(point[0] - rate) < Math.abs(best[0] - rate) ? point : best));
  const number = new Intl.NumberFormat(document.documentElement.lang, { maximumFractionDigits: 1 });
  const show = () => {
    const rate = Number(slider.value) / 100;
    const x = left + Math.max(0, (rate - low) / (1 - low)) * (right - left);
    mark.setAttribute("x1", x);
    mark.setAttribute("x2", x);
    const [, p50, p95, p99] = nearest(rate);
    const times = { p50, p95, p99 };
    output.textContent =
      `${number.format(rate * 100)}%: ` +
      (p99 === null
        ? output.dataset.overloaded
        : Object.entries(times).map(([name, ms]) => `${name} ${number.format(ms)} ms`).join(", "));
    output.classList.toggle("operators-over", p99 === null || p99 > target);
  };
  control.hidden = false;
  slider.addEventListener("input", show);
  show();
}
