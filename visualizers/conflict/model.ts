/** Two owners of every element, and where they part. */
import { decode, type Flat } from "@tilelab/shared/decode";
import type { ConflictData } from "@tilelab/shared/generated";

export class ConflictModel {
  readonly shape: readonly number[];
  readonly owners: readonly [Flat, Flat];
  readonly apart: Flat;
  /** Elements that differ, rising. */
  readonly differ: readonly number[];

  constructor(data: ConflictData) {
    const [one, two] = data.maps.map(m => decode(m.owners));
    this.shape = one!.shape;
    this.owners = [one!.data, two!.data];
    this.apart = decode(data.apart).data;
    const differ: number[] = [];
    this.apart.forEach((a, k) => a && differ.push(k));
    this.differ = differ;
  }

  get size(): number {
    return this.apart.length;
  }

  coordinates(element: number): number[] {
    const out: number[] = [];
    for (let k = this.shape.length - 1, left = element; k >= 0; k--) {
      out.unshift(left % this.shape[k]!);
      left = Math.floor(left / this.shape[k]!);
    }
    return out;
  }

  /** The elements that `thread` owns in map `which`. */
  held(which: 0 | 1, thread: number): Set<number> {
    const out = new Set<number>();
    this.owners[which].forEach((t, k) => t === thread && out.add(k));
    return out;
  }

  /** The next element that differs behind `element` (or before it), around the end. */
  next(element: number, step: 1 | -1): number {
    const { differ } = this;
    if (!differ.length) return -1;
    if (step > 0) return differ.find(d => d > element) ?? differ[0]!;
    return [...differ].reverse().find(d => d < element) ?? differ[differ.length - 1]!;
  }
}
