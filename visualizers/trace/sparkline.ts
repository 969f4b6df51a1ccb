/** A number over the steps, as a small line; a click goes to the step. */
import { h } from "@tilelab/shared/dom";
import { short } from "./format.ts";

const NS = "http://www.w3.org/2000/svg", WIDE = 300, HIGH = 46, PAD = 4;

export interface Options {
  last: number;
  at: number;
  title: string;
  go(step: number): void;
}

/** `points`: (step, value) wherever the value is set; it holds until the next. */
export function sparkline(points: readonly (readonly [number, number])[], { last, at, title, go }: Options): HTMLElement {
  const finite = points.filter(p => Number.isFinite(p[1]));
  const low = Math.min(...finite.map(p => p[1])), high = Math.max(...finite.map(p => p[1]));
  const x = (step: number): number => PAD + (step / Math.max(1, last)) * (WIDE - 2 * PAD);
  const y = (v: number): number => HIGH - PAD - (high > low ? (v - low) / (high - low) : 0.5) * (HIGH - 2 * PAD);
  let d = "", was = false;
  points.forEach(([step, v], k) => {
    const until = points[k + 1]?.[0] ?? last;
    if (!Number.isFinite(v)) {
      was = false;
      return;
    }
    d += `${was ? "L" : "M"}${x(step).toFixed(1)} ${y(v).toFixed(1)}L${x(until).toFixed(1)} ${y(v).toFixed(1)}`;
    was = true;
  });
  const svg = make("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, width: WIDE, height: HIGH, role: "img", "aria-label": title, class: "tl-spark" },
    make("path", { d: `M${x(at).toFixed(1)} 0V${HIGH}`, class: "tl-spark-at" }), make("path", { d, class: "tl-spark-line" }),
    ...points.filter(p => !Number.isFinite(p[1])).map(p => make("path", { d: `M${x(p[0]) - 3} ${HIGH / 2 - 3}l6 6m0 -6l-6 6`, class: "tl-spark-bad" })));
  svg.addEventListener("click", e => {
    const box = svg.getBoundingClientRect();
    go(Math.max(0, Math.min(last, Math.round(((((e as MouseEvent).clientX - box.left) * WIDE) / box.width - PAD) / (WIDE - 2 * PAD) * last))));
  });
  const ends = finite.length ? h("span", { class: "tl-ends" }, h("span", {}, short(high)), h("span", {}, short(low))) : null;
  const out = h("div", { class: "tl-sparkbox" });
  out.append(svg, ...(ends ? [ends] : []));
  return out;
}

function make(tag: string, attributes: Record<string, string | number>, ...children: Node[]): SVGElement {
  const el = document.createElementNS(NS, tag) as SVGElement;
  for (const [k, v] of Object.entries(attributes)) el.setAttribute(k, String(v));
  el.append(...children);
  return el;
}
