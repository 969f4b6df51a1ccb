/** The same content as a table, for those who cannot see the picture: built when opened, a page at a time. */
import { h } from "@tilelab/shared/dom";
import { word, type Lang } from "@tilelab/shared/words";
import type { LayoutModel, Slice } from "./model.ts";

const PAGE = 32;

export function table(m: LayoutModel, slice: Slice, lang: Lang): HTMLElement {
  const details = h("details", { class: "tl-table" }, h("summary", {}, word("show_table", lang)));
  const [header, rows, row] = m.thread ? byThread(m, lang) : byRow(m, slice, lang);
  let first = 0;
  const body = h("tbody");
  const where = h("span", { class: "tl-soft" });
  const turn = (to: number): void => {
    first = Math.max(0, Math.min(to, Math.floor((rows - 1) / PAGE) * PAGE));
    const last = Math.min(rows, first + PAGE);
    body.replaceChildren(...Array.from({ length: last - first }, (_, k) => h("tr", {}, ...row(first + k).map(c => h("td", {}, c)))));
    where.textContent = `${first}–${last - 1} / ${rows}`;
  };
  details.addEventListener("toggle", () => {
    if (!details.open || details.childElementCount > 1) return;
    const pages = h("div", { class: "tl-pages" },
      h("button", { type: "button", onclick: () => turn(first - PAGE) }, word("previous", lang)), where,
      h("button", { type: "button", onclick: () => turn(first + PAGE) }, word("next", lang)));
    details.append(h("div", { class: "tl-scroll" }, h("table", {}, h("thead", {}, h("tr", {}, ...header.map(t => h("th", { scope: "col" }, t)))), body)));
    if (rows > PAGE) details.append(pages);
    turn(0);
  });
  return details;
}

type Rows = [string[], number, (row: number) => string[]];

function byThread(m: LayoutModel, lang: Lang): Rows {
  const header = ["thread", "warp", "lane", "elements"].map(key => word(key, lang));
  return [header, m.record.threads, t => [String(t), String(t >> 5), String(t & 31), runs(m, m.held(t))]];
}

/** Elements in the order of the registers; neighbours along the last axis joined: `(0, 0–1) (8, 0–1)`. */
export function runs(m: LayoutModel, held: ArrayLike<number>): string {
  const last = m.record.shape[m.record.shape.length - 1] ?? 1, out: string[] = [];
  for (let k = 0; k < held.length; k++) {
    const start = held[k]!;
    if (start < 0) continue;
    while (k + 1 < held.length && held[k + 1] === held[k]! + 1 && held[k + 1]! % last !== 0) k++;
    const at = m.coordinates(start).map(String), end = held[k]!;
    if (end > start) at[at.length - 1] += `–${end % last}`;
    out.push(`(${at.join(", ")})`);
  }
  return out.join(" ");
}

function byRow(m: LayoutModel, slice: Slice, lang: Lang): Rows {
  const step = Math.max(1, Math.floor(128 / Math.max(1, m.record.bits)));
  const pick = (data: ArrayLike<number>, i: number): string => {
    const out: number[] = [];
    for (let j = 0; j < slice.columns; j += step) {
      const e = slice.element(i, j);
      if (e >= 0) out.push(data[e]!);
    }
    return out.join(" ");
  };
  const header = [m.record.params[m.record.axes[0] ?? 0] ?? "", word("address", lang), word("bank", lang), `${word("bank", lang)} (${word("before", lang)})`];
  return [header, slice.rows, i => [String(i), pick(m.address!, i), pick(m.bank!, i), pick(m.bankBefore!, i)]];
}
