/** Numbers and values as text. */
import type { Nd } from "./model.ts";

/** A number as short as a cell needs it. */
export function short(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  if (Number.isInteger(value) && Math.abs(value) < 1e5) return String(value);
  return Math.abs(value) >= 1e4 || Math.abs(value) < 1e-3 ? value.toExponential(1) : String(Number(value.toPrecision(3)));
}

/** A number with the digits that a float32 has. */
export function long(value: number): string {
  if (!Number.isFinite(value)) return short(value);
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return String(value);
  const text = String(Number(value.toPrecision(7)));
  return text.length > 14 ? value.toExponential(4) : text;
}

/** A number, or the shape and the first elements of an array. */
export function valueText(v: Nd): string {
  if (v.data.length === 1) return v.empty?.[0] ? "·" : long(v.data[0]!);
  const head = Array.from(v.data.slice(0, 4) as ArrayLike<number>, (x, k) => (v.empty?.[k] ? "·" : short(x)));
  return `[${v.shape.join(", ")}] ${head.join(" ")}${v.data.length > 4 ? " …" : ""}`;
}

export const elementText = (name: string, index: readonly number[]): string => (index.length ? `${name}[${index.join(", ")}]` : name);

export interface Summary {
  low: number;
  high: number;
  mean: number;
  nan: number;
  inf: number;
  empty: number;
}

export function summary(v: Nd): Summary {
  const out: Summary = { low: Infinity, high: -Infinity, mean: 0, nan: 0, inf: 0, empty: 0 };
  let finite = 0;
  for (let k = 0; k < v.data.length; k++) {
    const x = v.data[k]!;
    if (v.empty?.[k]) out.empty++;
    else if (Number.isNaN(x)) out.nan++;
    else if (!Number.isFinite(x)) out.inf++;
    else {
      finite++;
      out.mean += x;
      if (x < out.low) out.low = x;
      if (x > out.high) out.high = x;
    }
  }
  out.mean = finite ? out.mean / finite : NaN;
  return out;
}

/** `k = 3, i = 0`. */
export const loopsText = (loops: readonly (readonly [string, number])[]): string => loops.map(([n, v]) => `${n} = ${v}`).join(", ");

/** The index of an element of a row-major array. */
export function indexOf(element: number, shape: readonly number[]): number[] {
  const out: number[] = [];
  for (let d = shape.length - 1; d >= 0; d--) {
    out.unshift(element % shape[d]!);
    element = Math.floor(element / shape[d]!);
  }
  return out;
}
