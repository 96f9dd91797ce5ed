// Draws a job's time series with uPlot: `name@temperature=label` of each line, separated by bars.
const plots = [];

function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// Rows of uPlot: the axis first, then each series, null where it was not measured.
export function rows(axis, lines) {
  const at = [...new Set(lines.flatMap((line) => line.points.map(([x]) => x)))].sort((a, b) => a - b);
  return [at, ...lines.map((line) => {
    const known = new Map(line.points);
    return at.map((x) => known.get(x) ?? null);
  })];
}

// Wilson's score interval of a share p of n, with 95 % confidence.
export function wilson(p, n) {
  const z = 1.959963985, z2 = (z * z) / n;
  const middle = (p + z2 / 2) / (1 + z2), half = (z * Math.sqrt((p * (1 - p)) / n + z2 / (4 * n))) / (1 + z2);
  return [Math.max(0, middle - half), Math.min(1, middle + half)];
}

// The edges of a line's band, as lines of their own that nobody sees.
function edges(measured) {
  return measured.flatMap((line, i) => line.band?.length
    ? [1, 0].map((side) => ({ of: i, side, points: line.band.map(([x, interval]) => [x, interval[side]]) })) : []);
}

export function draw(figure, axis, lines) {
  const place = figure.querySelector("[role=img]");
  plots.find((plot) => plot.place === place)?.drawn.destroy();
  const old = plots.findIndex((plot) => plot.place === place);
  if (old >= 0) plots.splice(old, 1);
  place.textContent = "";
  const measured = lines.filter((line) => line.points.length > 0);
  if (measured.length === 0) {
    place.textContent = "not measured yet";
    return;
  }
  const share = figure.dataset.range === "share";
  const axes = (values) => ({
    stroke: color("--soft"), grid: { stroke: color("--line"), width: 1 }, ticks: { show: false }, values,
    font: "11px system-ui",
  });
  const percent = (_, all) => all.map((v) => `${Math.round(100 * v)} %`);
  const banded = edges(measured);
  const drawn = new uPlot({
    width: place.clientWidth || 320, height: 190, legend: { live: true },
    scales: { x: { time: false }, y: share ? { range: [0, 1] } : {} },
    axes: [axes(), { ...axes(share ? percent : undefined), size: 48 }],
    series: [{ label: axis }, ...measured.map((line, i) => ({
      label: line.label, stroke: color(`--line${i % 6}`), width: 2, spanGaps: true,
      points: { size: 5, fill: color(`--line${i % 6}`) },
      value: (_, v) => (v === null ? "–" : share ? `${(100 * v).toFixed(1)} %` : v.toPrecision(3)),
    })), ...banded.map(() => ({ stroke: "transparent", points: { show: false }, spanGaps: true, class: "hidden-series" }))],
    bands: banded.filter((edge) => edge.side === 1).map((edge) => {
      const at = measured.length + 1 + banded.indexOf(edge);
      return { series: [at, at + 1], fill: `${color(`--line${edge.of % 6}`)}2e` };
    }),
  }, rows(axis, [...measured, ...banded]), place);
  plots.push({ place, drawn, again: () => draw(figure, axis, lines) });
}

export async function refresh(section) {
  const answer = await fetch(section.dataset.metrics);
  if (!answer.ok) return;
  const metrics = (await answer.json()).data;
  for (const figure of section.querySelectorAll("[data-plot]")) {
    const lines = figure.dataset.plot.split("|").map((text) => {
      const [series, label] = text.split("=");
      const [name, temperature] = series.split("@");
      const wanted = temperature === undefined ? null : Number(temperature);
      const points = metrics
        .filter((m) => m.name === name && (wanted === null ? m.temperature == null : Math.abs(m.temperature - wanted) < 1e-6))
        .map((m) => [m.iteration, m.value]);
      const line = { label, points };
      if (name === "eval.success") {
        const played = new Map(metrics
          .filter((m) => m.name === "eval.episodes" && m.temperature != null && Math.abs(m.temperature - wanted) < 1e-6)
          .map((m) => [m.iteration, m.value]));
        line.band = points.filter(([x]) => played.get(x) > 0).map(([x, p]) => [x, wilson(p, played.get(x))]);
      }
      return line;
    });
    draw(figure, "iteration", lines);
  }
}

// Where each iteration of a job lies on an axis: what was spent up to its evaluation.
function spent(metrics, by) {
  const last = Math.max(0, ...metrics.map((m) => m.iteration));
  const value = (name, i) => metrics.find((m) => m.name === name && m.iteration === i)?.value;
  const names = {
    optimizer_steps: ["learn.steps"], tokens: ["tokens.generated", "tokens.prompt", "tokens.trained"], seconds: ["time.iteration"],
  }[by];
  const at = [];
  let sum = 0, steps = 0;
  for (let i = 0; i <= last; i += 1) {
    steps = value("collect.env_steps", i) ?? steps;
    for (const name of names ?? []) sum += value(name, i) ?? 0;
    at.push(by === "iteration" ? i : by === "env_steps" ? steps : sum);
  }
  return at;
}

export async function compare(figure) {
  const jobs = [...figure.querySelectorAll("[data-job]")];
  const lines = await Promise.all(jobs.map(async ({ dataset }) => {
    const [job, all] = await Promise.all(
      [`/v1/jobs/${dataset.job}`, `/v1/jobs/${dataset.job}/metrics`].map(async (url) => (await fetch(url)).json()));
    const at = spent(all.data, figure.dataset.by);
    const quoted = figure.dataset.compare === "eval.success" ? job.spec.evaluation.temperature : null;
    const points = all.data
      .filter((m) => m.name === figure.dataset.compare && (quoted === null || Math.abs(m.temperature - quoted) < 1e-6))
      .map((m) => [at[m.iteration], m.value]);
    return { label: dataset.label, points };
  }));
  draw(figure, figure.dataset.by.replace("_", " "), lines);
}

let resizing;
addEventListener("resize", () => {
  clearTimeout(resizing);
  resizing = setTimeout(() => plots.forEach(({ place, drawn }) => drawn.setSize({ width: place.clientWidth, height: 190 })), 100);
});
export function redraw() {
  [...plots].forEach((plot) => plot.again());
}
