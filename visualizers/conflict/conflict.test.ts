/** Where two maps part, against Python's count (tests/golden/views). */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { VERSIONS, type ConflictViewRecord } from "@tilelab/shared/generated";
import { describe, expect, it } from "vitest";
import { ConflictModel } from "./model.ts";

const file = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "tests", "golden", "views", "conflict_small.json");
const { view, differ, table } = JSON.parse(readFileSync(file, "utf8")) as { view: ConflictViewRecord; differ: number[]; table: string[][] };
const m = new ConflictModel(view.data);

describe("two maps", () => {
  it("are of the version that this code draws", () => expect(view.version).toBe(VERSIONS.conflict));

  it("part where Python says", () => {
    expect(m.differ).toEqual(differ);
    expect(m.differ.map(e => [`(${m.coordinates(e).join(", ")})`, ...m.owners.map(o => String(o[e]))])).toEqual(table);
  });

  it("are walked over from one difference to the next, and around", () => {
    expect([m.next(-1, 1), m.next(1, 1), m.next(2, 1), m.next(1, -1), m.next(5, -1)]).toEqual([1, 2, 1, 2, 2]);
  });

  it("know what a thread holds", () => {
    expect([...m.held(0, 0)]).toEqual([0, 4]);
    expect([...m.held(1, 2)]).toEqual([1]);
  });
});
