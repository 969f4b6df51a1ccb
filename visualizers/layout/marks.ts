/** Which cells of each panel belong to what is pointed at. */
import type { Marks } from "@tilelab/shared/grid";
import type { LayoutModel, Selection } from "./model.ts";

export type Place = "tile" | "before" | "threads" | "registers" | "memory" | "through";

export function marks(m: LayoutModel, place: Place, s: Selection, shared: LayoutModel | null = null): Marks {
  if (place === "through") return shared ? inShared(m, shared, s) : { focus: new Set(), kin: new Set() };
  const made: Marks = { focus: new Set(), kin: new Set() };
  WAYS[place](m, s, made.focus as Set<number>, made.kin as Set<number>);
  return made.kin.size < (place === "memory" ? m.record.words : m.size) ? made : { focus: made.focus, kin: new Set() };
}

type Way = (m: LayoutModel, s: Selection, focus: Set<number>, kin: Set<number>) => void;

/** The word of the element, and the words in which its thread finds the rest. */
function inShared(m: LayoutModel, shared: LayoutModel, s: Selection): Marks {
  const word = s.element < 0 ? -1 : shared.word![s.element]!;
  const kin = new Set<number>();
  if (s.thread >= 0) for (const e of m.held(s.thread)) if (e >= 0) kin.add(shared.word![e]!);
  return { focus: new Set(word < 0 ? [] : [word]), kin: kin.size < shared.record.words ? kin : new Set() };
}

const WAYS: Record<Exclude<Place, "through">, Way> = {
  threads(m, s, focus) {
    const owners = m.owners(s.element).map(o => o.thread);
    for (const t of owners.length ? owners : [s.thread]) if (t >= 0) focus.add(t);
  },
  registers(_, s, focus) {
    if (s.register >= 0) focus.add(s.register);
  },
  memory(m, s, focus, kin) {
    if (s.word < 0) return;
    focus.add(s.word);
    for (let w = s.word & 31; w < m.record.words; w += 32) kin.add(w);
  },
  tile: (m, s, focus, kin) => inTile(m, s, false, focus, kin),
  before: (m, s, focus, kin) => inTile(m, s, true, focus, kin)
};

/** A thread's elements, or the elements of the same bank; a word's neighbours are framed together. */
function inTile(m: LayoutModel, s: Selection, before: boolean, focus: Set<number>, kin: Set<number>): void {
  if (m.thread) {
    if (s.element >= 0) focus.add(s.element);
    if (s.thread >= 0) for (const e of m.held(s.thread)) if (e >= 0) kin.add(e);
    return;
  }
  const bank = (before ? m.bankBefore : m.bank)?.[s.element];
  if (bank === undefined) return;
  for (const e of m.inWord(s.word)) focus.add(e);
  for (const e of m.inBank(bank, before)) kin.add(e);
}
