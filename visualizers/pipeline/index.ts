/** The pipeline view, live: steps × lanes, versions of the buffers, other depths beside it; one iteration lights up everywhere. */
import { threadColour, watchTheme, type Rgb } from "@tilelab/shared/colour";
import { choice, h } from "@tilelab/shared/dom";
import { MONO, SANS, THEME, type PipelineLoop, type PipelinePlanRecord, type PipelineViewRecord } from "@tilelab/shared/generated";
import { Grid, type GridSource } from "@tilelab/shared/grid";
import { oncePerFrame, viewOf, type Model, type RenderProps } from "@tilelab/shared/view";
import { langOf, word, type Lang } from "@tilelab/shared/words";
import base from "../layout/style.css";
import { laneText, loopText, phaseOf, rows, size, stepCells, versionCells, versionRows, type Cell } from "./model.ts";
import style from "./style.css";

interface Panel {
  grid: Grid;
  cells: Cell[];
}

const colour = (c: Cell): Rgb => threadColour((c.iteration % 8) * 32 + (c.pale ? 1 : 14));

class PipelineView {
  private lang: Lang;
  private loop: PipelineLoop;
  private plan: PipelinePlanRecord;
  private panels = new Map<string, Panel>();
  private now: { iteration: number; step: number; statement: number } | null = null;
  private pinned = false;
  private built = 0;
  private left = 120; // pixels for the names of rows, the same in both grids
  private readonly status = h("div", { role: "status", "aria-live": "polite" });
  private readonly root = h("section", { class: "tl-view tl-pipeline" });
  private readonly tell = oncePerFrame(() => this.share());

  constructor(private readonly view: PipelineViewRecord, private readonly model: Model, el: HTMLElement) {
    this.lang = langOf(view.lang);
    this.loop = view.data.loops[view.data.selected]!;
    this.plan = this.loop.plans[0]!;
    this.root.style.fontFamily = SANS;
    this.root.style.setProperty("--tl-mono", MONO);
    el.append(h("style", {}, THEME + base + style), this.root);
    this.build();
  }

  repaint(): void {
    for (const p of this.panels.values()) p.grid.repaint();
  }

  resize(): void {
    const width = this.root.clientWidth;
    if (width && Math.abs(width - this.built) > 40) this.build();
  }

  private t(key: string, fill: Record<string, unknown> = {}): string {
    return word(key, this.lang, fill);
  }

  private headline(): string {
    const { loop, plan } = this, n = loop.iterations, ahead = plan.overlap;
    return [
      n ? this.t("iterations_of", { count: n }) : this.t("iterations_unknown"), plan.num_stages && plan.basis !== "hand-roles" ? this.t("stages_of", { count: plan.num_stages }) : "",
      this.t(`basis_${plan.basis}`), ahead > 1 ? this.t("ahead", { count: ahead }) : this.t(ahead ? "ahead_one" : "ahead_none"),
      n > plan.shown || !n ? this.t("iterations_shown", { count: plan.shown }) : ""
    ].filter(Boolean).join(" · ");
  }

  private build(): void {
    const { loop, plan } = this, { data } = this.view;
    this.panels.clear();
    this.built = this.root.clientWidth;
    const inner = Math.max(260, (this.built || 1100) - 38);
    this.root.lang = this.lang === "zh" ? "zh-CN" : "en";
    this.root.setAttribute("aria-label", `${data.kernel}, ${loop.name}: ${this.headline()}`);
    const limit = data.limit_bytes ? ` · ${this.t("limit_of", { gpu: data.gpu })}: ${size(data.limit_bytes)} · ${this.t(plan.fits ? "it_fits" : "too_big")}` : "";
    const memory = plan.kernel_bytes ? h("p", { class: plan.fits ? "tl-soft" : "tl-bad" }, `${this.t("smem_kernel")}: ${size(plan.kernel_bytes)}${limit}`) : null;
    const order = rows(plan), pairs = versionRows(plan);
    this.left = 14 + 6.4 * Math.max(14, ...plan.statements.map(s => `${laneText(plan.lanes[s.lane]!, this.lang)} · ${s.text}`.length));
    const steps = this.panel("steps", this.t("steps_title"), this.t("steps_hint"), stepCells(plan), order.length, inner, i => {
      const s = plan.statements[order[i]!]!;
      return `${laneText(plan.lanes[s.lane]!, this.lang)} · ${s.text}`;
    }, { bands: plan.phases.filter(p => p.end > p.first).map(p => ({ first: p.first, end: p.end, name: this.t(p.key), shaded: p.key === "steady" })) });
    const versions = pairs.length ? this.panel("versions", this.t("versions_title"), this.t("versions_hint"), versionCells(plan), pairs.length, inner,
      i => `${plan.buffers[pairs[i]![0]]!.name}[${pairs[i]![1]}] ${size(plan.buffers[pairs[i]![0]]!.bytes)}`,
      { bars: { name: `${this.t("alive")} ≤ ${size(Math.max(...plan.alive, 0))}`, values: plan.alive } }) : null;
    this.root.replaceChildren(
      h("header", {}, h("h3", {}, loopText(loop, plan)), h("span", { class: "tl-soft" }, this.headline())),
      ...[memory].filter(m => m !== null), ...plan.findings.map(f => h("p", { class: "tl-bad" }, `${String(f.code)}  ${String(f.message)}`)),
      this.bar(), this.status, h("div", { class: "tl-side" }, steps, versions), this.compare() ?? "", this.table(), h("div", { class: "tl-hint" }, this.t("pipeline_hint"))
    );
    this.update();
  }

  private bar(): HTMLElement {
    const { loops } = this.view.data, bar = h("div", { class: "tl-bar" });
    if (loops.length > 1) {
      bar.append(choice(this.t("loop_of"), loops.map((l, k) => [String(k), `${l.name} (${l.line})`] as const), String(loops.indexOf(this.loop)), v => {
        this.loop = loops[Number(v)]!;
        this.choose(0);
      }));
    }
    const names = this.loop.plans.map((p, k) => [String(k), k ? this.t("stages_of", { count: p.num_stages }) : this.t(`basis_${p.basis}`)] as const);
    if (names.length > 1) bar.append(choice(this.t("plan_of"), names, String(this.loop.plans.indexOf(this.plan)), v => this.choose(Number(v))));
    bar.append(h("button", { type: "button", class: "tl-lang tl-end", onclick: () => {
      this.lang = this.lang === "zh" ? "en" : "zh";
      this.build();
      this.root.querySelector<HTMLElement>(".tl-lang")?.focus();
    } }, this.t("language")));
    return bar;
  }

  private choose(k: number): void {
    this.plan = this.loop.plans[k]!;
    this.now = null;
    this.pinned = false;
    this.build();
  }

  private panel(name: string, title: string, hint: string, cells: Cell[], count: number, inner: number, rowName: (i: number) => string,
    more: Pick<GridSource, "bands" | "bars">): HTMLElement {
    const left = Math.min(this.left, inner * 0.45);
    const at = new Map(cells.map((c, k) => [c.row * this.plan.steps + c.step, k]));
    const source: GridSource = {
      rows: count, columns: Math.max(1, this.plan.steps), item: (i, j) => at.get(i * this.plan.steps + j) ?? -1, cell: k => [cells[k]!.row, cells[k]!.step],
      colour: k => colour(cells[k]!), labels: k => [String(cells[k]!.iteration)], rowName, left, size: [38, 24], ...more
    };
    const hover = (k: number): void => {
      if (this.pinned) return;
      this.point(name, k);
    };
    const pin = (k: number): void => {
      if (k < 0) return;
      const before = JSON.stringify(this.now);
      this.point(name, k);
      this.pinned = !(this.pinned && before === JSON.stringify(this.now));
      this.update();
    };
    const unpin = (): void => {
      this.pinned = false;
      this.now = null;
      this.update();
    };
    const grid = new Grid(source, { hover, pin, unpin }, `${title}. ${this.t("pipeline_hint")}`, [inner, 24 * count + 30 + (more.bands ? 18 : 0) + (more.bars ? 34 : 0)]);
    this.panels.set(name, { grid, cells });
    requestAnimationFrame(() => grid.repaint());
    return h("div", { class: "tl-panel", "data-panel": name }, h("h4", {}, title, h("span", {}, hint)), grid.element);
  }

  private point(panel: string, k: number): void {
    const c = this.panels.get(panel)!.cells[k]!;
    this.now = { iteration: c.iteration, step: c.step, statement: panel === "steps" ? rows(this.plan)[c.row]! : -1 };
    this.update();
  }

  private update(): void {
    const now = this.now;
    for (const { grid, cells } of this.panels.values()) {
      const kin = new Set<number>(), focus = new Set<number>();
      if (now) cells.forEach((c, k) => {
        if (c.iteration === now.iteration) kin.add(k);
        if (c.iteration === now.iteration && c.step === now.step) focus.add(k);
      });
      grid.mark({ kin, focus });
    }
    this.say();
    this.tell();
  }

  private say(): void {
    const { now, status, plan } = this;
    for (const name of Object.keys(status.dataset)) delete status.dataset[name];
    if (!now) return status.replaceChildren(h("i", {}, this.t("pipeline_hint")));
    status.dataset.iteration = String(now.iteration);
    status.dataset.step = String(now.step);
    status.dataset.phase = phaseOf(plan, now.step);
    const parts: Node[] = [];
    const add = (key: string, value: string | number): number => parts.push(h("i", {}, this.t(key)), h("b", {}, String(value)));
    add("step", now.step);
    parts.push(h("i", {}, this.t(phaseOf(plan, now.step))));
    add("iteration", now.iteration);
    if (now.statement >= 0) {
      const s = plan.statements[now.statement]!;
      status.dataset.statement = s.text;
      add("statement", s.text);
      if (s.line) add("line", s.line);
      if (s.asynchronous) parts.push(h("i", {}, this.t("asynchronous")));
    }
    add("alive", size(plan.alive[now.step] ?? 0));
    if (this.pinned) {
      status.dataset.pinned = "true";
      parts.push(h("span", { class: "tl-pin" }, `● ${this.t("pinned")}`));
    }
    status.replaceChildren(...parts);
  }

  /** The other depths: a small picture each, and what it costs. */
  private compare(): HTMLElement | null {
    const plans = this.loop.plans.slice(1);
    if (!plans.length) return null;
    const one = (p: PipelinePlanRecord, k: number): HTMLElement => {
      const cells = stepCells(p).map(c => h("i", { style: `grid-area:${c.row + 1}/${c.step + 1};background:rgb(${colour(c).join(",")})` }));
      const text = [this.t("stages_of", { count: p.num_stages }), `${this.t("overlap")}: ${p.overlap}`];
      return h("button", { type: "button", class: "tl-depth", "aria-pressed": String(p === this.plan), onclick: () => this.choose(k + 1) },
        h("b", {}, text[0]!), h("span", { class: "tl-soft" }, text[1]!), h("span", { class: p.fits ? "tl-good" : "tl-bad" }, `${size(p.kernel_bytes)} · ${this.t(p.fits ? "it_fits" : "too_big")}`),
        h("span", { class: "tl-mini", "aria-hidden": "true" }, ...cells));
    };
    return h("div", { class: "tl-panel", "data-panel": "compare" }, h("h4", {}, this.t("compare_title"), h("span", {}, this.t("compare_hint"))), h("div", { class: "tl-panels" }, ...plans.map(one)));
  }

  private table(): HTMLElement {
    const { plan } = this;
    const head = ["step", "phase", "lane", "statement", "iteration", "line"].map(k => h("th", { scope: "col" }, this.t(k)));
    const body = plan.cells.map(c => {
      const s = plan.statements[c.statement]!;
      const row = [c.step, this.t(phaseOf(plan, c.step)), laneText(plan.lanes[s.lane]!, this.lang), s.text, c.iteration, s.line || ""];
      return h("tr", {}, ...row.map(v => h("td", {}, String(v))));
    });
    return h("details", { class: "tl-table" }, h("summary", {}, this.t("show_table")),
      h("div", { class: "tl-scroll", tabindex: 0 }, h("table", {}, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...body))));
  }

  /** Lets Python know what is selected. */
  private share(): void {
    this.model.set("selection", { loop: this.loop.name, ...(this.now ?? {}), pinned: this.pinned });
    this.model.save_changes();
  }
}

function render({ model, el }: RenderProps): () => void {
  let view: PipelineView | null = null;
  const draw = (): void => {
    el.replaceChildren();
    try {
      view = new PipelineView(viewOf<PipelineViewRecord>(model, "pipeline"), model, el);
    } catch (e) {
      el.replaceChildren(h("p", { role: "alert" }, `TileLab: ${e instanceof Error ? e.message : String(e)}`));
    }
  };
  draw();
  const stop = watchTheme(() => view?.repaint());
  const sizes = new ResizeObserver(() => view?.resize());
  sizes.observe(el);
  model.on("change:view", draw);
  return () => {
    stop();
    sizes.disconnect();
    model.off("change:view", draw);
  };
}

export default { render };
