/** The resources view, live: choose a GPU, and see what a block asks for, what fits on an SM, the roofline, and where the kernel runs. */
import { css, threadColour } from "@tilelab/shared/colour";
import { choice, h } from "@tilelab/shared/dom";
import { MONO, SANS, THEME, type ResourceGpu, type ResourceKernel, type ResourceUse, type ResourceViewRecord } from "@tilelab/shared/generated";
import { viewOf, type Model, type RenderProps } from "@tilelab/shared/view";
import { langOf, word, type Lang } from "@tilelab/shared/words";
import base from "../layout/style.css";
import { amount, duration, place, short } from "./model.ts";
import style from "./style.css";

const SVG = "http://www.w3.org/2000/svg", WIDE = 380, TALL = 230, LEFT = 12;

function s(tag: string, props: Record<string, string | number>, text = ""): SVGElement {
  const el = document.createElementNS(SVG, tag);
  for (const [k, v] of Object.entries(props)) el.setAttribute(k, String(v));
  el.textContent = text;
  return el;
}

class ResourcesView {
  private lang: Lang;
  private at: number;
  private readonly status = h("div", { role: "status", "aria-live": "polite" });
  private readonly root = h("section", { class: "tl-view tl-resources" });

  constructor(private readonly view: ResourceViewRecord, private readonly model: Model, el: HTMLElement) {
    this.lang = langOf(view.lang);
    this.at = view.data.selected;
    this.root.style.fontFamily = SANS;
    this.root.style.setProperty("--tl-mono", MONO);
    el.append(h("style", {}, THEME + base + style), this.root);
    this.build();
  }

  private t(key: string, fill: Record<string, unknown> = {}): string {
    return word(key, this.lang, fill);
  }

  private choose(k: number): void {
    this.at = k;
    this.build();
    this.model.set("selection", { gpu: this.view.data.gpus[k]!.name });
    this.model.save_changes();
  }

  private build(): void {
    const { data } = this.view, g = data.gpus[this.at]!;
    this.root.lang = this.lang === "zh" ? "zh-CN" : "en";
    const line = `${g.name} (${g.target}) · ${data.lowered ? this.t("lowered_for", { target: data.target }) : data.target}`;
    this.root.setAttribute("aria-label", `${data.kernel}: ${line}`);
    const names = data.gpus.map((o, k) => [String(k), o.name] as const);
    const speak = h("button", { type: "button", class: "tl-lang tl-end", onclick: () => {
      this.lang = this.lang === "zh" ? "en" : "zh";
      this.build();
      this.root.querySelector<HTMLElement>(".tl-lang")?.focus();
    } }, this.t("language"));
    this.say(g);
    this.root.replaceChildren(
      h("header", {}, h("h3", {}, data.kernel), h("span", { class: "tl-soft" }, line)), h("p", { class: "tl-soft" }, this.t("source_of", { source: g.source })),
      ...g.findings.map(f => h("p", { class: "tl-bad" }, `${String(f.code)}  ${String(f.message)}`)),
      h("div", { class: "tl-bar" }, choice(this.t("gpu"), names, String(this.at), v => this.choose(Number(v))), speak), this.status,
      h("div", { class: "tl-panels" }, h("div", { class: "tl-side" }, ...g.kernels.map(k => this.kernel(k, g.kernels.length > 1))), this.roofline(g)),
      this.matrix(), h("div", { class: "tl-hint" }, this.t("resources_hint"))
    );
  }

  private say(g: ResourceGpu): void {
    const k = g.kernels[0];
    this.status.dataset.gpu = g.name;
    this.status.dataset.runs = String(g.runs);
    this.status.dataset.blocks = String(k?.blocks ?? 0);
    const parts = [h("b", {}, g.name), h("i", { class: g.runs ? "tl-good" : "tl-bad" }, this.t(g.runs ? "runs" : "runs_not"))];
    if (k) parts.push(h("i", {}, this.held(k)));
    this.status.replaceChildren(...parts);
  }

  private held(k: ResourceKernel): string {
    if (!k.blocks) return this.t("cannot_run");
    const names = k.limits.filter(x => x.binds).map(x => this.t(x.key)).join(", ");
    const percent = Number((100 * k.occupancy).toPrecision(3));
    return `${this.t("occupancy_of", { blocks: k.blocks, warps: k.warps, most: k.warps_most, percent })} · ${this.t("bound_by", { names })}`;
  }

  private use(u: ResourceUse): HTMLElement {
    const part = u.used && u.limit ? Math.min(1, u.used / u.limit) : 0, over = !!u.used && !!u.limit && u.used > u.limit;
    const text = `${u.used === null ? this.t("unknown") : amount(u.used, u.unit)} / ${u.limit === null ? this.t("no_limit") : amount(u.limit, u.unit)}`;
    return h("tr", {}, h("th", { scope: "row" }, this.t(u.key)), h("td", {}, h("span", { class: "tl-meter", role: "img", "aria-label": text },
      h("span", { class: over ? "tl-over-limit" : "", style: `width:${part ? Math.max(1.5, 100 * part) : 0}%` }))), h("td", { class: over ? "tl-bad" : "" }, text));
  }

  private kernel(k: ResourceKernel, named: boolean): HTMLElement {
    const warps = Array.from({ length: k.warps_most }, (_, w) => {
      const block = Math.floor(w / Math.max(1, k.warps_of_block));
      return h("i", w < k.warps ? { style: `background:${css(threadColour((block % 8) * 32 + 14))}` } : {});
    });
    const limits = k.limits.map(x => h("li", { class: x.binds ? "tl-bad" : "" }, this.t("allows", { name: this.t(x.key), count: x.blocks })));
    const waves = Number(k.waves.toPrecision(3));
    const notes = [k.registers_known ? "" : this.t("registers_unknown"), k.waves ? this.t("waves", { blocks: k.grid.toLocaleString("en"), waves }) : ""].filter(Boolean);
    return h("div", { class: "tl-panel", "data-panel": "budget" },
      h("h4", {}, named ? k.name : this.t("budget_title"), h("span", {}, this.t("budget_hint"))), h("div", { class: "tl-wide" }, h("table", {}, h("tbody", {}, ...k.uses.map(u => this.use(u))))),
      h("h4", { style: "margin-top:16px" }, this.t("occupancy"), h("span", {}, this.held(k))),
      h("div", { class: "tl-panels" }, h("div", { class: "tl-warps", role: "img", "aria-label": `${this.t("occupancy_hint")}: ${this.held(k)}` }, ...warps),
        h("ul", {}, ...limits, ...notes.map(n => h("li", { class: "tl-soft" }, n)))));
  }

  private roofline(g: ResourceGpu): HTMLElement {
    const r = g.roofline, { data } = this.view, panel = h("div", { class: "tl-panel", "data-panel": "roofline" }, h("h4", {}, this.t("roofline"), h("span", {}, this.t("roofline_hint"))));
    if (!r) {
      panel.append(h("p", { class: "tl-soft" }, data.flops ? this.t("no_dtype", { gpu: g.name, dtype: data.dtype }) : this.t("no_roofline")));
      return panel;
    }
    const at = (intensity: number, rate: number): [number, number] => {
      const [x, y] = place(r, intensity, rate);
      return [LEFT + x * WIDE, 8 + TALL - y * TALL];
    };
    const svg = s("svg", { viewBox: `0 0 ${WIDE + 40} ${TALL + 44}`, width: WIDE + 40, height: TALL + 44, role: "img", "aria-label": this.t("roofline") });
    for (const x of [0.1, 1, 10, 100, 1000, 10000]) {
      const [left, low] = at(x, 0);
      svg.append(s("path", { d: `M${left} ${low}V8`, class: "tl-rule" }), s("text", { x: left, y: low + 14, class: "tl-mid" }, String(x)));
    }
    const [x0, y0] = at(0.1, 0), [x1, y1] = at(r.ridge, r.peak), [x2] = at(1e4, r.peak);
    svg.append(s("path", { d: `M${x0} ${y0}L${x1} ${y1}H${x2}`, class: "tl-roof" }), s("text", { x: x1 + 4, y: y1 - 6 }, `${short(r.peak, "FLOP/s")} ${r.dtype}`),
      s("text", { x: x0 + 44, y: y0 - 8 }, short(r.bandwidth, "B/s")), s("text", { x: x2, y: y0 + 30, class: "tl-last" }, this.t("intensity")));
    const least = r.points.find(p => p.key === "point_least")?.seconds ?? 0;
    const list = r.points.map((p, k) => {
      const fill = css(threadColour([0, 2, 5][k % 3]! * 32 + 24)), [cx, cy] = at(p.intensity, p.rate), percent = p.seconds ? Number(((100 * least) / p.seconds).toPrecision(3)) : 0;
      svg.append(s("circle", { cx, cy, r: 5, fill }));
      const end = p.key === "point_measured" ? this.t("time_measured", { time: duration(p.seconds), percent }) + (p.label ? ` (${p.label})` : "")
        : `${this.t("time_least", { time: duration(p.seconds) })}, ${this.t(p.bound)}`;
      return h("li", {}, h("span", { class: "tl-swatch", style: `background:${fill}` }),
        `${this.t(p.key)}: ${Number(p.intensity.toPrecision(3))} ${this.t("intensity")}, ${short(p.rate, "FLOP/s")}, ${end}`);
    });
    const share = data.matrix_share === null ? null : h("li", { class: "tl-soft" }, this.t("tensor_cores", { percent: Number((100 * data.matrix_share).toPrecision(3)) }));
    panel.append(svg, h("ul", {}, ...list, share));
    return panel;
  }

  /** Every GPU, and whether the kernel runs there: the accessible table as well. */
  private matrix(): HTMLElement {
    const { gpus } = this.view.data, keys = gpus[this.at]!.kernels[0]?.uses.map(u => u.key) ?? [];
    const head = [this.t("gpu"), this.t("runs_title"), this.t("change"), ...keys.map(k => this.t(k)), this.t("occupancy")].map(x => h("th", { scope: "col" }, x));
    const rows = gpus.map((g, k) => {
      const kernel = g.kernels[0], uses = new Map(kernel?.uses.map(u => [u.key, u]));
      const cell = (u: ResourceUse | undefined): string => (u ? `${u.used === null ? "?" : amount(u.used, u.unit)} / ${u.limit === null ? "–" : amount(u.limit, u.unit)}` : "–");
      const pick = h("button", { type: "button", "aria-pressed": String(k === this.at), onclick: () => {
        this.choose(k);
        this.root.querySelectorAll<HTMLElement>("tbody button")[k]?.focus();
      }, onkeydown: (e: KeyboardEvent) => {
        const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
        if (!step) return;
        e.preventDefault();
        this.root.querySelectorAll<HTMLElement>("tbody button")[k + step]?.focus();
      } }, g.name);
      return h("tr", { "data-gpu": g.name }, h("td", {}, pick), h("td", { class: g.runs ? "tl-good" : "tl-bad" }, `${g.runs ? "✓" : "✗"} ${this.t(g.runs ? "runs" : "runs_not")}`),
        h("td", {}, g.change + (g.tried ? ` (${this.t("tried")})` : "")), ...keys.map(key => h("td", {}, cell(uses.get(key)))),
        h("td", {}, kernel ? `${Number((100 * kernel.occupancy).toPrecision(3))}%` : "–"));
    });
    return h("div", { class: "tl-panel tl-runs", "data-panel": "runs" }, h("h4", {}, this.t("runs_title"), h("span", {}, this.t("runs_hint"))),
      h("div", { class: "tl-wide" }, h("table", {}, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...rows))));
  }
}

function render({ model, el }: RenderProps): () => void {
  const draw = (): void => {
    el.replaceChildren();
    try {
      new ResourcesView(viewOf<ResourceViewRecord>(model, "resources"), model, el);
    } catch (e) {
      el.replaceChildren(h("p", { role: "alert" }, `TileLab: ${e instanceof Error ? e.message : String(e)}`));
    }
  };
  draw();
  model.on("change:view", draw);
  return () => model.off("change:view", draw);
}

export default { render };
