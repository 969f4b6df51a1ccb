/** The signs on the buttons, drawn: fonts do not all have them. */
const NS = "http://www.w3.org/2000/svg";

const PATHS = {
  s: ["M4 2.5l7 4.5-7 4.5z", ""],
  b: ["M10 2.5L3 7l7 4.5z", ""],
  c: ["M1.5 3L7 7l-5.5 4zM7 3l5.5 4L7 11z", ""],
  r: ["M12.5 3L7 7l5.5 4zM7 3L1.5 7 7 11z", ""],
  n: ["M5.4 10.500a1.6 1.6 0 1 0 3.2 0a1.6 1.6 0 1 0 -3.2 0zM13.5 4.500l-.6 4.3-3.7-2.300z", "M2 8a5.2 4.8 0 0 1 9.7-1.6"],
  o: ["M3 12h8v1.500H3zM3.6 5.600L7 1.500l3.4 4.100z", "M7 10V5"]
} as const;

export function icon(name: keyof typeof PATHS): SVGElement {
  const svg = document.createElementNS(NS, "svg") as SVGElement;
  for (const [k, v] of [["viewBox", "0 0 14 14"], ["width", "13"], ["height", "13"], ["aria-hidden", "true"], ["class", "tl-icon"]] as const) svg.setAttribute(k, v);
  PATHS[name].forEach((d, k) => {
    if (!d) return;
    const path = document.createElementNS(NS, "path");
    path.setAttribute("d", d);
    path.setAttribute(k ? "stroke" : "fill", "currentColor");
    if (k) {
      path.setAttribute("fill", "none");
      path.setAttribute("stroke-width", "1.6");
    }
    svg.append(path);
  });
  return svg;
}
