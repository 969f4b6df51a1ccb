/** Values as a grid of colours: one ramp, a colour of its own for NaN and infinities, grey where nobody has written. */
import { rampAt, rgb, type Rgb } from "@tilelab/shared/colour";
import { BAD, EMPTY } from "@tilelab/shared/generated";
import type { GridSource } from "@tilelab/shared/grid";
import { Slice } from "@tilelab/shared/slice";
import { short } from "./format.ts";
import type { Nd } from "./model.ts";

const WRONG = rgb(BAD), NOTHING = rgb(EMPTY);

export interface Scale {
  low: number;
  high: number;
}

export function colourOf(v: Nd, element: number, { low, high }: Scale): Rgb {
  if (v.empty?.[element]) return NOTHING;
  const x = v.data[element]!;
  if (!Number.isFinite(x)) return WRONG;
  return rampAt(high > low ? (x - low) / (high - low) : 0.5);
}

/** How an array of any rank lies on the page: its last two axes, the others cut at 0, unless chosen otherwise. */
export function sliceOf(v: Nd, axes?: readonly number[], at?: readonly number[]): Slice {
  const rank = v.shape.length, shape = rank ? v.shape : [1];
  return new Slice(shape, axes ?? (rank < 2 ? [0] : [rank - 2, rank - 1]), at ?? shape.map(() => 0));
}

export function heat(v: Nd, slice: Slice, scale: Scale, origin: readonly number[]): GridSource {
  const label = (e: number): string => (v.empty?.[e] ? "·" : short(v.data[e]!));
  const brief = (e: number): string => {
    const x = v.data[e]!;
    if (v.empty?.[e]) return "·";
    return Number.isFinite(x) ? String(Number(x.toPrecision(2))) : short(x);
  };
  const one = (e: number): string => {
    const x = v.data[e]!;
    return v.empty?.[e] || !Number.isFinite(x) ? "" : x !== 0 && Math.abs(x) < 0.05 ? `${x < 0 ? "-" : ""}0` : String(Number(x.toFixed(1)));
  };
  const [down, across] = slice.axes, wrapped = slice.shape.length < 2;
  const at = (axis: number | undefined): number => (axis === undefined ? 0 : (origin[axis] ?? 0));
  return {
    rows: slice.rows, columns: slice.columns, item: (i, j) => slice.element(i, j), cell: e => slice.cell(e), colour: e => colourOf(v, e, scale),
    labels: e => [label(e), brief(e), brief(e).replace(/^(-?)0\./, "$1."), one(e).replace(/^(-?)0\./, "$1.")], size: [50, 24], left: 40, stretch: 1.4,
    rowName: i => String(wrapped ? at(0) + i * slice.columns : at(down) + i),
    columnName: j => String(wrapped ? j + (slice.rows > 1 ? 0 : at(0)) : at(across) + j)
  };
}
