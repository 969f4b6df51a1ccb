/** Numbers of the resources view as text, and where they lie on the roofline's logarithmic axes. */
import type { ResourceRoofline } from "@tilelab/shared/generated";

export const LOWEST = 0.1, HIGHEST = 1e4; // FLOP per byte, the ends of the axis

/** `312 TFLOP/s`, with three digits. */
export function short(n: number, unit: string): string {
  const scales = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]] as const;
  const found = scales.find(([scale]) => n >= scale);
  return found ? `${Number((n / found[0]).toPrecision(3))} ${found[1]}${unit}` : `${Number(n.toPrecision(3))} ${unit}`;
}

export const duration = (s: number): string =>
  s < 1e-6 ? `${Number((s * 1e9).toPrecision(3))} ns` : s < 1e-3 ? `${Number((s * 1e6).toPrecision(3))} µs` : s < 1 ? `${Number((s * 1e3).toPrecision(3))} ms` : `${Number(s.toPrecision(3))} s`;

export const amount = (n: number, unit: string): string =>
  unit === "bytes" && n >= 1024 ? `${Number((n / 1024).toPrecision(4)).toLocaleString("en")} KiB` : `${n.toLocaleString("en")}${unit === "bytes" ? " B" : ""}`;

/** Where a point lies, from 0 to 1 along both axes. */
export function place(r: ResourceRoofline, intensity: number, rate: number): [number, number] {
  const floor = r.bandwidth * LOWEST, x = Math.min(HIGHEST, Math.max(LOWEST, intensity));
  return [Math.log(x / LOWEST) / Math.log(HIGHEST / LOWEST), Math.log(Math.max(1, rate / floor)) / Math.log((r.peak * 1.6) / floor)];
}
