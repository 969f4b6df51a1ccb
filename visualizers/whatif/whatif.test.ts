/** The order of the rows and what a variant changes, against the table that Python wrote (tests/golden/views). */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { VERSIONS, type WhatIfViewRecord } from "@tilelab/shared/generated";
import { describe, expect, it } from "vitest";
import { changes, nameOf, rows } from "./model.ts";

const file = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "tests", "golden", "views", "whatif_small.json");
const { view, table } = JSON.parse(readFileSync(file, "utf8")) as { view: WhatIfViewRecord; table: string[][] };
const { data } = view;

describe("the table", () => {
  it("is of the version that this code draws", () => expect(view.version).toBe(VERSIONS.whatif));

  it("says what Python's table says", () => data.variants.forEach((_, k) => expect(data.columns.map(c => c.texts[k])).toEqual(table[k])));

  it("comes as it is, or sorted with what is unknown last", () => {
    expect(rows(data, null, false)).toEqual([0, 1, 2, 3]);
    expect(rows(data, { key: "smem", falling: false }, false)).toEqual([0, 1, 2, 3]);
    expect(rows(data, { key: "smem", falling: true }, false)).toEqual([2, 1, 0, 3]);
    expect(rows(data, { key: "num_stages", falling: true }, false)).toEqual([2, 1, 3, 0]);
    expect(rows(data, { key: "target", falling: false }, false)).toEqual([3, 0, 1, 2]);
  });

  it("leaves out what does not run", () => expect(rows(data, null, true)).toEqual([0, 1]));
});

describe("a variant", () => {
  it("is called by its edits", () => {
    expect(nameOf(data.variants[2]!, "as written")).toBe("num_stages=24, target=sm_80");
    expect(nameOf(data.variants[0]!, "as written")).toBe("as written");
  });

  it("says what it changes, and by how much", () => {
    expect(changes(data, 0)).toEqual([]);
    expect(changes(data, 1)).toContainEqual({ key: "smem", text: "24,576 / 166,912", before: "16,384 / 166,912", by: "+8,192" });
    expect(changes(data, 2).map(c => c.key)).toEqual(["smem", "blocks_per_sm"]);
  });
});
