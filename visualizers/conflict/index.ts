/** A conflict of layouts, live: the two maps side by side, linked; where they part; the lines that want them; what was tried and works. */
import { css, threadColour, watchTheme } from "@tilelab/shared/colour";
import { h } from "@tilelab/shared/dom";
import { MONO, SANS, THEME, type ConflictViewRecord } from "@tilelab/shared/generated";
import { Grid, type GridSource, type Marks } from "@tilelab/shared/grid";
import { Slice } from "@tilelab/shared/slice";
import { oncePerFrame, viewOf, type Model, type RenderProps } from "@tilelab/shared/view";
import { langOf, word, type Lang } from "@tilelab/shared/words";
import base from "../layout/style.css";
import { ConflictModel } from "./model.ts";
import style from "./style.css";

const ROWS = 256; // of the table

class ConflictView {
  private lang: Lang;
  private readonly m: ConflictModel;
  private grids: [Grid, Grid] | null = null;
  private now = -1;
  private pinned = false;
  private built = 0;
  private readonly status = h("div", { role: "status", "aria-live": "polite" });
  private readonly root = h("section", { class: "tl-view tl-conflict", onkeydown: (e: KeyboardEvent) => this.key(e) });
  private readonly tell = oncePerFrame(() => this.share());

  constructor(private readonly view: ConflictViewRecord, private readonly model: Model, el: HTMLElement) {
    this.lang = langOf(view.lang);
    this.m = new ConflictModel(view.data);
    this.root.style.fontFamily = SANS;
    this.root.style.setProperty("--tl-mono", MONO);
    el.append(h("style", {}, THEME + base + style), this.root);
    this.build();
  }

  repaint(): void {
    for (const g of this.grids ?? []) g.repaint();
  }

  resize(): void {
    const width = this.root.clientWidth;
    if (width && Math.abs(width - this.built) > 40) this.build();
  }

  private t(key: string, fill: Record<string, unknown> = {}): string {
    return word(key, this.lang, fill);
  }

  private build(): void {
    const { data } = this.view, { m } = this;
    this.built = this.root.clientWidth;
    const inner = Math.max(260, (this.built || 1100) - 38), wide = inner >= 700 ? (inner - 30) / 2 : inner;
    this.root.lang = this.lang === "zh" ? "zh-CN" : "en";
    const count = this.t("parts_count", { count: m.differ.length, total: m.size });
    this.root.setAttribute("aria-label", `TL402 ${this.view.title}: ${count}`);
    const panels = ([0, 1] as const).map(which => this.panel(which, wide));
    this.grids = [panels[0]!.grid, panels[1]!.grid];
    const speak = h("button", { type: "button", class: "tl-lang tl-end", onclick: () => {
      this.lang = this.lang === "zh" ? "en" : "zh";
      this.build();
      this.root.querySelector<HTMLElement>(".tl-lang")?.focus();
    } }, this.t("language"));
    const go = (step: 1 | -1, sign: string): HTMLElement => h("button", { type: "button", "aria-label": `${this.t(step > 0 ? "next" : "previous")}: ${this.t("apart")}`, onclick: () => this.walk(step) }, sign);
    const used = data.text ? h("p", { class: "tl-said" }, `${this.t("used_together", { line: data.line })} `, h("code", {}, data.text)) : null;
    const remedies = h("div", { class: "tl-panel", "data-panel": "remedies" }, h("h4", {}, this.t("works")),
      data.remedies.length ? h("ul", {}, ...data.remedies.map(r => h("li", {}, r))) : h("p", { class: "tl-soft" }, data.fix));
    const before = this.now;
    this.root.replaceChildren(
      h("header", {}, h("h3", {}, this.view.title), h("span", { class: "tl-bad" }, "TL402"), h("span", { class: "tl-soft" }, count)),
      h("p", { class: "tl-said" }, data.message), ...[used].filter(u => u !== null),
      h("div", { class: "tl-bar" }, h("span", { class: "tl-group" }, go(-1, "←"), go(1, "→")), h("span", { class: "tl-soft" }, this.t("only_apart")), speak), this.status,
      h("div", { class: "tl-panels" }, ...panels.map(p => p.element)), remedies, this.table(), h("div", { class: "tl-hint" }, `${this.t("hint")} ${this.t("conflict_hint")}`)
    );
    this.now = before;
    this.update();
  }

  private panel(which: 0 | 1, wide: number): { grid: Grid; element: HTMLElement } {
    const map = this.view.data.maps[which]!, { m } = this, owners = m.owners[which];
    const rank = m.shape.length, slice = new Slice([...m.shape], rank > 1 ? [rank - 2, rank - 1] : [0], m.shape.map(() => 0));
    const source: GridSource = {
      rows: slice.rows, columns: slice.columns, item: (i, j) => slice.element(i, j), cell: e => slice.cell(e), colour: e => threadColour(owners[e]!),
      labels: e => [`T${owners[e]}${m.apart[e] ? " ≠" : ""}`, `T${owners[e]}`], size: [48, 24]
    };
    const events = {
      hover: (e: number) => {
        if (this.pinned) return;
        this.now = e;
        this.update();
      },
      pin: (e: number) => {
        if (e < 0) return;
        this.pinned = !(this.pinned && this.now === e);
        this.now = e;
        this.update();
      },
      unpin: () => {
        this.pinned = false;
        this.now = -1;
        this.update();
      }
    };
    const grid = new Grid(source, events, `${map.buffer}. ${this.t("hint")}`, [wide, 460]);
    requestAnimationFrame(() => grid.repaint());
    const hint = map.line ? h("p", { class: "tl-soft" }, `${this.t("wanted_by", { line: map.line })} `, map.text ? h("code", {}, map.text) : null) : null;
    return { grid, element: h("div", { class: "tl-panel", "data-panel": which ? "second" : "first" }, h("h4", {}, map.buffer, h("span", {}, this.t("tile_hint"))), hint, grid.element) };
  }

  private walk(step: 1 | -1): void {
    this.now = this.m.next(this.now, step);
    this.pinned = this.now >= 0;
    this.update();
  }

  private key(e: KeyboardEvent): void {
    const step = ({ n: 1, N: 1, p: -1, P: -1 } as const)[e.key as "n"];
    if (!step || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    e.stopPropagation();
    this.walk(step);
  }

  private update(): void {
    const { m, now } = this;
    this.grids?.forEach((grid, k) => {
      const which = k as 0 | 1;
      const made: Marks = now < 0 ? { focus: new Set(), kin: new Set(), ring: m.differ.length < m.size ? new Set(m.differ) : new Set<number>() }
        : { focus: new Set([now]), kin: m.held(which, m.owners[which][now]!) };
      grid.mark(made);
    });
    this.say();
    this.tell();
  }

  private say(): void {
    const { m, now, status } = this;
    for (const name of Object.keys(status.dataset)) delete status.dataset[name];
    if (now < 0) return status.replaceChildren(h("i", {}, this.t("hint")));
    const at = m.coordinates(now), owners = m.owners.map(o => o[now]!);
    status.dataset.element = at.join(",");
    status.dataset.threads = owners.join(",");
    status.dataset.apart = String(!!m.apart[now]);
    const parts: Node[] = [h("i", {}, this.t("element")), h("b", {}, `(${at.join(", ")})`)];
    owners.forEach((t, k) => parts.push(h("i", {}, this.t("owner_in", { name: this.view.data.maps[k]!.buffer })), h("span", { class: "tl-swatch", style: `background:${css(threadColour(t))}` }),
      h("b", {}, `T${t}`), h("i", {}, `${this.t("warp")} ${t >> 5} ${this.t("lane")} ${t & 31}`)));
    if (!m.apart[now]) parts.push(h("i", { class: "tl-good" }, this.t("same_owner")));
    if (this.pinned) {
      status.dataset.pinned = "true";
      parts.push(h("span", { class: "tl-pin" }, `● ${this.t("pinned")}`));
    }
    status.replaceChildren(...parts);
  }

  private table(): HTMLElement {
    const { m } = this, { maps } = this.view.data;
    const head = [this.t("element"), ...maps.map(x => `${x.buffer}: ${this.t("thread")}`)].map(x => h("th", { scope: "col" }, x));
    const body = m.differ.slice(0, ROWS).map(e => h("tr", {}, ...[`(${m.coordinates(e).join(", ")})`, ...m.owners.map(o => String(o[e]))].map(x => h("td", {}, x))));
    const more = m.differ.length > ROWS ? h("p", { class: "tl-soft" }, this.t("more", { count: m.differ.length - ROWS })) : null;
    return h("details", { class: "tl-table" }, h("summary", {}, this.t("show_table")),
      h("div", { class: "tl-scroll", tabindex: 0 }, h("table", {}, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...body)), more));
  }

  private share(): void {
    const { m, now } = this;
    this.model.set("selection", { element: now < 0 ? null : m.coordinates(now), threads: now < 0 ? [] : m.owners.map(o => o[now]!), pinned: this.pinned });
    this.model.save_changes();
  }
}

function render({ model, el }: RenderProps): () => void {
  let view: ConflictView | null = null;
  const draw = (): void => {
    el.replaceChildren();
    try {
      view = new ConflictView(viewOf<ConflictViewRecord>(model, "conflict"), model, el);
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
