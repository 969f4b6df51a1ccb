import { describe, expect, it } from "vitest";
import { inkOn, rampAt, rgb, threadColour } from "./colour.ts";
import { decode, Inverse } from "./decode.ts";
import { RAMP, WARPS, WORDS } from "./generated.ts";
import { langOf, word } from "./words.ts";

describe("decode", () => {
  it("adds or XORs one table for each axis", () => {
    expect([...decode({ shape: [2, 3], form: "sum", base: 5, parts: [[0, 10], [0, 1, 2]] }).data]).toEqual([5, 6, 7, 15, 16, 17]);
    expect([...decode({ shape: [2, 2], form: "xor", base: 1, parts: [[0, 6], [0, 3]] }).data]).toEqual([1, 2, 7, 4]);
  });

  it("reads little-endian base64", () => {
    expect([...decode({ shape: [2], form: "dense", type: "u16", base64: "AQACAQ==" }).data]).toEqual([1, 258]);
    expect([...decode({ shape: [1], form: "dense", type: "i32", base64: "/////w==" }).data]).toEqual([-1]);
    expect([...decode({ shape: [1], form: "dense", type: "f32", base64: "AAAAPw==" }).data]).toEqual([0.5]);
  });
});

it("inverts an array by value", () => {
  const inverse = new Inverse([2, 0, 2, 1, 0], 4);
  expect([0, 1, 2, 3, 4, -1].map(v => [...inverse.at(v)])).toEqual([[1, 4], [3], [0, 2], [], [], []]);
});

describe("colours", () => {
  const lightness = (c: readonly [number, number, number]): number => 0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2];

  it("grow steadily lighter along the ramp, so that it reads in grey", () => {
    const steps = RAMP.map(c => lightness(rgb(c)));
    for (let k = 1; k < steps.length; k++) expect(steps[k]!).toBeGreaterThan(steps[k - 1]!);
    expect(rampAt(0)).toEqual(rgb(RAMP[0]));
    expect(rampAt(2)).toEqual(rgb(RAMP[31]));
  });

  it("tell the lanes of a warp apart, pale to deep", () => {
    for (const lanes of WARPS) expect(new Set(lanes).size).toBe(32);
    expect(lightness(threadColour(0))).toBeGreaterThan(lightness(threadColour(31)));
    expect(threadColour(256 + 3)).toEqual(threadColour(3));
  });

  it("carry ink that can be read: at least 4.5 to 1 (WCAG AA)", () => {
    const luminance = (c: readonly number[]): number => {
      const [r, g, b] = c.map(v => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4)) as [number, number, number];
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    for (const hex of [...RAMP, ...WARPS.flat()]) {
      const [a, b] = [luminance(rgb(hex)), luminance(rgb(inkOn(rgb(hex))))];
      expect((Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), hex).toBeGreaterThanOrEqual(4.5);
    }
  });
});

describe("words", () => {
  it("are there in both languages and are filled in", () => {
    expect(word("holds", "en", { thread: 3, count: 4, total: 128 })).toBe("thread 3 holds 4 of 128");
    expect(word("thread", "zh")).toBe(WORDS.thread[1]);
    expect(word("no such key", "en")).toBe("no such key");
    expect([langOf("zh-CN"), langOf("en"), langOf(undefined)]).toEqual(["zh", "en", "en"]);
  });
});
