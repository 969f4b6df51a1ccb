/** The values of one name at the present step: what it is, its range, a heat map, a typed table, the history of one element. */
import { css, rampAt } from "@tilelab/shared/colour";
import { choice, h } from "@tilelab/shared/dom";
import { BAD, EMPTY } from "@tilelab/shared/generated";
import { Grid } from "@tilelab/shared/grid";
import type { Slice } from "@tilelab/shared/slice";
import { word, type Lang } from "@tilelab/shared/words";
import { elementText, indexOf, long, short, summary } from "./format.ts";
import { heat, sliceOf, type Scale } from "./heat.ts";
import type { Buffer, Nd, Shown, TraceModel } from "./model.ts";
import { sparkline } from "./sparkline.ts";

const TABLE_ROWS = 16, TABLE_COLUMNS = 8, RINGS = 8192, HISTORY = 400;

export interface ValuesEvents {
  /** A name was chosen. */
  choose(name: string): void;
  /** An element is pointed at (-1: none). */
  point(name: string, index: readonly number[] | null, pinned: boolean): void;
  /** A step of the history was chosen. */
  go(step: number): void;
  /** The value of this step is not in the file. */
  missing(name: string, step: number): void;
  /** Turns to the part of a large tensor that begins at `origin`; null where no kernel is there to send it. */
  page: ((name: string, origin: number[]) => void) | null;
}

export class Values {
  readonly element = h("div", { class: "tl-values" });
  name: string;
  private step = 0;
  private width = 420;
  private grid: Grid | null = null;
  private made = "";
  private axes: number[] = [];
  private at: number[] = [];
  private pinned = -1;
  private hovered = -1;
  private wide = true; // colours over all steps
  private page: [number, number] = [0, 0];
  private open = false;
  private readonly chips = h("div", { class: "tl-chips", role: "group" });
  private readonly head = h("div", { class: "tl-valuehead" });
  private readonly body = h("div");
  private readonly told = h("div", { class: "tl-told", "aria-live": "polite" });
  private readonly table = h("details", { class: "tl-table" });

  constructor(private readonly m: TraceModel, private readonly lang: Lang, private readonly events: ValuesEvents) {
    this.name = m.data.selected;
    this.chips.setAttribute("aria-label", word("values", lang));
    this.table.append(h("summary", {}, word("as_table", lang)));
    this.table.addEventListener("toggle", () => {
      this.open = this.table.open;
      this.fillTable();
    });
    this.element.append(this.chips, this.head, this.body, this.told, this.table);
  }

  show(step: number, width: number): void {
    if (width !== this.width) this.made = "";
    [this.step, this.width] = [step, width];
    this.buildChips();
    const b = this.m.buffer(this.name), shown = this.m.value(this.name, step);
    if (shown?.late || (!shown && this.m.has(this.name, step))) this.events.missing(this.name, step);
    this.buildHead(b, shown);
    this.buildGrid(b, shown);
    this.tell();
    this.fillTable();
  }

  choose(name: string): void {
    if (name === this.name) return;
    this.name = name;
    this.pinned = this.hovered = -1;
    this.axes = [];
    this.page = [0, 0];
  }

  repaint(): void {
    this.grid?.repaint();
  }

  // ------------------------------------------------------------------------------------------------- chips
  private buildChips(): void {
    const wrote = new Set(this.m.wrote(this.step)), order = ["let", "local.var", "local", "local.fragment", "shared", "global"];
    const rank = (b: Buffer): number => {
      const k = order.findIndex(s => b.scope === s || (s === "shared" && b.scope.startsWith("shared")));
      return b.scope.endsWith("barrier") ? 98 : k < 0 ? 99 : k;
    };
    const sorted = [...this.m.buffers].sort((a, b) => rank(a) - rank(b));
    this.chips.replaceChildren(...sorted.map(b => {
      const has = this.m.has(b.name, this.step), about = `${b.dtype} ${b.shape.join("×")} ${b.scope}`;
      return h("button", {
        type: "button", class: `tl-chip${wrote.has(b.name) ? " tl-fresh" : ""}${has ? "" : " tl-none"}`, "aria-pressed": String(b.name === this.name), title: about,
        onclick: () => this.events.choose(b.name)
      }, b.name, wrote.has(b.name) ? h("i", { class: "tl-dot", "aria-label": word("changed_mark", this.lang) }) : null);
    }));
  }

  private buildHead(b: Buffer | undefined, shown: Shown | null): void {
    if (!b) {
      this.head.replaceChildren();
      return;
    }
    const t = (key: string, fill = {}): string => word(key, this.lang, fill);
    const shape = b.shape.join("×") || t("scalar");
    const facts: (Node | string)[] = [h("b", {}, b.name), h("span", {}, b.dtype), h("span", {}, shape), h("span", {}, b.scope)];
    const line = [shown ? t(shown.late ? "left_out" : "written", { step: shown.step }) : t("written_never")];
    if (shown?.changed && shown.value.shape.length) line.push(shown.changed.size ? t("changed", { count: shown.changed.size }) : t("unchanged"));
    if (b.extent.length) line.push(t("window", { window: `[${b.extent.map((n, k) => `${b.origin[k]!}:${b.origin[k]! + n}`).join(", ")}]` }));
    const rows: (HTMLElement | null)[] = [h("div", { class: "tl-facts" }, ...facts), h("div", { class: shown?.late ? "tl-warn" : "tl-soft" }, line.join(" · "))];
    if (shown && shown.value.data.length > 1) rows.push(this.stats(shown.value));
    this.head.replaceChildren(...rows.filter((r): r is HTMLElement => r !== null));
  }

  private stats(v: Nd): HTMLElement {
    const s = summary(v), out: (Node | string)[] = [];
    const add = (key: string, text: string, cls = ""): void => {
      out.push(h("span", { class: cls }, h("i", {}, key), ` ${text}`));
    };
    if (s.low <= s.high) {
      add(word("minimum", this.lang), long(s.low));
      add(word("maximum", this.lang), long(s.high));
      add(word("mean", this.lang), long(s.mean));
    }
    if (s.nan) add("NaN", String(s.nan), "tl-bad");
    if (s.inf) add("Inf", String(s.inf), "tl-bad");
    if (s.empty) add(word("unwritten", this.lang), String(s.empty));
    return h("div", { class: "tl-stats" }, ...out);
  }

  // -------------------------------------------------------------------------------------------------- grid
  private scale(b: Buffer, v: Nd): Scale {
    if (this.wide) return b;
    const s = summary(v);
    return { low: s.low, high: s.high };
  }

  private buildGrid(b: Buffer | undefined, shown: Shown | null): void {
    if (!b || !shown) {
      this.grid = null;
      this.made = "";
      this.body.replaceChildren();
      return;
    }
    const { value } = shown;
    if (value.data.length === 1) {
      this.grid = null;
      this.made = "";
      this.body.replaceChildren(h("div", { class: "tl-scalar" }, value.empty?.[0] ? "·" : long(value.data[0]!)));
      return;
    }
    if (this.axes.length !== Math.min(2, value.shape.length) || this.at.length !== value.shape.length) {
      const rank = value.shape.length;
      this.axes = rank < 2 ? [0] : [rank - 2, rank - 1];
      this.at = value.shape.map(() => 0);
    }
    const slice = sliceOf(value, this.axes, this.at), scale = this.scale(b, value);
    const lead = value.shape.length - b.origin.length, origin = [...Array<number>(Math.max(0, lead)).fill(0), ...b.origin];
    const source = heat(value, slice, scale, origin), key = `${b.name} ${value.shape.join()} ${this.axes.join()} ${this.width} ${b.origin.join()}`;
    if (this.grid && this.made === key) this.grid.show(source);
    else {
      const events = { hover: (e: number) => this.hover(e), pin: (e: number) => this.pin(e), unpin: () => this.pin(-1) };
      this.grid = new Grid(source, events, `${b.name}. ${word("hint", this.lang)}`, [this.width, 400]);
      this.made = key;
      this.body.replaceChildren(this.grid.element, this.legend(b, scale), this.controls(value));
      requestAnimationFrame(() => this.repaint());
    }
    this.body.querySelector(".tl-legend")?.replaceWith(this.legend(b, scale));
    const ring = shown.changed && shown.changed.size < value.data.length && shown.changed.size <= RINGS ? shown.changed : new Set<number>();
    this.grid.mark({ focus: new Set(this.pinned >= 0 ? [this.pinned] : []), kin: new Set(), ring });
  }

  private legend(b: Buffer, scale: Scale): HTMLElement {
    const stops = Array.from({ length: 9 }, (_, k) => css(rampAt(k / 8))).join(",");
    const swatch = (colour: string, text: string): HTMLElement => h("span", {}, h("i", { class: "tl-swatch", style: `background:${colour}` }), text);
    const parts = scale.low <= scale.high ? [h("span", {}, short(scale.low)), h("i", { class: "tl-ramp", style: `background:linear-gradient(90deg,${stops})` }), h("span", {}, short(scale.high))] : [];
    const float = /float/.test(b.dtype);
    return h("div", { class: "tl-legend" }, ...parts, float ? swatch(BAD, "NaN, ∞") : null, swatch(EMPTY, word("unwritten", this.lang)),
      h("span", {}, h("i", { class: "tl-ring" }), word("changed_mark", this.lang)));
  }

  private controls(v: Nd): HTMLElement {
    const bar = h("div", { class: "tl-bar tl-small" });
    bar.append(choice(word("scale", this.lang), [["all", word("range_all", this.lang)], ["now", word("range_now", this.lang)]], this.wide ? "all" : "now", value => {
      this.wide = value === "all";
      this.show(this.step, this.width);
    }));
    if (v.shape.length > 2) this.axesChoices(bar, v);
    const b = this.m.buffer(this.name);
    if (b && this.events.page) this.pages(bar, b, this.events.page);
    return bar;
  }

  /** A pair of buttons for each axis of a tensor that is longer than the part shown. */
  private pages(bar: HTMLElement, b: Buffer, page: (name: string, origin: number[]) => void): void {
    b.extent.forEach((n, axis) => {
      if (n >= b.shape[axis]!) return;
      const turn = (by: number, key: string, sign: string): HTMLElement => {
        const to = Math.max(0, Math.min(b.origin[axis]! + by, b.shape[axis]! - n)), text = word(key, this.lang, { axis });
        return h("button", {
          type: "button", title: text, "aria-label": text, "data-page": `${axis}${sign}`, disabled: to === b.origin[axis],
          onclick: () => page(b.name, b.origin.map((o, k) => (k === axis ? to : o)))
        }, sign);
      };
      bar.append(turn(-n, "page_back", axis === b.extent.length - 1 ? "◀" : "▲"), turn(n, "page_on", axis === b.extent.length - 1 ? "▶" : "▼"));
    });
  }

  private axesChoices(bar: HTMLElement, v: Nd): void {
    const names = v.shape.map((_, k) => [String(k), String(k)] as const);
    const again = (): void => {
      this.made = "";
      this.show(this.step, this.width);
    };
    (["rows_axis", "columns_axis"] as const).forEach((key, which) => {
      bar.append(choice(word(key, this.lang), names, String(this.axes[which]), text => {
        if (this.axes[1 - which] === Number(text)) this.axes[1 - which] = this.axes[which]!;
        this.axes[which] = Number(text);
        again();
      }));
    });
    v.shape.forEach((n, k) => {
      if (this.axes.includes(k)) return;
      const input = h("input", { type: "number", min: 0, max: n - 1, value: this.at[k]!, oninput: () => {
        this.at[k] = Math.max(0, Math.min(n - 1, Math.floor(Number(input.value) || 0)));
        this.show(this.step, this.width);
      } });
      bar.append(h("label", {}, h("span", {}, `${k} =`), input));
    });
  }

  // ------------------------------------------------------------------------------------------- one element
  private hover(e: number): void {
    this.hovered = e;
    this.tell();
  }

  private pin(e: number): void {
    this.pinned = e === this.pinned ? -1 : e;
    if (e < 0) this.hovered = -1;
    const shown = this.m.value(this.name, this.step);
    if (shown) this.buildGrid(this.m.buffer(this.name), shown);
    this.tell();
  }

  /** Shows an element, e.g. where a first NaN is. */
  pinIndex(index: readonly number[]): void {
    const shown = this.m.value(this.name, this.step), b = this.m.buffer(this.name);
    if (!shown || !b || index.length !== shown.value.shape.length) return;
    const own = index.map((i, k) => i - (b.origin[k] ?? 0));
    this.pinned = own.reduce((e, i, k) => e * shown.value.shape[k]! + i, 0);
    own.forEach((i, k) => {
      if (!this.axes.includes(k)) this.at[k] = i;
    });
    this.buildGrid(b, shown);
    this.tell();
  }

  private tell(): void {
    const shown = this.m.value(this.name, this.step), b = this.m.buffer(this.name);
    const e = this.hovered >= 0 ? this.hovered : this.pinned;
    if (!shown || !b || e < 0 || e >= shown.value.data.length || shown.value.data.length < 2) {
      this.told.replaceChildren();
      for (const name of Object.keys(this.told.dataset)) delete this.told.dataset[name];
      this.events.point(this.name, null, false);
      return;
    }
    const own = indexOf(e, shown.value.shape), lead = own.length - b.origin.length;
    const index = own.map((i, k) => i + (b.origin[k - lead] ?? 0));
    const before = shown.step > 0 ? this.m.value(b.name, shown.step - 1) : null;
    const at = (v: Nd): string => (v.empty?.[e] ? "·" : long(v.data[e]!));
    const text = [h("b", {}, `${elementText(b.name, index)} = ${at(shown.value)}`)];
    if (before && before.value.data.length === shown.value.data.length && shown.changed?.has(e)) text.push(h("span", { class: "tl-soft" }, `← ${at(before.value)}`));
    this.told.dataset.element = index.join(",");
    this.told.dataset.value = at(shown.value);
    const line = h("div", { class: "tl-facts" }, ...text);
    this.told.replaceChildren(line, ...(this.pinned === e ? [this.history(b, e, elementText(b.name, index))] : []));
    this.events.point(b.name, index, this.pinned === e);
  }

  private history(b: Buffer, e: number, title: string): HTMLElement {
    const steps = Array.from(b.steps as ArrayLike<number>), every = Math.max(1, Math.ceil(steps.length / HISTORY));
    const points = steps.filter((_, k) => k % every === 0 || k === steps.length - 1).flatMap(step => {
      const shown = this.m.value(b.name, step);
      return shown && shown.step === step && !shown.value.empty?.[e] && e < shown.value.data.length ? [[step, shown.value.data[e]!] as const] : [];
    });
    return sparkline(points, { last: this.m.count - 1, at: this.step, title: word("element_history", this.lang, { name: title }), go: step => this.events.go(step) });
  }

  // ------------------------------------------------------------------------------------------------- table
  private fillTable(): void {
    const shown = this.m.value(this.name, this.step), b = this.m.buffer(this.name);
    this.table.hidden = !shown || shown.value.data.length < 2;
    while (this.table.childElementCount > 1) this.table.lastElementChild!.remove();
    if (!this.open || !shown || !b || shown.value.data.length < 2) return;
    const { value } = shown, slice: Slice = sliceOf(value, this.axes.length ? this.axes : undefined, this.at.length ? this.at : undefined);
    const source = heat(value, slice, b, [...Array<number>(Math.max(0, value.shape.length - b.origin.length)).fill(0), ...b.origin]);
    const [r, c] = this.page, rows = Math.min(slice.rows, r + TABLE_ROWS), columns = Math.min(slice.columns, c + TABLE_COLUMNS);
    const head = h("tr", {}, h("th", { scope: "col" }, b.name), ...Array.from({ length: columns - c }, (_, j) => h("th", { scope: "col" }, source.columnName!(c + j))));
    const body = Array.from({ length: rows - r }, (_, i) => h("tr", {}, h("th", { scope: "row" }, source.rowName!(r + i)), ...Array.from({ length: columns - c }, (_, j) => {
      const e = slice.element(r + i, c + j), x = value.data[e]!;
      if (e < 0) return h("td");
      const cls = value.empty?.[e] ? "tl-soft" : Number.isFinite(x) ? (shown.changed?.has(e) ? "tl-new" : "") : "tl-bad";
      return h("td", { class: cls }, value.empty?.[e] ? "·" : long(x));
    })));
    const turn = (text: string, dr: number, dc: number): HTMLElement => h("button", { type: "button", "aria-label": text, onclick: () => {
      this.page = [Math.max(0, Math.min(slice.rows - 1, r + dr * TABLE_ROWS)), Math.max(0, Math.min(slice.columns - 1, c + dc * TABLE_COLUMNS))];
      this.page = [this.page[0] - (this.page[0] % TABLE_ROWS), this.page[1] - (this.page[1] % TABLE_COLUMNS)];
      this.fillTable();
    } }, text);
    const more = slice.rows > TABLE_ROWS || slice.columns > TABLE_COLUMNS;
    this.table.append(h("div", { class: "tl-scroll" }, h("table", { class: "tl-numbers" }, h("thead", {}, head), h("tbody", {}, ...body))),
      ...(more ? [h("div", { class: "tl-pages" }, turn("↑", -1, 0), turn("↓", 1, 0), turn("←", 0, -1), turn("→", 0, 1),
        h("span", { class: "tl-soft" }, `${r}–${rows - 1} × ${c}–${columns - 1}  /  ${slice.rows} × ${slice.columns}`))] : []));
  }
}
