/** The links between the panes of a program, and the texts after each pass. Nothing is worked out here that Python did not say. */
import { decode } from "@tilelab/shared/decode";
import type { ProgramData, ProgramPane, ProgramPass, ProgramVariant } from "@tilelab/shared/generated";

/** A line of a pane of a variant. */
export interface Spot {
  variant: number;
  key: string;
  line: number;
}

/** A row of a change: kept, removed or added; `gap` stands for lines left out. */
export interface Row {
  sign: " " | "-" | "+" | "gap";
  text: string;
}

export class ProgramModel {
  private readonly placeOf = new Map<ProgramPane, ArrayLike<number>>();
  private readonly texts = new Map<ProgramPass, string[]>();

  constructor(readonly data: ProgramData) {}

  pane(variant: number, key: string): ProgramPane | undefined {
    return this.data.variants[variant]?.panes.find(p => p.key === key);
  }

  places(pane: ProgramPane): ArrayLike<number> {
    const known = this.placeOf.get(pane) ?? decode(pane.place).data;
    this.placeOf.set(pane, known);
    return known;
  }

  /** `file:line` of a place and of the lines that called the macros around it, innermost first. */
  chain(place: number): string[] {
    const out: string[] = [];
    for (let at = place; at >= 0; at = this.data.places[at]!.caller) out.push(this.key(at));
    return [...new Set(out)];
  }

  key(place: number): string {
    const { file, line } = this.data.places[place]!;
    return `${file}:${line}`;
  }

  /** The user's line behind a spot, or null where there is none. */
  user(spot: Spot): { file: string; line: number } | null {
    const pane = this.pane(spot.variant, spot.key), at = pane ? (this.places(pane)[spot.line] ?? -1) : -1;
    if (at < 0) return null;
    const { file, line } = this.data.places[at]!;
    return { file: this.data.files[file]!, line };
  }

  /** The lines of a pane that belong to a spot of any pane. */
  linked(spot: Spot, variant: number, key: string): number[] {
    const from = this.pane(spot.variant, spot.key), to = this.pane(variant, key);
    const at = from ? (this.places(from)[spot.line] ?? -1) : -1;
    if (at < 0 || !to) return [];
    const own = this.key(at), above = new Set(this.chain(at)), exact = new Set([at]);
    if (spot.key === "python") this.data.places.forEach((_, p) => this.chain(p).includes(own) && exact.add(p));
    const fits = (p: number): boolean => (key === "python" ? (spot.key === "python" ? this.key(p) === own : above.has(this.key(p))) : exact.has(p));
    return lines(this.places(to), p => p >= 0 && fits(p));
  }

  /** Lines of a pane that differ between two variants. */
  differing(variant: number, other: number, key: string): Set<number> {
    const out = new Set<number>();
    for (const d of this.data.diffs) {
      const side = d.key !== key ? -1 : d.a === variant && d.b === other ? 0 : d.b === variant && d.a === other ? 2 : -1;
      if (side >= 0) for (const hunk of d.hunks) for (let k = hunk[side]!; k < hunk[side + 1]!; k++) out.add(k);
    }
    return out;
  }

  // ------------------------------------------------------------------------------------------------- passes
  textAfter(variant: ProgramVariant, which: number): string[] {
    const pass = variant.passes[which];
    if (!pass) return [];
    const known = this.texts.get(pass);
    if (known) return known;
    const before = this.textAfter(variant, pass.base), out: string[] = [];
    let done = 0;
    for (const h of pass.hunks) {
      out.push(...before.slice(done, h.at), ...h.added.map(k => this.data.texts[k]!));
      done = h.at + h.removed;
    }
    out.push(...before.slice(done));
    this.texts.set(pass, out);
    return out;
  }

  /** What a pass changed, with `context` lines around each change. */
  rows(variant: ProgramVariant, which: number, context: number): Row[] {
    const pass = variant.passes[which]!, before = this.textAfter(variant, pass.base), out: Row[] = [];
    let done = 0;
    const keep = (from: number, to: number): void => {
      for (let k = from; k < to; k++) out.push({ sign: " ", text: before[k]! });
    };
    pass.hunks.forEach((h, n) => {
      const start = Math.max(done, h.at - context);
      if (start > done) {
        if (n) keep(done, Math.min(start, done + context));
        const left = Math.max(done, n ? Math.min(start, done + context) : done);
        if (start > left) out.push({ sign: "gap", text: String(start - left) });
      }
      keep(start, h.at);
      for (let k = h.at; k < h.at + h.removed; k++) out.push({ sign: "-", text: before[k]! });
      for (const k of h.added) out.push({ sign: "+", text: this.data.texts[k]! });
      done = h.at + h.removed;
    });
    const end = Math.min(before.length, done + context);
    keep(done, end);
    if (end < before.length) out.push({ sign: "gap", text: String(before.length - end) });
    return out;
  }

  /** The passes to list: those that changed something (or all), whose name or changed lines hold `query`. */
  listed(variant: ProgramVariant, query: string, all: boolean): number[] {
    const wanted = query.trim().toLowerCase();
    const holds = (text: string): boolean => text.toLowerCase().includes(wanted);
    return variant.passes.map((_, k) => k).filter(k => {
      const pass = variant.passes[k]!;
      if (!all && !pass.changed) return false;
      if (!wanted || holds(pass.name)) return true;
      const before = this.textAfter(variant, pass.base);
      return pass.hunks.some(h => h.added.some(t => holds(this.data.texts[t]!)) || before.slice(h.at, h.at + h.removed).some(holds));
    });
  }
}

export function lines(places: ArrayLike<number>, fits: (place: number) => boolean): number[] {
  const out: number[] = [];
  for (let k = 0; k < places.length; k++) if (fits(places[k]!)) out.push(k);
  return out;
}

/** Rising numbers with neighbours joined: `3–5, 9`; as Python writes them. */
export function runs(numbers: readonly number[], most = 6): string {
  const out: [number, number][] = [];
  for (const n of numbers) {
    const last = out[out.length - 1];
    if (last && n === last[1] + 1) last[1] = n;
    else out.push([n, n]);
  }
  return out.slice(0, most).map(([a, b]) => (a === b ? `${a}` : `${a}–${b}`)).join(", ") + (out.length > most ? " …" : "");
}
