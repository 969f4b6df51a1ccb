/** The data of a trace view, unpacked when asked for: which value a name has at a step, what changed, where a step stands. */
import { decode, type Flat } from "@tilelab/shared/decode";
import { word, type Lang } from "@tilelab/shared/words";
import type { TraceBuffer, TraceData, TraceFile, TraceValue } from "@tilelab/shared/generated";

/** An array of any rank, row-major. `empty` marks the elements that nobody has written. */
export interface Nd {
  readonly shape: readonly number[];
  readonly data: Flat;
  readonly empty: Flat | null;
}

/** The value of a name at a step. `late`: a later one is not in this file. `changed`: where it differs, if it was written at this step. */
export interface Shown {
  readonly value: Nd;
  readonly step: number;
  readonly late: boolean;
  readonly changed: ReadonlySet<number> | null;
}

export interface Buffer extends Omit<TraceBuffer, "steps" | "values"> {
  readonly steps: Flat;
  readonly values: Flat;
}

const CACHE = 48 << 20; // bytes of unpacked values that are kept

export class TraceModel {
  readonly count: number;
  readonly buffers: readonly Buffer[];
  readonly line: Flat;
  readonly end: Flat;
  readonly file: Flat;
  readonly caller: Flat;
  readonly depth: Flat;
  readonly role: Flat;
  private readonly text: Flat;
  private readonly threads: Flat;
  private readonly names: Flat;
  private readonly loopValues: Flat;
  private readonly deepest: number;
  private readonly byName: ReadonlyMap<string, Buffer>;
  private readonly made = new Map<number, Nd>();
  private held = 0;
  /** Values that a live session sent for steps whose own are not in the file: `name@step`. */
  private readonly sent = new Map<string, Nd>();

  constructor(readonly data: TraceData) {
    const { steps } = data;
    this.count = data.count;
    [this.line, this.end, this.file, this.caller] = [steps.line, steps.end, steps.file, steps.caller].map(c => decode(c).data) as [Flat, Flat, Flat, Flat];
    [this.depth, this.role, this.text, this.threads] = [steps.depth, steps.role, steps.text, steps.threads].map(c => decode(c).data) as [Flat, Flat, Flat, Flat];
    this.names = decode(steps.names).data;
    const loops = decode(steps.loops);
    this.loopValues = loops.data;
    this.deepest = loops.shape[1] ?? 0;
    this.buffers = data.buffers.map(b => ({ ...b, steps: decode(b.steps).data, values: Int32Array.from(decode(b.values).data as ArrayLike<number>) }));
    this.byName = new Map(this.buffers.map(b => [b.name, b]));
  }

  // ------------------------------------------------------------------------------------------------- steps
  textOf(step: number): string {
    return this.data.texts[this.text[step]!] ?? "";
  }

  loops(step: number): [string, number][] {
    const names = this.data.loops[this.names[step]!] ?? [];
    return names.map((n, k) => [n, this.loopValues[step * this.deepest + k]!]);
  }

  /** How many loops are around a step. */
  loopDepth(step: number): number {
    return this.data.loops[this.names[step]!]?.length ?? 0;
  }

  roleOf(step: number): string {
    return this.data.roles[this.role[step]!] ?? "";
  }

  /** Which threads run a step, in words; empty for the whole block. */
  who(step: number, lang: Lang): string {
    return [this.roleOf(step), this.data.threads[this.threads[step]!] ?? ""].filter(Boolean).map(t => threadsText(t, lang)).join(": ");
  }

  fileOf(step: number): TraceFile | null {
    return this.data.files[this.file[step]!] ?? null;
  }

  wrote(step: number): string[] {
    return this.buffers.filter(b => lastAt(b.steps, step) >= 0 && b.steps[lastAt(b.steps, step)] === step).map(b => b.name);
  }

  // ------------------------------------------------------------------------------------------------ values
  buffer(name: string): Buffer | undefined {
    return this.byName.get(name);
  }

  /** Whether `name` has been written by `step`. */
  has(name: string, step: number): boolean {
    const b = this.byName.get(name);
    return b !== undefined && b.steps.length > 0 && b.steps[0]! <= step;
  }

  value(name: string, step: number): Shown | null {
    const b = this.byName.get(name);
    if (!b) return null;
    const last = lastAt(b.steps, step);
    if (last < 0) return null;
    const sent = this.sent.get(`${name}@${b.steps[last]}`);
    const k = sent ? last : keptAt(b, last);
    if (k < 0) return null;
    const value = sent ?? this.make(b.values[k]!), at = b.steps[k]!;
    return { value, step: at, late: k !== last, changed: at === step ? this.changed(b, k, value) : null };
  }

  /** Turns to another part of a large tensor; a live session sends its values anew. */
  move(name: string, origin: number[]): void {
    const b = this.byName.get(name);
    if (!b || !b.extent.length) return;
    b.origin = b.extent.map((n, k) => Math.max(0, Math.min(origin[k] ?? 0, b.shape[k]! - n)));
    b.values.fill(-1);
    for (const key of [...this.sent.keys()]) if (key.startsWith(`${name}@`)) this.sent.delete(key);
  }

  /** Takes a value that a live session sent; not if another part of the tensor has been turned to meanwhile. */
  take(name: string, step: number, origin: readonly number[], record: TraceValue): void {
    if (this.byName.get(name)?.origin.join() !== origin.join()) return;
    const { shape, data } = decode(record.array);
    this.sent.set(`${name}@${step}`, { shape, data, empty: record.empty && decode(record.empty).data });
  }

  private changed(b: Buffer, k: number, value: Nd): ReadonlySet<number> {
    const before = keptAt(b, k - 1);
    const old = this.sent.get(`${b.name}@${b.steps[k - 1]}`) ?? (before >= 0 ? this.make(b.values[before]!) : null);
    const out = new Set<number>(), alike = old !== null && old.shape.join() === value.shape.join();
    for (let e = 0; e < value.data.length; e++) {
      const empty = value.empty?.[e] ? 1 : 0;
      if (!alike) {
        if (!empty) out.add(e);
      } else if (empty !== (old.empty?.[e] ? 1 : 0) || (!empty && !Object.is(old.data[e]! + 0, value.data[e]! + 0))) out.add(e);
    }
    return out;
  }

  private make(place: number): Nd {
    const known = this.made.get(place);
    if (known) {
      this.made.delete(place); // what was used last goes last
      this.made.set(place, known);
      return known;
    }
    const record = this.data.values[place]!;
    let { shape, data } = decode(record.array);
    if (record.base >= 0 && record.where) {
      const base = this.make(record.base), where = decode(record.where).data, some = data;
      shape = base.shape;
      data = widest(base.data, some).from(base.data as Float64Array) as Flat;
      for (let k = 0; k < where.length; k++) data[where[k]!] = some[k]!;
    }
    const made: Nd = { shape, data, empty: record.empty && decode(record.empty).data };
    this.made.set(place, made);
    this.held += data.byteLength;
    for (const [old, nd] of this.made) {
      if (this.held <= CACHE || old === place) break;
      this.made.delete(old);
      this.held -= nd.data.byteLength;
    }
    return made;
  }
}

/** `thread 0`, `threads 32–63`, `4 of 128 threads` in the reader's language; anything else as it is. */
export function threadsText(text: string, lang: Lang): string {
  const found = /^(?:threads? (\d+(?:–\d+)?)|(\d+) of (\d+) threads)$/.exec(text);
  if (!found) return text;
  if (found[1]) return word(found[1].includes("–") ? "of_threads" : "of_thread", lang, { which: found[1] });
  return word("of_some", lang, { some: found[2], all: found[3] });
}

/** Integers and floats of several widths may meet in one chain of changes. */
function widest(a: Flat, b: Flat): Float64ArrayConstructor {
  const same = a.constructor === b.constructor;
  return (same ? a.constructor : Float64Array) as Float64ArrayConstructor;
}

/** The last place whose step is at or before `step`, or -1. */
export function lastAt(steps: ArrayLike<number>, step: number): number {
  let low = 0, high = steps.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (steps[middle]! <= step) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

function keptAt(b: Buffer, place: number): number {
  let k = place;
  while (k >= 0 && b.values[k]! < 0) k--;
  return k;
}
