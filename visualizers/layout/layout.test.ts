/** The links of the layout view, against what Python worked out by scanning every element (tests/golden/views). */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { ViewRecord } from "@tilelab/shared/generated";
import { VERSIONS } from "@tilelab/shared/generated";
import { describe, expect, it } from "vitest";
import { marks } from "./marks.ts";
import { LayoutModel, NOTHING, Slice } from "./model.ts";
import { memory, registers, short, threads, tile } from "./panels.ts";
import { runs } from "./table.ts";

interface Golden {
  view: ViewRecord;
  links: {
    elements: Record<string, { owners?: [number, number][]; address?: number; bank?: number; bank_before?: number; word?: number }>;
    held: Record<string, number[]>;
  };
  table: string[][];
}

const folder = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "tests", "golden", "views");
const names = readdirSync(folder).filter(n => n.startsWith("layout_"));
const read = (name: string): Golden => JSON.parse(readFileSync(join(folder, name), "utf8")) as Golden;
const open = (name: string): LayoutModel => new LayoutModel(read(name).view.data.layouts[0]!);

describe.each(names)("%s", name => {
  const { view, links, table } = read(name);
  const record = view.data.layouts[0]!;
  const m = new LayoutModel(record);

  it("is of the version that this code draws", () => {
    expect(view.version).toBe(VERSIONS.layout);
  });

  it("knows where each element lives", () => {
    for (const [key, known] of Object.entries(links.elements)) {
      const e = Number(key);
      if (known.owners) expect(m.owners(e).map(o => [o.thread, o.register])).toEqual(known.owners);
      else expect([m.address![e], m.bank![e], m.bankBefore![e], m.word![e]]).toEqual([known.address, known.bank, known.bank_before, known.word]);
    }
  });

  it("knows what each thread or word holds", () => {
    for (const [key, known] of Object.entries(links.held)) {
      const held = m.thread ? [...m.held(Number(key))].filter(e => e >= 0) : [...m.inWord(Number(key))];
      expect(held).toEqual(known);
    }
  });

  it("leads from an element to its owner and back", () => {
    for (let e = 0; e < m.size; e++) {
      const at = m.atElement(e);
      if (m.thread) expect(m.atRegister(at.thread, at.register).element).toBe(e);
      else expect([...m.inWord(at.word)]).toContain(e);
    }
  });

  it("shows every element of the cut once", () => {
    const slice = new Slice(record.shape, record.axes, record.at);
    const source = tile(m, slice, "thread"), seen = new Set<number>();
    for (let i = 0; i < source.rows; i++) for (let j = 0; j < source.columns; j++) {
        seen.add(source.item(i, j));
        expect(source.cell(source.item(i, j))).toEqual([i, j]);
      }
    const others = record.shape.filter((_, k) => !record.axes.includes(k)).reduce((a, n) => a * n, 1);
    expect(seen.size).toBe(m.size / others);
  });

  it("writes the table that Python writes", () => {
    if (m.thread) expect(table.map((_, t) => runs(m, m.held(t)))).toEqual(table.map(row => row[3]));
  });
});

it("cuts an array of any rank along any two axes", () => {
  const slice = new Slice([3, 8, 4], [2, 0], [0, 5, 0]);
  expect([slice.rows, slice.columns]).toEqual([4, 3]);
  expect(slice.element(2, 1)).toBe(1 * 32 + 5 * 4 + 2);
});

it("wraps a long vector in rows of 32 and leaves others alone", () => {
  expect([new Slice([256], [0], [0]).rows, new Slice([256], [0], [0]).columns]).toEqual([8, 32]);
  expect(new Slice([100], [0], [0]).rows).toBe(4);
  expect(new Slice([100], [0], [0]).element(3, 4)).toBe(-1);
  expect(new Slice([64], [0], [0]).rows).toBe(1);
  expect(new Slice([256], [0], [0]).element(2, 9)).toBe(73);
});

describe("marks", () => {
  const m = open("layout_mma_d.json");

  it("keeps a thread's elements bright and frames the one pointed at", () => {
    const { focus, kin } = marks(m, "tile", m.atElement(2 * 8 + 5));
    expect([...focus]).toEqual([21]);
    expect([...kin]).toEqual([20, 21, 84, 85]);
    expect([...marks(m, "threads", m.atElement(21)).focus]).toEqual([10]);
    expect([...marks(m, "registers", m.atElement(21)).focus]).toEqual([1]);
  });

  it("frames every owner of a replicated element", () => {
    const copies = open("layout_copies.json");
    expect([...marks(copies, "threads", copies.atElement(5)).focus]).toEqual([1, 9, 17, 25]);
  });

  it("shows a bank: the same in the tile and as a column of memory", () => {
    const shared = open("layout_swizzled.json"), at = shared.atElement(64 + 3);
    const { kin } = marks(shared, "tile", at);
    expect([...kin].every(e => shared.bank![e] === shared.bank![67])).toBe(true);
    expect(kin.size).toBe(64 * 64 / 32);
    expect([...marks(shared, "memory", at).kin].every(w => w % 32 === shared.bank![67])).toBe(true);
    expect([...marks(shared, "before", at).kin].every(e => shared.bankBefore![e] === shared.bankBefore![67])).toBe(true);
  });

  it("marks nothing where nothing is selected", () => {
    for (const place of ["tile", "threads", "registers"] as const) expect(marks(m, place, NOTHING)).toEqual({ focus: new Set(), kin: new Set() });
  });
});

describe("panels", () => {
  it("puts one warp on a row of threads and every word of memory in its bank", () => {
    const m = open("layout_copies.json");
    expect(threads(m, "warp").item(0, 31)).toBe(31);
    const shared = open("layout_swizzled.json"), words = memory(shared);
    expect(words.columns).toBe(32);
    for (let e = 0; e < shared.size; e += 7) expect(words.item(Math.floor(shared.word![e]! / 32), shared.bank![e]!)).toBe(shared.word![e]);
  });

  it("labels registers by what they hold", () => {
    const source = registers(open("layout_mma_d.json"), 5, "thread");
    expect([0, 1, 2, 3].map(r => source.labels!(r)[0])).toEqual(["1,2", "1,3", "9,2", "9,3"]);
  });

  it("writes numbers as short as a cell needs", () => {
    expect([0, 0.25, -3.14159, 123456, 1e-7, NaN].map(short)).toEqual(["0", "0.25", "-3.14", "1.2e+5", "1.0e-7", "NaN"]);
  });
});

describe("values at steps", () => {
  const dense = (values: number[]): { shape: number[]; form: "dense"; type: "f32"; base64: string } =>
    ({ shape: [2, 2], form: "dense", type: "f32", base64: Buffer.from(Float32Array.from(values).buffer).toString("base64") });
  const record = { ...open("layout_copies.json").record, shape: [2, 2] };
  const frames = [[1, 2, NaN, Infinity], [-5, 0, 1, 7]].map((v, k) => ({ step: k, text: "", line: 0, value: dense(v), unwritten: dense(k ? [0, 0, 0, 0] : [1, 0, 0, 0]) }));
  const m = new LayoutModel({ ...record, arrays: { ...record.arrays, value: dense([-5, 0, 1, 7]) }, frames });

  it("have one scale, of what is finite", () => expect(m.range).toEqual([-5, 7]));

  it("are shown one after the other", () => {
    m.showFrame(0);
    expect([...m.value!]).toEqual([1, 2, NaN, Infinity]);
    expect([0, 1].map(e => m.missing(e))).toEqual([true, false]);
    m.showFrame(1);
    expect([...m.value!]).toEqual([-5, 0, 1, 7]);
  });

  it("say what is not finite", () => expect([NaN, Infinity, -Infinity, 0.5].map(short)).toEqual(["NaN", "inf", "−inf", "0.5"]));
});
