/** Colours of threads, banks and values, from the tables that Python computed; and the page's paper and ink. */
import { RAMP, WARPS } from "./generated.ts";

export type Rgb = readonly [number, number, number];

export const rgb = (hex: string): Rgb => [1, 3, 5].map(k => parseInt(hex.slice(k, k + 2), 16)) as unknown as Rgb;

const warps = WARPS.map(lanes => lanes.map(rgb));
const ramp = RAMP.map(rgb);

export const threadColour = (thread: number): Rgb => warps[(thread >> 5) % warps.length]![thread & 31]!;
export const bankColour = (bank: number): Rgb => ramp[bank & 31]!;

/** The ramp at `t` from 0 to 1, between its steps. */
export function rampAt(t: number): Rgb {
  const x = Math.min(1, Math.max(0, t)) * (ramp.length - 1);
  const k = Math.min(ramp.length - 2, Math.floor(x));
  const a = ramp[k]!, b = ramp[k + 1]!;
  return [0, 1, 2].map(c => Math.round(a[c]! + (b[c]! - a[c]!) * (x - k))) as unknown as Rgb;
}

export const css = (c: Rgb): string => `rgb(${c[0]},${c[1]},${c[2]})`;

/** Text on `c`: black or white, whichever contrasts more (WCAG relative luminance). */
export function inkOn(c: Rgb): string {
  const [r, g, b] = c.map(v => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4)) as [number, number, number];
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000000" : "#ffffff";
}

/** Calls `changed` whenever the page turns light or dark; returns how to stop. */
export function watchTheme(changed: () => void): () => void {
  const media = matchMedia("(prefers-color-scheme: dark)");
  const observer = new MutationObserver(changed);
  media.addEventListener("change", changed);
  for (const node of [document.documentElement, document.body]) {
    observer.observe(node, { attributes: true, attributeFilter: ["data-jp-theme-light", "data-theme", "class"] });
  }
  return () => {
    media.removeEventListener("change", changed);
    observer.disconnect();
  };
}
