/** T.print: typed records with filters, as a table and as heat maps; never a flood. */
import { choice, h } from "@tilelab/shared/dom";
import { decode } from "@tilelab/shared/decode";
import type { TracePrint } from "@tilelab/shared/generated";
import { Grid, type GridSource } from "@tilelab/shared/grid";
import { rgb, rampAt } from "@tilelab/shared/colour";
import { BAD, EMPTY } from "@tilelab/shared/generated";
import { word, type Lang } from "@tilelab/shared/words";
import { long, loopsText, short, summary, valueText } from "./format.ts";
import { heat, sliceOf } from "./heat.ts";
import type { Nd } from "./model.ts";

const PAGE = 12;

export interface Printed extends Omit<TracePrint, "value"> {
  value: Nd;
}

export const KEYS = ["line", "block", "thread", "what", "loops"] as const;
export type Key = (typeof KEYS)[number];

/** What a record is filtered by. */
export function keyOf(p: Printed, key: Key, tile: string): string {
  if (key === "line") return String(p.line || "?");
  if (key === "block") return p.block.join(",");
  if (key === "thread") return p.thread ? p.thread.join(",") : tile;
  return key === "what" ? p.what : loopsText(Object.entries(p.loops));
}

export function unpack(records: readonly TracePrint[]): Printed[] {
  return records.map(p => {
    const { shape, data } = decode(p.value);
    return { ...p, value: { shape, data, empty: null } };
  });
}

/** Single numbers on a grid: a row for each block and thread, a column for each turn of the loops. */
export function matrix(records: readonly Printed[], tile: string): { rows: string[]; columns: string[]; at: Map<string, number> } {
  const rows = new Map<string, number>(), columns = new Map<string, number>(), at = new Map<string, number>();
  const place = (map: Map<string, number>, key: string): number => map.get(key) ?? (map.set(key, map.size), map.size - 1);
  records.forEach((p, k) => {
    if (p.value.data.length !== 1) return;
    const who = `${keyOf(p, "block", tile)}${p.thread ? ` · ${p.thread.join(",")}` : ""}`;
    at.set(`${place(rows, who)},${place(columns, keyOf(p, "loops", tile) || p.what)}`, k);
  });
  return { rows: [...rows.keys()], columns: [...columns.keys()], at };
}

export class Prints {
  readonly element = h("div", { class: "tl-panel tl-prints", "data-panel": "prints" });
  private readonly records: Printed[];
  private readonly filters: Partial<Record<Key, string>> = {};
  private selected = 0;
  private first = 0;
  private grid: Grid | null = null;
  private at = -1;

  constructor(records: readonly TracePrint[], private readonly lost: number, private readonly lang: Lang, private readonly go: ((step: number) => void) | null,
    private readonly width: () => number) {
    this.records = unpack(records);
    this.build();
  }

  /** Marks the records of a step. */
  show(step: number): void {
    if (step === this.at) return;
    this.at = step;
    for (const row of this.element.querySelectorAll<HTMLElement>("tr[data-step]")) row.classList.toggle("tl-here", row.dataset.step === String(step));
  }

  repaint(): void {
    this.grid?.repaint();
  }

  private t(key: string, fill = {}): string {
    return word(key, this.lang, fill);
  }

  private filtered(): Printed[] {
    return this.records.filter(p => KEYS.every(k => this.filters[k] === undefined || keyOf(p, k, this.t("whole_tile")) === this.filters[k]));
  }

  private build(): void {
    const { lost, records } = this, found = this.filtered();
    const title = h("h4", {}, this.go ? this.t("prints") : null, h("span", {}, this.t("prints_count", { count: found.length < records.length ? `${found.length} / ${records.length}` : records.length })));
    const more = lost ? h("p", { class: "tl-warn" }, this.t("prints_lost", { count: lost })) : null;
    const bar = h("div", { class: "tl-bar tl-small" }, ...KEYS.map(k => this.filter(k)).filter(Boolean));
    this.element.replaceChildren(title, bar, ...(more ? [more] : []), h("div", { class: "tl-panels" }, this.table(found), this.picture(found)));
  }

  private filter(key: Key): HTMLElement | null {
    const all = [...new Set(this.records.map(p => keyOf(p, key, this.t("whole_tile"))))];
    if (all.length < 2) return null;
    const names = { line: "filter_line", block: "filter_block", thread: "filter_thread", what: "filter_name", loops: "filter_loop" } as const;
    const options = [["", this.t("all")] as const, ...all.slice(0, 2000).map(v => [`=${v}`, v || "–"] as const)];
    return choice(this.t(names[key]), options, this.filters[key] === undefined ? "" : `=${this.filters[key]}`, v => {
      if (v) this.filters[key] = v.slice(1);
      else delete this.filters[key];
      this.first = this.selected = 0;
      this.build();
    });
  }

  private table(found: readonly Printed[]): HTMLElement {
    const head = ["filter_line", "filter_block", "filter_thread", "filter_loop", "filter_name", "dtype", "printed_value"].map(k => h("th", { scope: "col" }, this.t(k)));
    const rows = found.slice(this.first, this.first + PAGE).map((p, k) => {
      const place = this.first + k;
      const cells = [p.line || "?", p.block.join(","), p.thread ? p.thread.join(",") : this.t("whole_tile"), loopsText(Object.entries(p.loops)), p.what, p.dtype];
      const value = h("td", { class: hasBad(p.value) ? "tl-bad" : "" }, valueText(p.value));
      return h("tr", {
        "data-step": p.step, class: p.step >= 0 && p.step === this.at ? "tl-here" : "", "aria-selected": String(place === this.selected), tabindex: 0,
        onclick: () => this.select(place), onkeydown: (e: KeyboardEvent) => {
          if (e.key !== "Enter" && e.key !== " ") return;
          e.preventDefault();
          e.stopPropagation();
          this.select(place);
        }
      }, ...cells.map(c => h("td", {}, String(c))), value);
    });
    const turn = (to: number): void => {
      this.first = Math.max(0, Math.min(to, Math.floor((found.length - 1) / PAGE) * PAGE));
      this.build();
    };
    const pages = found.length > PAGE ? h("div", { class: "tl-pages" },
      h("button", { type: "button", onclick: () => turn(this.first - PAGE) }, this.t("previous")),
      h("span", { class: "tl-soft" }, `${this.first}–${Math.min(found.length, this.first + PAGE) - 1} / ${found.length}`),
      h("button", { type: "button", onclick: () => turn(this.first + PAGE) }, this.t("next"))) : null;
    if (!found.length) return h("p", { class: "tl-soft" }, this.t("no_prints"));
    return h("div", {}, h("div", { class: "tl-scroll tl-wide" }, h("table", { class: "tl-records" }, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...rows))), pages);
  }

  private select(place: number): void {
    const again = place === this.selected, record = this.filtered()[place];
    this.selected = place;
    if (again && record && record.step >= 0) this.go?.(record.step);
    this.build();
    this.element.querySelector<HTMLElement>('tr[aria-selected="true"]')?.focus();
  }

  /** The selected array, or all single numbers that the filters leave. */
  private picture(found: readonly Printed[]): HTMLElement | null {
    const p = found[this.selected];
    this.grid = null;
    if (!p) return null;
    const array = p.value.data.length > 1, source = array ? this.array(p.value) : this.numbers(found);
    if (!source) return null;
    const told = h("div", { class: "tl-told" });
    const events = { hover: (item: number) => told.replaceChildren(array ? this.element_(p, item) : this.record(found[item])), pin: () => undefined, unpin: () => undefined };
    this.grid = new Grid(source, events, `${p.what}. ${this.t("hint")}`, [Math.min(440, this.width()), 300]);
    requestAnimationFrame(() => this.repaint());
    const where = [`${this.t("filter_block")} ${p.block.join(",")}`, p.thread ? `${this.t("filter_thread")} ${p.thread.join(",")}` : "", loopsText(Object.entries(p.loops))];
    const head = h("h4", {}, array ? p.what : this.t("prints"), h("span", {}, array ? [`${p.dtype} ${p.value.shape.join("×")}`, ...where].filter(Boolean).join(" · ") : ""));
    const go = p.step >= 0 && this.go ? h("button", { type: "button", onclick: () => this.go!(p.step) }, `${this.t("go_there")}: ${this.t("step")} ${p.step}`) : null;
    return h("div", { class: "tl-panel" }, head, this.grid.element, told, go);
  }

  private array(v: Nd): GridSource {
    return heat(v, sliceOf(v), summary(v), v.shape.map(() => 0));
  }

  private numbers(found: readonly Printed[]): GridSource | null {
    const { rows, columns, at } = matrix(found, this.t("whole_tile"));
    if (rows.length * columns.length < 2) return null;
    const all = { shape: [found.length], data: Float64Array.from(found, p => (p.value.data.length === 1 ? p.value.data[0]! : NaN)), empty: null };
    const { low, high } = summary(all), cells = new Map([...at].map(([cell, k]) => [k, cell.split(",").map(Number) as [number, number]]));
    return {
      rows: rows.length, columns: columns.length, item: (i, j) => at.get(`${i},${j}`) ?? -1, cell: k => cells.get(k) ?? null,
      colour: k => (Number.isFinite(all.data[k]) ? rampAt(high > low ? (all.data[k]! - low) / (high - low) : 0.5) : rgb(Number.isNaN(all.data[k]) && !found[k] ? EMPTY : BAD)),
      labels: k => [short(all.data[k]!)], rowName: i => rows[i]!, columnName: j => columns[j]!.replace(/ = /g, "="), left: 92, size: [46, 22]
    };
  }

  private element_(p: Printed, item: number): Node {
    const index: number[] = [];
    for (let d = p.value.shape.length - 1, e = item; d >= 0; d--) {
      index.unshift(e % p.value.shape[d]!);
      e = Math.floor(e / p.value.shape[d]!);
    }
    return h("div", { class: "tl-facts" }, h("b", {}, `[${index.join(", ")}] = ${long(p.value.data[item]!)}`));
  }

  private record(p: Printed | undefined): Node {
    if (!p) return h("div");
    return h("div", { class: "tl-facts" }, h("b", {}, long(p.value.data[0]!)), h("span", {}, [p.block.join(","), p.thread?.join(",") ?? "", loopsText(Object.entries(p.loops))].filter(Boolean).join(" · ")));
  }
}

const hasBad = (v: Nd): boolean => Array.from(v.data as ArrayLike<number>).some(x => !Number.isFinite(x));
