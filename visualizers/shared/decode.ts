/** Arrays as the Python side wrote them, back as flat typed arrays in row-major order. */
import type { EncodedArray } from "./generated.ts";

export type Flat = Uint8Array | Uint16Array | Int8Array | Int16Array | Int32Array | Float32Array | Float64Array;

export interface Decoded {
  shape: readonly number[];
  data: Flat;
}

const TYPES = {
  u8: (b: ArrayBuffer) => new Uint8Array(b),
  u16: (b: ArrayBuffer) => new Uint16Array(b),
  i8: (b: ArrayBuffer) => new Int8Array(b),
  i16: (b: ArrayBuffer) => new Int16Array(b),
  i32: (b: ArrayBuffer) => new Int32Array(b),
  f16: (b: ArrayBuffer) => Float32Array.from(new Uint16Array(b), half),
  bf16: (b: ArrayBuffer) => new Float32Array(Uint32Array.from(new Uint16Array(b), bits => bits << 16).buffer),
  f32: (b: ArrayBuffer) => new Float32Array(b),
  f64: (b: ArrayBuffer) => new Float64Array(b)
} as const;

/** IEEE binary16. */
function half(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1, exponent = (bits >> 10) & 31, fraction = bits & 1023;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -14 * (fraction / 1024));
}

export function decode(record: EncodedArray): Decoded {
  const { shape } = record;
  if ("base64" in record) {
    const raw = Uint8Array.from(atob(record.base64), c => c.charCodeAt(0));
    const data = TYPES[record.type](raw.buffer);
    if (record.form === "dense") return { shape, data };
    const all = new (data.constructor as Float64ArrayConstructor)(shape.reduce((a, n) => a * n, 1));
    return { shape, data: all.fill(data[0] as number) };
  }
  // One table for each axis; the last axis varies fastest, so the array grows from the front.
  const join = record.form === "sum" ? (a: number, b: number) => a + b : (a: number, b: number) => a ^ b;
  let data = Int32Array.of(record.base);
  for (const part of record.parts) {
    const wider = new Int32Array(data.length * part.length);
    let k = 0;
    for (const left of data) for (const right of part) wider[k++] = join(left, right);
    data = wider;
  }
  return { shape, data };
}

/** Positions of `data` by value: those of value v are `order[starts[v]] … order[starts[v + 1] - 1]`, rising. */
export class Inverse {
  readonly starts: Int32Array;
  readonly order: Int32Array;

  constructor(data: ArrayLike<number>, values: number) {
    this.starts = new Int32Array(values + 1);
    for (let k = 0; k < data.length; k++) this.starts[(data[k] as number) + 1]! += 1;
    for (let v = 0; v < values; v++) this.starts[v + 1]! += this.starts[v] as number;
    const next = this.starts.slice();
    this.order = new Int32Array(data.length);
    for (let k = 0; k < data.length; k++) this.order[next[data[k] as number]!++] = k;
  }

  at(value: number): Int32Array {
    if (value < 0 || value + 1 >= this.starts.length) return new Int32Array(0);
    return this.order.subarray(this.starts[value], this.starts[value + 1]);
  }
}
