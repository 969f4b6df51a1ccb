/** The same content as a table: each user line and the lines that it became. Built when opened. */
import { h } from "@tilelab/shared/dom";
import type { ProgramPane } from "@tilelab/shared/generated";
import { word, type Lang } from "@tilelab/shared/words";
import { runs, type ProgramModel } from "./model.ts";

export function table(m: ProgramModel, variant: number, name: (pane: ProgramPane) => string, lang: Lang): HTMLElement {
  const details = h("details", { class: "tl-table" }, h("summary", {}, word("show_table", lang)));
  details.addEventListener("toggle", () => {
    if (!details.open || details.childElementCount > 1) return;
    const panes = m.data.variants[variant]!.panes;
    const head = [word("user_line", lang), ...panes.map(name)].map(text => h("th", { scope: "col" }, text));
    const body = becomes(m, variant).map(cells => h("tr", {}, ...cells.map(c => h("td", {}, c))));
    details.append(h("div", { class: "tl-scroll" }, h("table", {}, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...body))));
  });
  return details;
}

/** Rows as Python's `View.table` gives them. */
export function becomes(m: ProgramModel, variant: number): string[][] {
  const [python, ...panes] = m.data.variants[variant]!.panes;
  if (!python) return [];
  const places = m.places(python), out: { file: number; line: number; cells: string[] }[] = [];
  python.lines.forEach((text, k) => {
    if (places[k]! < 0) return;
    const { file, line } = m.data.places[places[k]!]!;
    const found = panes.map(p => m.linked({ variant, key: "python", line: k }, variant, p.key).map(n => n + 1));
    const where = m.data.files.length > 1 ? `${m.data.files[file]}:${line}` : String(line);
    if (found.some(f => f.length)) out.push({ file, line, cells: [where, text.trim(), ...found.map(f => runs(f))] });
  });
  return out.sort((a, b) => a.file - b.file || a.line - b.line).map(r => r.cells);
}
