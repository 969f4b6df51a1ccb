/** The what-if table as rows to sort, and what a variant changes against the kernel as written. */
import type { WhatIfColumn, WhatIfData, WhatIfVariant } from "@tilelab/shared/generated";

export interface Sorting {
  key: string;
  falling: boolean;
}

/** Rows in the order of the picture: by a column, unknown values last; as they come where nothing sorts. */
export function rows(data: WhatIfData, sorting: Sorting | null, onlyRuns: boolean): number[] {
  const all = data.variants.map((_, k) => k).filter(k => !onlyRuns || data.variants[k]!.runs);
  const column = sorting && data.columns.find(c => c.key === sorting.key);
  if (!column) return all;
  const sign = sorting.falling ? -1 : 1;
  return all.sort((a, b) => compare(column, a, b, sign) || a - b);
}

function compare(c: WhatIfColumn, a: number, b: number, sign: number): number {
  const x = c.order[a] ?? null, y = c.order[b] ?? null;
  if (x !== null && y !== null) return sign * (x - y);
  if (x !== null || y !== null) return x === null ? 1 : -1;
  return sign * c.texts[a]!.localeCompare(c.texts[b]!);
}

export const nameOf = (v: WhatIfVariant, written: string): string => Object.entries(v.edits).map(([k, x]) => `${k}=${String(x)}`).join(", ") || written;

/** Numeric columns in which variant `k` differs from the first: key, its text, and by how much where that is a whole number. */
export function changes(data: WhatIfData, k: number): { key: string; text: string; before: string; by: string }[] {
  return data.columns.filter(c => c.key !== "verdict" && !(c.key in data.axes) && c.texts[k] !== c.texts[0]).map(c => {
    const now = c.order[k] ?? null, then = c.order[0] ?? null, by = now !== null && then !== null ? now - then : 0;
    return { key: c.key, text: c.texts[k]!, before: c.texts[0]!, by: Number.isInteger(by) && by ? `${by > 0 ? "+" : "−"}${Math.abs(by).toLocaleString("en")}` : "" };
  });
}
