/** The source: the lines that ran, the present ones, breakpoints in the margin, findings under their line. */
import { h } from "@tilelab/shared/dom";
import type { TraceFile } from "@tilelab/shared/generated";
import { word, type Lang } from "@tilelab/shared/words";
import type { TraceModel } from "./model.ts";
import type { Session } from "./session.ts";

const TOKEN = /(#.*$)|("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(@[\w.]+)|\b(T(?:\.\w+)+)|\b(def|return|for|in|with|as|if|else|elif|while|not|and|or|None|True|False|import|from|lambda|class)\b|\b(\d[\w.]*)\b/g;
const CLASSES = ["tl-c-note", "tl-c-text", "tl-c-tile", "tl-c-tile", "tl-c-word", "tl-c-number"];

/** Python, coloured: comments, strings, TileLang's names, keywords, numbers. */
export function coloured(text: string): (Node | string)[] {
  const out: (Node | string)[] = [];
  let at = 0;
  for (const found of text.matchAll(TOKEN)) {
    if (found.index > at) out.push(text.slice(at, found.index));
    out.push(h("span", { class: CLASSES[found.slice(1).findIndex(g => g !== undefined)]! }, found[0]));
    at = found.index + found[0].length;
  }
  if (at < text.length) out.push(text.slice(at));
  return out;
}

export class Source {
  readonly element = h("div", { class: "tl-source", tabindex: 0 });
  private shown: TraceFile | null = null;
  private rows = new Map<number, HTMLElement>();
  private readonly ran: Map<string, number>; // `file:line` → how often a step began there

  constructor(private readonly m: TraceModel, private readonly session: Session, private readonly lang: Lang, private readonly colour: (step: number) => string,
    private readonly toggle: (line: number, file: string) => void) {
    this.ran = new Map();
    for (let k = 0; k < m.count; k++) {
      for (let n = m.line[k]!; n <= m.end[k]!; n++) {
        const key = `${m.file[k]}:${n}`;
        this.ran.set(key, (this.ran.get(key) ?? 0) + 1);
      }
    }
    this.element.setAttribute("aria-label", word("source", lang));
  }

  show(): void {
    const file = this.m.fileOf(this.session.at);
    if (file !== this.shown || !file) this.build(file);
    this.mark();
  }

  private build(file: TraceFile | null): void {
    this.shown = file;
    this.rows.clear();
    if (!file?.lines.length) {
      this.element.replaceChildren(h("p", { class: "tl-soft" }, word("no_source", this.lang)));
      return;
    }
    const place = this.m.data.files.indexOf(file);
    const body = file.lines.flatMap((text, k) => this.row(place, file, file.first + k, text));
    this.element.replaceChildren(...body);
  }

  private row(place: number, file: TraceFile, line: number, text: string): HTMLElement[] {
    const times = this.ran.get(`${place}:${line}`) ?? 0;
    const first = times ? Array.from(this.m.line as ArrayLike<number>).findIndex((n, k) => n <= line && line <= this.m.end[k]! && this.m.file[k] === place) : -1;
    const number = times
      ? h("button", { type: "button", class: "tl-line", title: `${word("do_break", this.lang)} ${line}`, "aria-label": `${word("do_break", this.lang)} ${line}`,
        "aria-pressed": "false", onclick: () => this.toggle(line, file.name) }, String(line))
      : h("span", { class: "tl-line" }, String(line));
    const row = h("div", { class: `tl-row${times ? "" : " tl-idle"}`, "data-line": line },
      number, h("i", { class: "tl-tab", style: first >= 0 ? `background:${this.colour(first)}` : "" }),
      h("code", {}, ...coloured(text), text ? null : " "), times > 1 ? h("span", { class: "tl-times" }, `${times}×`) : null);
    this.rows.set(line, row);
    const notes = this.m.data.findings.filter(f => f.line === line && f.file && sameName(f.file, file.name));
    return [row, ...notes.map(f => h("div", { class: `tl-note tl-${f.severity}` }, h("b", {}, f.code), ` ${f.message}`))];
  }

  private mark(): void {
    const { m, session } = this, at = session.at;
    for (const [line, row] of this.rows) {
      const here = m.line[at]! <= line && line <= m.end[at]!;
      row.classList.toggle("tl-here", here);
      if (here && line === m.line[at]) row.setAttribute("aria-current", "step");
      else row.removeAttribute("aria-current");
      const stop = this.shown && session.onLine(this.shown.name, line);
      row.classList.toggle("tl-stop", Boolean(stop));
      row.querySelector("button.tl-line")?.setAttribute("aria-pressed", String(Boolean(stop)));
    }
    const row = this.rows.get(m.line[at]!);
    if (!row) return;
    const box = this.element, top = row.offsetTop - box.offsetTop;
    if (top < box.scrollTop + 40 || top > box.scrollTop + box.clientHeight * 0.8) box.scrollTop = top - box.clientHeight * 0.45;
  }
}

const sameName = (a: string, b: string): boolean => a.split(/[\\/]/).pop() === b.split(/[\\/]/).pop();
