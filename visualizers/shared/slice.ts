/** The rows and columns of a tile: two axes of an array of any rank, the others cut at one index; a long vector is wrapped. */
export class Slice {
  readonly rows: number;
  readonly columns: number;
  private readonly wrapped: boolean;
  private readonly strides: number[];
  private readonly base: number;

  constructor(readonly shape: readonly number[], readonly axes: readonly number[], readonly at: readonly number[]) {
    this.strides = shape.map((_, k) => shape.slice(k + 1).reduce((a, n) => a * n, 1));
    const [down, across] = axes;
    this.wrapped = shape.length < 2;
    if (this.wrapped) {
      const n = shape[0] ?? 1;
      this.columns = n <= 64 ? n : 32;
      this.rows = Math.ceil(n / this.columns);
      this.base = 0;
    } else {
      this.rows = shape[down!]!;
      this.columns = shape[across!]!;
      this.base = at.reduce((sum, index, k) => (k === down || k === across ? sum : sum + index * this.strides[k]!), 0);
    }
  }

  /** The cell of an element, or null where the cut does not show it. */
  cell(element: number): [number, number] | null {
    if (this.wrapped) return [Math.floor(element / this.columns), element % this.columns];
    const [down, across] = this.axes;
    const at = this.strides.map((stride, k) => Math.floor(element / stride) % this.shape[k]!);
    const shown = at.every((index, k) => k === down || k === across || index === this.at[k]);
    return shown ? [at[down!]!, at[across!]!] : null;
  }

  /** The element in a cell, or -1 behind the end of a wrapped vector. */
  element(row: number, column: number): number {
    if (this.wrapped) {
      const element = row * this.columns + column;
      return element < (this.shape[0] ?? 1) ? element : -1;
    }
    return this.base + row * this.strides[this.axes[0]!]! + column * this.strides[this.axes[1]!]!;
  }
}
