/** The layout view, live: an anywidget module (`export default { render }`) that a page without a kernel can load as well. */
import { bankColour, css, threadColour, watchTheme } from "@tilelab/shared/colour";
import { choice, h } from "@tilelab/shared/dom";
import { MONO, SANS, THEME, type LayoutRecord, type ViewRecord } from "@tilelab/shared/generated";
import { Grid, type GridSource } from "@tilelab/shared/grid";
import { oncePerFrame, viewOf, type Model, type RenderProps } from "@tilelab/shared/view";
import { factText, langOf, word, type Lang } from "@tilelab/shared/words";
import { marks, type Place } from "./marks.ts";
import { LayoutModel, NOTHING, Slice, type Selection } from "./model.ts";
import * as panels from "./panels.ts";
import style from "./style.css";
import { table } from "./table.ts";

class LayoutView {
  private lang: Lang;
  private record: LayoutRecord;
  private m: LayoutModel;
  private slice: Slice;
  private by: panels.ColourBy;
  private axes: number[];
  private at: number[];
  private now: Selection = NOTHING;
  private pinned = false;
  private shownThread = 0;
  private partner: LayoutModel | null = null; // the shared buffer through which the fragment is shown
  private frame = -1;
  private built = 0; // width it was laid out for, in pixels
  private grids = new Map<Place, Grid>();
  private registersTitle: ChildNode | null = null;
  private readonly status = h("div", { role: "status", "aria-live": "polite" });
  private readonly root = h("section", { class: "tl-view" });
  private readonly tell = oncePerFrame(() => this.share());

  constructor(private readonly view: ViewRecord, private readonly model: Model, el: HTMLElement) {
    this.lang = langOf(view.lang);
    this.root.style.fontFamily = SANS;
    this.root.style.setProperty("--tl-mono", MONO);
    el.append(h("style", {}, THEME + style), this.root);
    [this.record, this.m, this.slice, this.by, this.axes, this.at] = this.open(view.data.selected);
    this.begin();
    this.build();
  }

  repaint(): void {
    for (const grid of this.grids.values()) grid.repaint();
  }

  /** Lays the panels out again where the room for them has changed. */
  resize(): void {
    const width = this.root.clientWidth;
    if (width && Math.abs(width - this.built) > 40) this.build();
  }

  private open(which: number): [LayoutRecord, LayoutModel, Slice, panels.ColourBy, number[], number[]] {
    const record = this.view.data.layouts[which]!;
    const m = new LayoutModel(record);
    const by = m.value ? "value" : m.thread ? "thread" : "bank";
    return [record, m, new Slice(record.shape, record.axes, record.at), by, [...record.axes], [...record.at]];
  }

  private switchTo(which: number): void {
    [this.record, this.m, this.slice, this.by, this.axes, this.at] = this.open(which);
    this.now = NOTHING;
    this.pinned = false;
    this.begin();
    this.build();
  }

  /** The thread of the first element, the last step, and the first shared buffer of the same shape. */
  private begin(): void {
    this.shownThread = Math.max(0, this.m.owners(0)[0]?.thread ?? 0);
    this.frame = this.m.steps.length - 1;
    this.partner = this.partners()[0]?.[1] ?? null;
  }

  private partners(): [string, LayoutModel][] {
    const { layouts, through } = this.view.data;
    return (through ?? []).filter(p => layouts[p.fragment] === this.record).map(p => [layouts[p.shared]!.name, new LayoutModel(layouts[p.shared]!)]);
  }

  // ----------------------------------------------------------------------------------------------- building
  private t(key: string, fill: Record<string, unknown> = {}): string {
    return word(key, this.lang, fill);
  }

  private build(): void {
    const r = this.record;
    this.grids.clear();
    this.root.lang = this.lang === "zh" ? "zh-CN" : "en";
    this.root.setAttribute("aria-label", `${r.name}: ${this.headline()}`);
    this.root.replaceChildren(
      h("header", {}, h("h3", {}, r.name), h("span", { class: "tl-soft" }, this.headline())),
      h("dl", {}, ...r.formula.flatMap(([name, text]) => [h("dt", {}, this.t(name!)), h("dd", {}, text!)])),
      ...r.findings.map(f => h("p", { class: "tl-bad" }, `${String(f.code)}  ${String(f.message)}`)),
      this.bar(), this.status, this.panels(), table(this.m, this.slice, this.lang), h("div", { class: "tl-hint" }, this.t("hint"))
    );
    this.update();
  }

  private headline(): string {
    const r = this.record;
    const parts = [`${r.dtype} ${this.t(r.layout)}`.trim(), r.shape.join("×") || "scalar"];
    if (this.m.thread) parts.push(`${r.threads} ${this.t("threads")} × ${r.registers} ${this.t("registers")}`);
    return [...parts, ...r.facts.map(f => factText(f, this.lang))].join(" · ");
  }

  private bar(): HTMLElement {
    const { layouts } = this.view.data, r = this.record;
    const bar = h("div", { class: "tl-bar" });
    if (layouts.length > 1) {
      const names = layouts.map((l, k) => [String(k), l.name] as const);
      bar.append(choice(this.t("buffer"), names, String(layouts.indexOf(r)), v => this.switchTo(Number(v))));
    }
    const ways: panels.ColourBy[] = [...(this.m.value ? ["value" as const] : []), ...(this.m.thread ? (["thread", "register"] as const) : ["bank" as const])];
    if (ways.length > 1) {
      bar.append(choice(this.t("colour_by"), ways.map(w => [w, this.t(w)] as const), this.by, v => {
        this.by = v as panels.ColourBy;
        this.build();
        this.root.querySelector<HTMLElement>(`select[aria-label="${this.t("colour_by")}"]`)?.focus();
      }));
    }
    const partners = this.partners();
    if (partners.length > 1) {
      const at = partners.findIndex(([, p]) => p.record === this.partner?.record);
      bar.append(choice(this.t("through_pick"), partners.map(([name], k) => [String(k), name] as const), String(at), v => {
        this.partner = partners[Number(v)]![1];
        this.build();
      }));
    }
    if (this.m.steps.length > 1) bar.append(this.stepper());
    if (r.shape.length > 2) this.axesChoices(bar);
    const zoom = (sign: string, key: string, steps: number): HTMLElement =>
      h("button", { type: "button", "aria-label": this.t(key), title: this.t(key), onclick: () => this.zoom(steps) }, sign);
    bar.append(
      h("span", { class: "tl-group tl-end" }, zoom("+", "zoom_in", 1), zoom("−", "zoom_out", -1), zoom(this.t("fit"), "fit", 0)),
      h("button", { type: "button", class: "tl-lang", onclick: () => this.speak() }, this.t("language"))
    );
    return bar;
  }

  /** Walks over the steps of a run that wrote this buffer. */
  private stepper(): HTMLElement {
    const { steps } = this.m, told = h("output", { class: "tl-soft" });
    const say = (): void => {
      const s = steps[this.frame]!;
      told.textContent = `${s.step} · ${s.line ? `${this.t("line")} ${s.line} · ` : ""}${s.text.length > 60 ? `${s.text.slice(0, 59)}…` : s.text}`;
    };
    const slider = h("input", { type: "range", min: 0, max: steps.length - 1, value: this.frame, "aria-label": this.t("step"), oninput: () => {
      this.frame = Number(slider.value);
      this.m.showFrame(this.frame);
      say();
      this.redraw();
    } });
    this.m.showFrame(this.frame);
    say();
    return h("label", {}, h("span", {}, this.t("step")), slider, told);
  }

  private axesChoices(bar: HTMLElement): void {
    const { shape, params } = this.record;
    const names = params.map((p, k) => [String(k), p] as const);
    const set = (which: 0 | 1, axis: number): void => {
      if (this.axes[1 - which] === axis) this.axes[1 - which] = this.axes[which]!;
      this.axes[which] = axis;
      this.cut();
      this.build();
    };
    bar.append(choice(this.t("rows_axis"), names, String(this.axes[0]), v => set(0, Number(v))));
    bar.append(choice(this.t("columns_axis"), names, String(this.axes[1]), v => set(1, Number(v))));
    shape.forEach((n, k) => {
      if (this.axes.includes(k)) return;
      const input = h("input", { type: "number", min: 0, max: n - 1, value: this.at[k]!, oninput: () => {
        this.at[k] = Math.max(0, Math.min(n - 1, Math.floor(Number(input.value) || 0)));
        this.cut();
        this.redraw();
      } });
      bar.append(h("label", {}, h("span", {}, `${params[k]} =`), input));
    });
  }

  private cut(): void {
    this.slice = new Slice(this.record.shape, this.axes, this.at);
  }

  private zoom(steps: number): void {
    for (const place of ["tile", "before", "through"] as const) this.grids.get(place)?.zoomBy(steps);
  }

  private speak(): void {
    this.lang = this.lang === "zh" ? "en" : "zh";
    this.build();
    this.root.querySelector<HTMLElement>(".tl-lang")?.focus();
  }

  /** The panels, largest first. */
  private panels(): HTMLElement {
    const names = this.axes.map(k => this.record.params[k] ?? "");
    const axes = names.length === 2 ? `${names[0]} ↓  ${names[1]} →` : (names[0] ?? "");
    this.built = this.root.clientWidth;
    const inner = Math.max(260, (this.built || 1100) - 38), side = inner >= 700;
    if (!this.m.thread) {
      const wide: [number, number] = [side ? Math.min(430, (inner - 30) / 2) : inner, 430];
      const memory = this.panel("memory", this.t("memory"), this.t("memory_hint"), panels.memory(this.m), [Math.min(840, inner), 420]);
      const tiles = (["before", "tile"] as const).map(place =>
        this.panel(place, this.t(place === "before" ? "before" : "after"), `${this.by === "value" ? this.t("value_hint") : this.t("bank_hint")} · ${axes}`, this.source(place), wide));
      const rest = [this.banks(), memory];
      const beside = inner - 2 * (this.grids.get("tile")!.pixels[0] + 30) >= 520; // room for the rest beside narrow tiles
      return h("div", { class: "tl-panels" }, ...tiles, ...(beside ? [h("div", { class: "tl-side" }, ...rest)] : rest));
    }
    const left = side ? Math.min(560, inner * 0.53) : inner, right = side ? Math.min(500, inner - left - 30) : inner;
    const registers = this.panel("registers", this.t("registers_of", { thread: this.shownThread }), this.t("registers_hint"), this.source("registers"), [right, 400]);
    this.registersTitle = registers.querySelector("h4")!.firstChild;
    return h("div", { class: "tl-panels" },
      this.panel("tile", this.t("tile"), axes, this.source("tile"), [left, 540]),
      h("div", { class: "tl-side" }, this.panel("threads", this.t("threads_title"), this.t("threads_hint"), this.source("threads"), [right, 300]), registers, this.throughPanel(right)));
  }

  private throughPanel(width: number): HTMLElement | null {
    if (!this.partner) return null;
    const { layouts, through } = this.view.data, pair = through.find(p => layouts[p.fragment] === this.record && layouts[p.shared] === this.partner!.record)!;
    const name = this.partner.record.name, worst = Math.max(0, ...pair.passes), mean = pair.passes.reduce((a, b) => a + b, 0) / Math.max(1, pair.passes.length);
    const panel = this.panel("through", this.t("through", { name }), this.t("through_hint"), this.source("through"), [width, 360]);
    const told = this.t("through_line", { fragment: this.record.name, shared: name, worst, mean: Number(mean.toPrecision(3)) });
    panel.append(h("p", { class: worst > 1 ? "tl-soft" : "tl-good" }, told));
    return panel;
  }

  private source(place: Place): GridSource {
    if (place === "through") return panels.through(this.m, this.partner!);
    if (place === "threads") return panels.threads(this.m, this.t("warp"));
    if (place === "registers") return panels.registers(this.m, this.shownThread, this.by);
    return place === "memory" ? panels.memory(this.m) : panels.tile(this.m, this.slice, this.by, place === "before");
  }

  private panel(place: Place, title: string, hint: string, source: GridSource, most: [number, number]): HTMLElement {
    const events = {
      hover: (item: number) => this.hover(place, item),
      pin: (item: number) => this.pin(place, item),
      unpin: () => this.unpin()
    };
    const grid = new Grid(source, events, `${title}. ${this.t("hint")}`, most);
    this.grids.set(place, grid);
    requestAnimationFrame(() => grid.repaint());
    return h("div", { class: "tl-panel", "data-panel": place }, h("h4", {}, title, hint && h("span", {}, hint)), grid.element);
  }

  /** Conflicts of usual accesses, and where a column read lands. */
  private banks(): HTMLElement | null {
    const { conflicts, arrays } = this.record;
    if (!conflicts.length) return null;
    const grade = (n: number, ideal: number): HTMLElement => h("td", { class: n === ideal ? "tl-good" : "tl-bad" }, String(n));
    const rows = conflicts.map(c => h("tr", {}, h("td", {}, this.t(c.pattern)), grade(c.before, c.ideal), grade(c.after, c.ideal), h("td", {}, String(c.ideal))));
    const head = ["pattern", "before", "after", "ideal"].map(k => h("th", { scope: "col" }, this.t(k)));
    const bars = (["hits_before", "hits"] as const).filter(k => arrays[k]).map(k => this.hits(k));
    return h("div", { class: "tl-panel" }, h("h4", {}, this.t("conflicts"), h("span", {}, this.t("wavefronts_hint"))),
      h("div", { class: "tl-scroll" }, h("table", {}, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...rows))),
      bars.length ? h("h4", { style: "margin-top:16px" }, this.t("column_read")) : null, h("div", { class: "tl-panels" }, ...bars));
  }

  private hits(key: "hits" | "hits_before"): HTMLElement {
    const counts = this.m.hits(key), most = Math.max(...counts);
    const bars = [...counts].map((n, bank) => h("div", { style: `height:${n ? Math.max(7, (n / 32) * 100) : 0}%;background:${css(bankColour(bank))}`, title: `${this.t("bank")} ${bank}: ${n}` }));
    const text = `${this.t(key === "hits" ? "after" : "before")}: × ${most}`;
    return h("div", {}, h("div", { class: "tl-soft" }, text), h("div", { class: "tl-hits", role: "img", "aria-label": text }, ...bars));
  }

  // ---------------------------------------------------------------------------------------------- selection
  private select(place: Place, item: number): Selection {
    if (place === "threads") return this.m.atThread(item);
    if (place === "registers") return this.m.atRegister(this.shownThread, item);
    if (place === "through") return this.m.atElement(this.partner!.inWord(item).find(e => e < this.m.size) ?? -1);
    return place === "memory" ? this.m.atWord(item) : this.m.atElement(item);
  }

  private hover(place: Place, item: number): void {
    if (this.pinned && place !== "registers") return;
    this.now = this.select(place, item);
    this.update();
  }

  private pin(place: Place, item: number): void {
    if (item < 0) return;
    const next = this.select(place, item);
    const again = this.pinned && JSON.stringify(next) === JSON.stringify(this.now);
    this.now = next;
    this.pinned = !again;
    this.update();
  }

  private unpin(): void {
    this.pinned = false;
    this.now = NOTHING;
    this.update();
  }

  private redraw(): void {
    for (const [place, grid] of this.grids) grid.show(this.source(place));
    this.update();
  }

  private update(): void {
    const { now, m } = this;
    if (now.thread >= 0 && now.thread !== this.shownThread) {
      this.shownThread = now.thread;
      this.grids.get("registers")?.show(this.source("registers"));
      if (this.registersTitle) this.registersTitle.textContent = this.t("registers_of", { thread: now.thread });
    }
    for (const [place, grid] of this.grids) grid.mark(marks(m, place, now, this.partner));
    this.say();
    this.tell();
  }

  private say(): void {
    const { now, m, status } = this;
    for (const name of Object.keys(status.dataset)) delete status.dataset[name];
    const parts: (Node | string)[] = [];
    const add = (key: string, value: string | number): void => {
      parts.push(h("i", {}, this.t(key)), h("b", {}, String(value)));
    };
    const set = (name: string, value: unknown): void => {
      status.dataset[name] = String(value);
    };
    if (now.element < 0 && now.thread < 0 && now.word < 0) parts.push(h("i", {}, this.t("hint")));
    if (now.element >= 0) {
      const at = m.coordinates(now.element);
      set("element", at.join(","));
      add(this.record.layout === "loop" ? "iteration" : "element", `(${at.join(", ")})`);
    }
    if (now.thread >= 0) {
      const owners = m.owners(now.element).map(o => o.thread);
      set("thread", now.thread);
      set("threads", (owners.length ? owners : [now.thread]).join(","));
      parts.push(h("i", {}, "→"), h("span", { class: "tl-swatch", style: `background:${css(threadColour(now.thread))}` }));
      add("thread", now.thread);
      add("warp", now.thread >> 5);
      add("lane", now.thread & 31);
      if (owners.length > 1) parts.push(h("i", {}, `+ ${owners.slice(1, 5).join(", ")}${owners.length > 5 ? " …" : ""}`));
    }
    if (now.register >= 0) {
      set("register", now.register);
      add("register", now.register);
    }
    if (now.word >= 0) this.sayWord(add, set, parts);
    if (now.element >= 0 && m.value && !m.missing(now.element)) {
      set("value", m.value[now.element]);
      add("value", panels.short(m.value[now.element]!));
    }
    if (this.pinned) {
      set("pinned", "true");
      parts.push(h("span", { class: "tl-pin" }, `● ${this.t("pinned")}`));
    }
    status.replaceChildren(...parts);
  }

  private sayWord(add: (key: string, value: string | number) => void, set: (name: string, value: unknown) => void, parts: (Node | string)[]): void {
    const { now, m } = this;
    set("word", now.word);
    if (now.element < 0) {
      parts.push(h("i", {}, this.t("padding")));
      return;
    }
    const bank = m.bank![now.element]!;
    set("address", m.address![now.element]);
    set("bank", bank);
    set("bankBefore", m.bankBefore![now.element]);
    parts.push(h("i", {}, "→"));
    add("address", m.address![now.element]!);
    add("line", now.word >> 5);
    parts.push(h("span", { class: "tl-swatch", style: `background:${css(bankColour(bank))}` }));
    add("bank", bank);
    parts.push(h("i", {}, this.t("bank_if_row_major", { bank: m.bankBefore![now.element]! })));
  }

  /** Lets Python know what is selected. */
  private share(): void {
    const { now, m, pinned } = this;
    const element = now.element < 0 ? null : m.coordinates(now.element);
    const known = (v: number): number | null => (v < 0 ? null : v);
    this.model.set("selection", { buffer: this.record.name, element, thread: known(now.thread), register: known(now.register), word: known(now.word), pinned });
    this.model.save_changes();
  }
}

function render({ model, el }: RenderProps): () => void {
  let view: LayoutView | null = null;
  const draw = (): void => {
    el.replaceChildren();
    try {
      view = new LayoutView(viewOf(model, "layout"), model, el);
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
