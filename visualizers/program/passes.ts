/** What each pass changed: a list to search, and the change chosen. */
import { h } from "@tilelab/shared/dom";
import type { ProgramVariant } from "@tilelab/shared/generated";
import { word, type Lang } from "@tilelab/shared/words";
import type { ProgramModel, Row } from "./model.ts";

const CONTEXT = 3;
const SIGNS = { " ": "", "-": "tl-gone", "+": "tl-new", gap: "tl-gap" } as const;

export function passes(m: ProgramModel, variant: ProgramVariant, hint: string, lang: Lang): HTMLElement {
  const t = (key: string, fill: Record<string, unknown> = {}): string => word(key, lang, fill);
  let chosen = variant.passes.findIndex(p => p.changed && p.hunks.length > 0), query = "", all = false, whole = false;
  const list = h("ol", { class: "tl-passes" }), change = h("div", { class: "tl-change", tabindex: 0, role: "region" });
  const search = h("input", { type: "search", "aria-label": t("pass_search"), placeholder: t("pass_search"), oninput: () => {
    query = search.value;
    const found = m.listed(variant, query, all);
    if (!found.includes(chosen)) chosen = found[0] ?? -1;
    draw();
  } });
  const box = (key: string, set: (on: boolean) => void): HTMLElement => {
    const input = h("input", { type: "checkbox", "data-box": key, onchange: () => {
      set(input.checked);
      draw();
    } });
    return h("label", {}, input, h("span", {}, t(key)));
  };
  const most = Math.max(1e-9, ...variant.passes.map(p => p.ms));

  function draw(): void {
    const found = m.listed(variant, query, all);
    list.replaceChildren(...found.map(k => {
      const p = variant.passes[k]!, plus = p.hunks.reduce((n, x) => n + x.added.length, 0), minus = p.hunks.reduce((n, x) => n + x.removed, 0);
      const time = h("span", { class: "tl-ms" }, h("i", { style: `width:${(100 * p.ms) / most}%` }), `${p.ms.toFixed(2)} ${t("milliseconds")}`);
      return h("li", {}, h("button", { type: "button", "data-pass": k, "aria-pressed": String(k === chosen), onclick: () => {
        chosen = k;
        draw();
        list.querySelector<HTMLElement>(`[data-pass="${k}"]`)?.focus();
      } }, h("b", {}, p.name), time, h("span", { class: "tl-soft" }, p.changed ? `+${plus} −${minus}` : t("pass_same"))));
    }));
    if (!found.length) list.replaceChildren(h("li", { class: "tl-soft" }, t("pass_none")));
    const p = variant.passes[chosen];
    change.setAttribute("aria-label", p?.name ?? t("passes"));
    const rows: Row[] = !p ? [] : m.rows(variant, chosen, whole ? Infinity : CONTEXT);
    const wanted = query.trim().toLowerCase();
    change.replaceChildren(...(p && !p.hunks.length ? [h("p", { class: "tl-soft" }, t("pass_same"))] : rows.map(r => row(r, wanted))));
  }

  function row(r: Row, wanted: string): HTMLElement {
    if (r.sign === "gap") return h("div", { class: "tl-gap" }, `⋯ ${r.text}`);
    const found = wanted && r.text.toLowerCase().includes(wanted) ? " tl-found" : "";
    return h("div", { class: SIGNS[r.sign] + found }, h("span", { class: "tl-no" }, r.sign === "-" ? "−" : r.sign), h("code", {}, r.text || " "));
  }

  draw();
  return h("div", { class: "tl-history" }, h("h4", {}, t("passes"), h("span", {}, hint)),
    h("div", { class: "tl-bar" }, search, box("pass_all", on => { all = on; }), box("pass_whole", on => { whole = on; })),
    h("div", { class: "tl-two" }, list, change));
}
