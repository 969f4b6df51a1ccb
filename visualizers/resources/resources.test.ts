/** Text and places of the resources view, against its golden (tests/golden/views). */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { VERSIONS, type ResourceViewRecord } from "@tilelab/shared/generated";
import { expect, it } from "vitest";
import { amount, duration, place, short } from "./model.ts";

const folder = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "tests", "golden", "views");
const { view, table } = JSON.parse(readFileSync(join(folder, "resources_gemm.json"), "utf8")) as { view: ResourceViewRecord; table: string[][] };

it("is of the version that this code draws", () => expect(view.version).toBe(VERSIONS.resources));

it("writes quantities as Python does", () => {
  const told = view.data.gpus.map(g => g.kernels[0]!.uses.slice(0, 2).map(u => `${amount(u.used!, u.unit)} / ${amount(u.limit!, u.unit)}`));
  expect(told).toEqual(table.map(row => row.slice(4, 6)));
  expect([short(312e12, "FLOP/s"), duration(1.23e-6), duration(0.0045)]).toEqual(["312 TFLOP/s", "1.23 µs", "4.5 ms"]);
});

it("puts predicted points on the roof, and measured ones below it", () => {
  for (const g of view.data.gpus) {
    for (const p of g.roofline!.points) {
      const roof = Math.min(g.roofline!.peak, p.intensity * g.roofline!.bandwidth);
      const [, high] = place(g.roofline!, p.intensity, p.rate), [, top] = place(g.roofline!, p.intensity, roof);
      if (p.key === "point_measured") expect(high).toBeLessThan(top);
      else expect(high).toBeCloseTo(top, 6);
    }
  }
});
