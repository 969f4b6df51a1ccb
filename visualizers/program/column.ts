/** One text of the program: lines to point at, walk through and pin; those that belong together are marked. */
import { h } from "@tilelab/shared/dom";
import type { ProgramPane } from "@tilelab/shared/generated";

interface About {
  variant: number;
  key: string;
  name: string;
  hint: string;
  differing: ReadonlySet<number>;
}

interface Actions {
  point(line: number): void;
  pin(line: number): void;
  free(): void;
}

const PAGE = 16;
let count = 0;

export class Column {
  readonly element: HTMLElement;
  private readonly code: HTMLElement;
  private readonly rows: HTMLElement[];
  private marked: number[] = [];
  private cursor = -1;

  constructor(pane: ProgramPane, private readonly places: ArrayLike<number>, readonly spot: About, private readonly act: Actions) {
    const id = `tl-pane-${++count}`;
    this.rows = pane.lines.map((text, k) => h("div", {
      id: `${id}-${k}`, role: "option", "aria-selected": "false", "data-k": k,
      class: `tl-line${places[k]! >= 0 ? " tl-known" : ""}${spot.differing.has(k) ? " tl-diff" : ""}`
    }, h("span", { class: "tl-no", "aria-hidden": "true" }, String(k + 1)), h("code", {}, text || " ")));
    this.code = h("div", { class: "tl-code", role: "listbox", tabindex: 0, "aria-label": spot.name, onkeydown: (e: KeyboardEvent) => this.key(e),
      onmousemove: (e: MouseEvent) => this.hover(e), onclick: (e: MouseEvent) => this.click(e) }, ...this.rows);
    this.element = h("div", { class: "tl-column", "data-pane": spot.key, "data-variant": spot.variant },
      h("h4", {}, spot.name, h("span", {}, spot.hint)), this.code);
    const first = Array.from({ length: places.length }, (_, k) => k).find(k => places[k]! >= 0) ?? 0;
    if (first > 8) requestAnimationFrame(() => this.reveal(first));
  }

  /** Marks `linked` lines and the one pointed at; `follow` brings the first of them into sight. */
  mark(linked: number[], here: number, follow: boolean): void {
    for (const k of this.marked) {
      this.rows[k]?.classList.remove("tl-linked", "tl-here");
      this.rows[k]?.setAttribute("aria-selected", "false");
    }
    this.marked = here >= 0 && !linked.includes(here) ? [...linked, here] : linked;
    for (const k of linked) {
      this.rows[k]?.classList.add("tl-linked");
      this.rows[k]?.setAttribute("aria-selected", "true");
    }
    if (here >= 0) {
      this.cursor = here;
      this.rows[here]?.classList.add("tl-here");
      this.code.setAttribute("aria-activedescendant", this.rows[here]?.id ?? "");
    }
    const seen = (k: number): boolean => {
      const top = this.rows[k]!.offsetTop - this.code.scrollTop;
      return top >= 0 && top < this.code.clientHeight - 16;
    };
    if (follow && linked.length && !linked.some(seen)) this.reveal(linked[0]!);
  }

  private reveal(line: number): void {
    const row = this.rows[line];
    if (row) this.code.scrollTop = Math.max(0, row.offsetTop - 60);
  }

  private at(e: Event): number {
    const row = (e.target as HTMLElement).closest<HTMLElement>(".tl-line");
    return row ? Number(row.dataset.k) : -1;
  }

  private hover(e: MouseEvent): void {
    const line = this.at(e);
    if (line >= 0 && (line !== this.cursor || !this.rows[line]!.classList.contains("tl-here"))) this.act.point(line);
  }

  private click(e: MouseEvent): void {
    const line = this.at(e);
    if (line >= 0 && !getSelection()?.toString()) this.act.pin(line);
  }

  private key(e: KeyboardEvent): void {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const last = this.rows.length - 1, at = Math.max(0, this.cursor);
    const moves: Record<string, () => number> = {
      ArrowDown: () => (this.cursor < 0 ? this.firstSeen() : Math.min(last, at + 1)), ArrowUp: () => Math.max(0, at - 1),
      PageDown: () => Math.min(last, at + PAGE), PageUp: () => Math.max(0, at - PAGE), Home: () => 0, End: () => last,
      n: () => this.next(this.cursor < 0 ? -1 : at, 1), p: () => this.next(at, -1)
    };
    const move = moves[e.key.length === 1 ? e.key.toLowerCase() : e.key];
    if (move) {
      const to = move();
      this.act.free();
      this.cursor = to;
      this.act.point(to);
      this.show(to);
    } else if (e.key === "Enter" || e.key === " ") this.act.pin(at);
    else if (e.key === "Escape") this.act.free();
    else return;
    e.preventDefault();
  }

  private firstSeen(): number {
    return Math.max(0, this.rows.findIndex(r => r.offsetTop >= this.code.scrollTop));
  }

  /** The next line that has a user line. */
  private next(from: number, step: 1 | -1): number {
    for (let k = from + step; k >= 0 && k < this.places.length; k += step) if (this.places[k]! >= 0) return k;
    return Math.max(0, from);
  }

  private show(line: number): void {
    const row = this.rows[line]!, top = row.offsetTop - this.code.scrollTop;
    if (top < 0) this.code.scrollTop = row.offsetTop;
    else if (top > this.code.clientHeight - row.offsetHeight) this.code.scrollTop = row.offsetTop - this.code.clientHeight + row.offsetHeight;
  }
}
