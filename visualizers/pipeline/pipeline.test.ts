/** What each version holds in each step, against what Python worked out by counting (tests/golden/views). */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { VERSIONS, type PipelineViewRecord } from "@tilelab/shared/generated";
import { describe, expect, it } from "vitest";
import { phaseOf, rows, size, stepCells, versionCells, versionRows } from "./model.ts";

interface Golden {
  view: PipelineViewRecord;
  held: Record<string, [number, boolean]>;
  table: string[][];
}

const folder = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "tests", "golden", "views");
const names = readdirSync(folder).filter(n => n.startsWith("pipeline_"));

describe.each(names)("%s", name => {
  const { view, held, table } = JSON.parse(readFileSync(join(folder, name), "utf8")) as Golden;
  const plan = view.data.loops[0]!.plans[0]!;

  it("is of the version that this code draws", () => expect(view.version).toBe(VERSIONS.pipeline));

  it("knows what each version holds", () => {
    const pairs = versionRows(plan), found: Record<string, [number, boolean]> = {};
    for (const c of versionCells(plan)) found[`${pairs[c.row]!.join(",")},${c.step}`] = [c.iteration, c.pale];
    expect(found).toEqual(held);
  });

  it("puts every statement of every iteration once, no two in a cell", () => {
    const cells = stepCells(plan);
    expect(cells.length).toBe(plan.shown * plan.statements.length);
    expect(new Set(cells.map(c => `${c.row},${c.step}`)).size).toBe(cells.length);
    expect([...rows(plan)].sort()).toEqual(plan.statements.map((_, k) => k));
  });

  it("names the phases that Python names", () => {
    for (const row of table) expect(phaseOf(plan, Number(row[0]))).toBe(row[1] === "steady state" ? "steady" : row[1]);
  });
});

it("writes sizes as Python does", () => expect([size(512), size(4096), size(24576)]).toEqual(["512 B", "4 KiB", "24 KiB"]));
