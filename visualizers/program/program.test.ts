/** The links of the program view, against what Python worked out by plain loops (tests/golden/views). */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { ProgramViewRecord } from "@tilelab/shared/generated";
import { VERSIONS } from "@tilelab/shared/generated";
import { describe, expect, it } from "vitest";
import { ProgramModel, runs } from "./model.ts";
import { becomes } from "./table.ts";

interface Golden {
  view: ProgramViewRecord;
  links: { from: [string, number]; to: Record<string, number[]> }[];
  texts: string[][];
  table: string[][];
}

const folder = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "tests", "golden", "views");
const { view, links, texts, table } = JSON.parse(readFileSync(join(folder, "program_small.json"), "utf8")) as Golden;
const m = new ProgramModel(view.data), variant = view.data.variants[0]!;

it("is of the version that this code draws", () => {
  expect(view.version).toBe(VERSIONS.program);
});

describe("links", () => {
  it("are those that Python found", () => {
    expect(links.length).toBeGreaterThan(10);
    for (const { from, to } of links) {
      for (const [key, known] of Object.entries(to)) {
        expect([from, key, m.linked({ variant: 0, key: from[0], line: from[1] }, 0, key)]).toEqual([from, key, known]);
      }
    }
  });

  it("lead back to the Python line they came from", () => {
    const python = m.pane(0, "python")!, places = m.places(python);
    for (let line = 0; line < python.lines.length; line++) {
      if (places[line]! < 0) continue;
      for (const pane of variant.panes.slice(1)) {
        for (const there of m.linked({ variant: 0, key: "python", line }, 0, pane.key)) {
          expect(m.linked({ variant: 0, key: pane.key, line: there }, 0, "python")).toContain(line);
        }
      }
    }
  });

  it("of a line without a place are none", () => {
    expect(m.linked({ variant: 0, key: "source", line: 0 }, 0, "python")).toEqual([]);
    expect(m.user({ variant: 0, key: "source", line: 0 })).toBeNull();
  });
});

describe("passes", () => {
  it("give the texts that the compiler gave", () => {
    expect(variant.passes.map((p, k) => (p.changed ? m.textAfter(variant, k) : []))).toEqual(texts);
  });

  it("show each change with its surroundings, and what was left out", () => {
    variant.passes.forEach((p, k) => {
      const rows = m.rows(variant, k, 1), all = m.rows(variant, k, Infinity);
      expect(rows.filter(r => r.sign === "+")).toHaveLength(p.hunks.reduce((n, x) => n + x.added.length, 0));
      expect(rows.filter(r => r.sign === "-")).toHaveLength(p.hunks.reduce((n, x) => n + x.removed, 0));
      const left = rows.filter(r => r.sign === "gap").reduce((n, r) => n + Number(r.text), 0);
      expect(rows.filter(r => r.sign !== "gap").length + left).toBe(all.length);
      if (p.changed) expect(all.filter(r => r.sign !== "-").map(r => r.text)).toEqual(m.textAfter(variant, k));
    });
  });

  it("are found by name and by what they changed", () => {
    const names = (query: string, all = false): string[] => m.listed(variant, query, all).map(k => variant.passes[k]!.name);
    expect(names("")).toEqual(["Capture", "Lower", "Other"]);
    expect(names("", true)).toEqual(["Capture", "Nothing", "Lower", "Other"]);
    expect(names("LOWER")).toEqual(["Lower"]);
    expect(names("ldg")).toEqual(["Lower"]);
    expect(names("nowhere")).toEqual([]);
  });
});

it("says which lines of two variants differ", () => {
  expect([...m.differing(0, 1, "source")]).toEqual([5]);
  expect([...m.differing(1, 0, "source")]).toEqual([5]);
  expect(m.differing(0, 1, "python").size).toBe(0);
});

it("writes the table that Python writes", () => {
  expect(becomes(m, 0)).toEqual(table);
  expect(runs([1, 2, 3, 7, 9, 10])).toBe("1–3, 7, 9–10");
});
