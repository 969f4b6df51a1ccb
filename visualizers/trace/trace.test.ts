/** The moves, values and conditions of the trace view, against what a session of the Python debugger did (tests/golden/views/trace_small.json). */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { VERSIONS, type TraceViewRecord } from "@tilelab/shared/generated";
import { beforeEach, describe, expect, it } from "vitest";
import { Condition } from "./condition.ts";
import { indexOf, long, short, summary, valueText } from "./format.ts";
import { heat, sliceOf } from "./heat.ts";
import { lastAt, TraceModel, type Nd } from "./model.ts";
import { keyOf, matrix, unpack } from "./prints.ts";
import { breakText, Session } from "./session.ts";

interface Listed {
  shape: number[];
  data: (number | string | null)[];
}

interface Golden {
  view: TraceViewRecord;
  conditions: Record<string, Record<string, Listed | null>>;
  refused: string[];
  moves: [string, number, number][];
  after: { wrote: string[]; values: Record<string, Listed> }[];
  table: string[][];
}

const folder = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "tests", "golden", "views");
const read = <T>(name: string): T => JSON.parse(readFileSync(join(folder, name), "utf8")) as T;
const golden = read<Golden>("trace_small.json");

const listed = (v: Nd): Listed => ({
  shape: [...v.shape],
  data: Array.from(v.data as ArrayLike<number>, (x, k) => (v.empty?.[k] ? null : Number.isFinite(x) ? x : Number.isNaN(x) ? "NaN" : x > 0 ? "Inf" : "-Inf"))
});

let m: TraceModel;
beforeEach(() => {
  m = new TraceModel(golden.view.data);
});

describe("values", () => {
  it("are of the version that this code draws", () => {
    expect(golden.view.version).toBe(VERSIONS.trace);
  });

  it("are those of the Python session at every step", () => {
    golden.after.forEach((known, step) => {
      expect(m.wrote(step).sort()).toEqual(known.wrote);
      const names = m.buffers.filter(b => m.has(b.name, step)).map(b => b.name);
      expect(names.sort()).toEqual(Object.keys(known.values).sort());
      for (const name of names) expect(listed(m.value(name, step)!.value), `${name} at ${step}`).toEqual(known.values[name]);
    });
  });

  it("are unpacked in any order", () => {
    for (const step of [9, 3, 7, 5]) expect(listed(m.value("acc", step)!.value)).toEqual(golden.after[step]!.values.acc);
  });

  it("say what changed, and only where they were written", () => {
    expect([...m.value("tile", 2)!.changed!]).toEqual([0, 1, 2, 3]);
    expect([...m.value("tile", 4)!.changed!]).toEqual([4, 5, 6, 7]);
    expect([...m.value("acc", 3)!.changed!]).toEqual([1, 2, 3]);
    expect(m.value("tile", 3)!.changed).toBeNull();
    expect(m.value("out", 9)).toBeNull();
  });

  it("that a live session sends take the place of what was left out", () => {
    const data = structuredClone(golden.view.data), acc = data.buffers.find(b => b.name === "acc")!;
    const whole = new TraceModel(data), b = whole.buffer("acc")!;
    (b.values as Int32Array)[2] = -1;
    const step = b.steps[2]!;
    expect(whole.value("acc", step)).toMatchObject({ late: true, step: b.steps[1] });
    whole.take("acc", step, b.origin, { base: -1, where: null, empty: null, array: { shape: [4], form: "dense", type: "u8", base64: "AQIDBA==" } });
    expect(whole.value("acc", step)).toMatchObject({ late: false, step });
    expect([...whole.value("acc", step)!.value.data]).toEqual([1, 2, 3, 4]);
    expect(acc.name).toBe("acc");
  });

  it("of a large tensor are turned page by page, and asked for anew", () => {
    const data = structuredClone(golden.view.data), acc = data.buffers.find(b => b.name === "acc")!;
    [acc.shape, acc.origin, acc.extent] = [[10], [0], [4]];
    const large = new TraceModel(data), b = large.buffer("acc")!, step = b.steps[0]!;
    const page = { base: -1, where: null, empty: null, array: { shape: [4], form: "dense" as const, type: "u8" as const, base64: "AQIDBA==" } };
    expect(b.values).toBeInstanceOf(Int32Array); // whatever narrow type the file has, -1 must fit
    large.move("acc", [4]);
    expect(b.origin).toEqual([4]);
    expect(large.value("acc", step)).toBeNull();
    expect(large.has("acc", step)).toBe(true);
    large.take("acc", step, [0], page); // of the page that was left meanwhile
    expect(large.value("acc", step)).toBeNull();
    large.take("acc", step, [4], page);
    expect([...large.value("acc", step)!.value.data]).toEqual([1, 2, 3, 4]);
    large.move("acc", [99]);
    expect(b.origin).toEqual([6]);
    large.move("tile", [2]);
    expect(large.buffer("tile")!.extent).toEqual([]);
  });

  it("know where a step stands", () => {
    expect(m.loops(4)).toEqual([["k", 1]]);
    expect(m.who(4, "en")).toBe("threads 32–63");
    expect(m.who(4, "zh")).toBe("线程 32–63");
    expect(m.who(8, "en")).toBe("thread 0");
    expect([m.line[9], m.end[9], m.caller[9], m.depth[9]]).toEqual([3, 4, 15, 1]);
    expect(m.fileOf(0)!.name).toBe("kernel.py");
    golden.table.forEach((row, k) => {
      expect([String(k), m.textOf(k), m.who(k, "en")]).toEqual([row[0], row[4], row[3]]);
    });
  });
});

describe("conditions", () => {
  it.each(Object.keys(golden.conditions))("%s", text => {
    for (const [step, known] of Object.entries(golden.conditions[text]!)) {
      const { value } = new Session(m).valueOf(text, Number(step));
      if (known === null) expect(value).toBeNull();
      else {
        expect(value!.shape).toEqual(known.shape);
        const got = listed(value!);
        got.data.forEach((x, k) => (typeof x === "number" && typeof known.data[k] === "number" ? expect(x).toBeCloseTo(known.data[k], 5) : expect(x).toBe(known.data[k])));
      }
    }
  });

  it.each(golden.refused)("%s is refused", text => {
    expect(() => new Condition(text)).toThrow();
    expect(new Session(m).breakAt(text)).not.toBe("");
  });

  it("says which names are not there", () => {
    expect(new Session(m).breakAt("zz > 1")).toContain("zz");
    expect(new Session(m).watch("acc[0] + missing")).toContain("missing");
  });
});

it("moves as the Python session moves", () => {
  const session = new Session(m);
  session.clear();
  session.goto(0);
  const numbers = new Map<number, number>(); // the numbers of breakpoints go on from those of the view
  let next = 0;
  for (const [command, at, hit] of golden.moves) {
    const rest = command.slice(2).trim();
    const acts: Record<string, () => unknown> = {
      s: () => session.step(), b: () => session.step(-1), n: () => session.over(), o: () => session.out(), c: () => session.cont(), r: () => session.reverse(),
      g: () => session.goto(Number(rest)),
      k: () => {
        expect(session.breakAt(rest)).toBe("");
        numbers.set(++next, session.breakpoints[session.breakpoints.length - 1]!.number);
      },
      K: () => session.clear(numbers.get(Number(rest)))
    };
    acts[command[0]!]!();
    expect([command, session.at], command).toEqual([command, at]);
    expect(session.hit?.number ?? 0, command).toBe(hit ? numbers.get(hit) : 0);
  }
});

it("watches what it is told to, and until it is told not to", () => {
  const session = new Session(m);
  expect(session.watches).toEqual(["acc[0]", "k"]);
  session.goto(5);
  expect(session.watched().map(w => w.value && valueText(w.value))).toEqual(["4", "1"]);
  expect(session.turns("acc[0]")).toEqual([1, 3, 5, 7, 9]);
  expect(session.turns("k").length).toBe(m.count);
  session.unwatch("k");
  expect(session.watches).toEqual(["acc[0]"]);
  expect(breakText(session.breakpoints[0]!)).toBe("#1 line:13");
  expect(session.onLine("elsewhere/kernel.py", 13)).toBeDefined();
});

describe("T.print", () => {
  const records = unpack(read<{ view: TraceViewRecord }>("trace_prints.json").view.data.prints);

  it("keeps types, shapes and places", () => {
    expect(records.map(p => [p.line, p.block.join(), p.dtype, p.value.shape])).toEqual([[14, "1,0,0", "float32", [4]], [14, "0,0,0", "float32", [4]]]);
    expect(records.map(p => keyOf(p, "thread", "tile"))).toEqual(["tile", "tile"]);
  });

  it("lays single numbers out by block, thread and loops", () => {
    const one = records[0]!, value: Nd = { shape: [], data: Float64Array.of(7), empty: null };
    const many = [0, 1].flatMap(t => [0, 1, 2].map(k => ({ ...one, thread: [t, 0, 0], loops: { k }, value })));
    const { rows, columns, at } = matrix(many, "tile");
    expect([rows, columns]).toEqual([["1,0,0 · 0,0,0", "1,0,0 · 1,0,0"], ["k = 0", "k = 1", "k = 2"]]);
    expect(at.get("1,2")).toBe(5);
  });
});

describe("numbers", () => {
  it("are short in cells and long in words", () => {
    expect([0, 0.25, -3.14159, 123456, 1e-7, NaN, Infinity].map(short)).toEqual(["0", "0.25", "-3.14", "1.2e+5", "1.0e-7", "NaN", "∞"]);
    expect([1 / 3, 16777217, 1e-30].map(long)).toEqual(["0.3333333", "16777217", "1e-30"]);
    expect(indexOf(7, [2, 4])).toEqual([1, 3]);
    expect([lastAt([1, 3, 5], 0), lastAt([1, 3, 5], 3), lastAt([1, 3, 5], 9)]).toEqual([-1, 1, 2]);
  });

  it("are summed up without what nobody wrote", () => {
    const v: Nd = { shape: [5], data: Float32Array.of(1, NaN, 3, Infinity, 9), empty: Uint8Array.of(0, 0, 0, 0, 1) };
    expect(summary(v)).toEqual({ low: 1, high: 3, mean: 2, nan: 1, inf: 1, empty: 1 });
    const source = heat(v, sliceOf(v), { low: 1, high: 3 }, [10]);
    expect(source.labels!(4)).toContain("·");
    expect(source.labels!(1)).toContain("NaN");
    expect(source.columnName!(2)).toBe("12");
    expect(source.colour(1)).not.toEqual(source.colour(4));
  });
});
