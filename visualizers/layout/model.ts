/** A layout record with its arrays unpacked, and the links between elements, threads, registers and words of shared memory. */
import { decode, Inverse, type Flat } from "@tilelab/shared/decode";
import type { LayoutRecord } from "@tilelab/shared/generated";

export { Slice } from "@tilelab/shared/slice";

/** What is pointed at. -1: nothing. `register` belongs to `thread`. */
export interface Selection {
  element: number;
  thread: number;
  register: number;
  word: number;
}

export const NOTHING: Selection = { element: -1, thread: -1, register: -1, word: -1 };

export class LayoutModel {
  readonly size: number;
  readonly copies: number;
  readonly thread: Flat | null;
  readonly register: Flat | null;
  readonly address: Flat | null;
  readonly bank: Flat | null;
  readonly bankBefore: Flat | null;
  readonly word: Flat | null;
  value: Flat | null;
  private readonly byThread: Inverse | null;
  private readonly byWord: Inverse | null;
  private banks: Inverse[] | null = null;
  private readonly strides: number[];
  private unwritten: Flat | null = null;
  private readonly frames = new Map<number, Flat>();
  range: readonly [number, number];

  constructor(readonly record: LayoutRecord) {
    const get = (name: keyof LayoutRecord["arrays"]): Flat | null => {
      const encoded = record.arrays[name];
      return encoded ? decode(encoded).data : null;
    };
    this.size = record.shape.reduce((a, n) => a * n, 1);
    this.thread = get("thread");
    this.register = get("register");
    this.address = get("address");
    this.bank = get("bank");
    this.bankBefore = get("bank_before");
    this.word = get("word");
    this.value = get("value");
    this.copies = this.thread ? this.thread.length / this.size : 1;
    this.byThread = this.thread && new Inverse(this.thread, record.threads);
    this.byWord = this.word && new Inverse(this.word, record.words);
    this.strides = record.shape.map((_, k) => record.shape.slice(k + 1).reduce((a, n) => a * n, 1));
    this.range = this.value ? extent(this.value) : [0, 0];
    for (let k = 0; k < this.steps.length; k++) {  // one scale for all steps
      const [low, high] = extent(this.frame(k));
      this.range = [Math.min(this.range[0], low), Math.max(this.range[1], high)];
    }
  }

  /** The steps at which values are known. */
  get steps(): LayoutRecord["frames"] {
    return this.record.frames ?? [];
  }

  /** Shows the values after the `k`th of the steps. */
  showFrame(k: number): void {
    this.value = this.frame(k);
    this.unwritten = decode(this.steps[k]!.unwritten).data;
  }

  /** Whether nobody has written an element yet, at the step that is shown. */
  missing(element: number): boolean {
    return this.unwritten?.[element] === 1;
  }

  private frame(k: number): Flat {
    const known = this.frames.get(k) ?? decode(this.steps[k]!.value).data;
    this.frames.set(k, known);
    return known;
  }

  coordinates(element: number): number[] {
    return this.strides.map((stride, k) => Math.floor(element / stride) % this.record.shape[k]!);
  }

  /** (thread, register) of every copy of an element, in order, each thread once. */
  owners(element: number): { thread: number; register: number }[] {
    if (!this.thread || !this.register || element < 0) return [];
    const seen = new Map<number, number>();
    for (let k = element * this.copies; k < (element + 1) * this.copies; k++) {
      if (!seen.has(this.thread[k]!)) seen.set(this.thread[k]!, this.register[k]!);
    }
    return [...seen].map(([thread, register]) => ({ thread, register }));
  }

  /** What a thread holds: register → element, -1 where a register holds nothing. */
  held(thread: number): Int32Array {
    const out = new Int32Array(this.record.registers).fill(-1);
    for (const place of this.byThread?.at(thread) ?? []) out[this.register![place]!] = Math.floor(place / this.copies);
    return out;
  }

  /** Elements that lie (in part) in a word of shared memory. */
  inWord(word: number): Int32Array {
    for (let k = 0; k < Math.max(1, this.record.bits >> 5); k++) {
      const found = this.byWord?.at(word - k);
      if (found?.length) return found;
    }
    return new Int32Array(0);
  }

  /** Elements in a bank, as stored or row-major. */
  inBank(bank: number, before: boolean): Int32Array {
    this.banks ??= [this.bank, this.bankBefore].map(b => new Inverse(b ?? [], 32));
    return this.banks[before ? 1 : 0]!.at(bank);
  }

  /** Lanes of a column read that hit each bank. */
  hits(which: "hits" | "hits_before"): Flat {
    const encoded = this.record.arrays[which];
    return encoded ? decode(encoded).data : new Int32Array(0);
  }

  /** The selection that follows from pointing at an element, a thread, a register of a thread, or a word. */
  atElement(element: number): Selection {
    const owner = this.owners(element)[0];
    return { element, thread: owner?.thread ?? -1, register: owner?.register ?? -1, word: this.word?.[element] ?? -1 };
  }

  atThread(thread: number): Selection {
    return { ...NOTHING, thread };
  }

  atRegister(thread: number, register: number): Selection {
    return { element: this.held(thread)[register] ?? -1, thread, register, word: -1 };
  }

  atWord(word: number): Selection {
    return { ...NOTHING, element: this.inWord(word)[0] ?? -1, word };
  }
}

function extent(data: Flat): [number, number] {
  let low = Infinity, high = -Infinity;
  for (const v of data) {
    if (!Number.isFinite(v)) continue;
    if (v < low) low = v;
    if (v > high) high = v;
  }
  return low <= high ? [low, high] : [0, 0];
}
