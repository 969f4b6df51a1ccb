/** The grids of the layout view: the tile by owner or by bank, the threads, one thread's registers, and shared memory itself. */
import { bankColour, rampAt, rgb, threadColour, type Rgb } from "@tilelab/shared/colour";
import { BAD, EMPTY } from "@tilelab/shared/generated";
import type { GridSource } from "@tilelab/shared/grid";
import type { LayoutModel, Slice } from "./model.ts";

export type ColourBy = "thread" | "register" | "bank" | "value";

const empty = rgb(EMPTY), bad = rgb(BAD);

/** A number as short as a cell needs it. */
export function short(value: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "NaN" : value > 0 ? "inf" : "−inf";
  if (Number.isInteger(value) && Math.abs(value) < 1e5) return String(value);
  return Math.abs(value) >= 1e4 || (value !== 0 && Math.abs(value) < 1e-3) ? value.toExponential(1) : String(Number(value.toPrecision(3)));
}

/** The colour of an element. */
export function painter(m: LayoutModel, by: ColourBy, before = false): (element: number) => Rgb {
  if (by === "value" && m.value) {
    const [low, high] = m.range, data = m.value;
    return e => (m.missing(e) ? empty : !Number.isFinite(data[e]!) ? bad : rampAt(high > low ? (data[e]! - low) / (high - low) : 0.5));
  }
  if (m.thread && m.register) {
    const { thread, register } = m, last = Math.max(1, m.record.registers - 1);
    return by === "register" ? e => rampAt(register[e * m.copies]! / last) : e => threadColour(thread[e * m.copies]!);
  }
  const bank = before ? m.bankBefore! : m.bank!;
  return e => bankColour(bank[e]!);
}

/** The tile. */
export function tile(m: LayoutModel, slice: Slice, by: ColourBy, before = false): GridSource {
  const { thread, register, value } = m, bank = before ? m.bankBefore : m.bank;
  const labels = (e: number): string[] => {
    const out = by === "value" && value ? [m.missing(e) ? "·" : short(value[e]!)] : [];
    if (thread && register) return [...out, `T${thread[e * m.copies]}·r${register[e * m.copies]}`, `T${thread[e * m.copies]}`];
    return [...out, String(bank![e])];
  };
  const wrapped = slice.shape.length < 2 && slice.rows > 1;
  return {
    rows: slice.rows, columns: slice.columns, item: (i, j) => slice.element(i, j), cell: e => slice.cell(e), colour: painter(m, by, before), labels,
    size: thread ? [48, 24] : [28, 24], ...(wrapped ? { rowName: (i: number) => String(i * slice.columns) } : {})
  };
}

/** The block's threads, one warp a row. */
export function threads(m: LayoutModel, warp: string): GridSource {
  const n = m.record.threads;
  return {
    rows: Math.ceil(n / 32), columns: Math.min(32, n), item: (w, lane) => (w * 32 + lane < n ? w * 32 + lane : -1), cell: t => [t >> 5, t & 31], colour: threadColour,
    rowName: w => `${warp} ${w}`, left: 58, size: [13, 15]
  };
}

/** The registers of one thread, and which element each holds. */
export function registers(m: LayoutModel, thread: number, by: ColourBy): GridSource {
  const held = thread < 0 ? new Int32Array(m.record.registers).fill(-1) : m.held(thread);
  const n = held.length, columns = n <= 4 ? n : 8, paint = painter(m, by);
  const labels = (r: number): string[] => {
    const e = held[r]!;
    return e < 0 ? ["·"] : [...(by === "value" && m.value ? [m.missing(e) ? "·" : short(m.value[e]!)] : []), m.coordinates(e).join(","), "…"];
  };
  return {
    rows: Math.ceil(n / columns), columns, item: (i, j) => (i * columns + j < n ? i * columns + j : -1),
    cell: r => [Math.floor(r / columns), r % columns],
    colour: r => (held[r]! < 0 ? empty : by === "thread" ? threadColour(thread) : paint(held[r]!)), labels, rowName: i => `r${i * columns}`,
    columnName: j => `+${j}`, left: 38, size: [54, 22]
  };
}

/** Shared memory: 128-byte lines × 32 banks, each word in the colour of the column of the tile whose element it holds. */
export function memory(m: LayoutModel): GridSource {
  const { words, shape, axes } = m.record, across = axes[axes.length - 1] ?? 0, n = shape[across] ?? 1;
  return {
    rows: Math.ceil(words / 32), columns: 32, item: (line, bank) => (line * 32 + bank < words ? line * 32 + bank : -1), cell: word => [word >> 5, word & 31],
    colour: word => {
      const e = m.inWord(word)[0];
      return e === undefined ? empty : rampAt((m.coordinates(e)[across] ?? 0) / Math.max(1, n - 1));
    },
    labels: word => {
      const e = m.inWord(word)[0];
      return e === undefined ? ["·"] : [m.coordinates(e).join(",")];
    },
    size: [38, 22], stretch: 5
  };
}

/** Another buffer's shared memory, each word in the colour of the thread that finds its element there. */
export function through(m: LayoutModel, shared: LayoutModel): GridSource {
  const { words } = shared.record, thread = m.thread!;
  const first = (word: number): number | undefined => shared.inWord(word).find(e => e < m.size);
  return {
    rows: Math.ceil(words / 32), columns: 32, item: (line, bank) => (line * 32 + bank < words ? line * 32 + bank : -1), cell: word => [word >> 5, word & 31],
    colour: word => {
      const e = first(word);
      return e === undefined ? empty : threadColour(thread[e * m.copies]!);
    },
    labels: word => {
      const e = first(word);
      return e === undefined ? ["·"] : [`T${thread[e * m.copies]}`];
    },
    size: [38, 22], stretch: 5
  };
}
