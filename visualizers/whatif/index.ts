/** The what-if view, live: variants of a kernel as a table that sorts, and what the chosen one changes. */
import { h } from "@tilelab/shared/dom";
import { MONO, SANS, THEME, type WhatIfColumn, type WhatIfVariant, type WhatIfViewRecord } from "@tilelab/shared/generated";
import { viewOf, type Model, type RenderProps } from "@tilelab/shared/view";
import { langOf, word, type Lang } from "@tilelab/shared/words";
import base from "../layout/style.css";
import { changes, nameOf, rows, type Sorting } from "./model.ts";
import style from "./style.css";

class WhatIfView {
  private lang: Lang;
  private at = 0;
  private sorting: Sorting | null = null;
  private onlyRuns = false;
  private readonly status = h("div", { role: "status", "aria-live": "polite" });
  private readonly root = h("section", { class: "tl-view tl-whatif" });
  private body = h("tbody");
  private detail = h("div");

  constructor(private readonly view: WhatIfViewRecord, private readonly model: Model, el: HTMLElement) {
    this.lang = langOf(view.lang);
    this.root.style.fontFamily = SANS;
    this.root.style.setProperty("--tl-mono", MONO);
    el.append(h("style", {}, THEME + base + style), this.root);
    this.build();
  }

  private t(key: string, fill: Record<string, unknown> = {}): string {
    return word(key, this.lang, fill);
  }

  private build(): void {
    const { data } = this.view, running = data.variants.filter(v => v.runs).length;
    const line = this.t("count_runs", { runs: running, count: data.variants.length });
    this.root.lang = this.lang === "zh" ? "zh-CN" : "en";
    this.root.setAttribute("aria-label", `${this.t("whatif_of", { kernel: data.kernel })}: ${line}`);
    const only = h("input", { type: "checkbox", checked: this.onlyRuns, onchange: () => {
      this.onlyRuns = only.checked;
      this.fill();
    } });
    const speak = h("button", { type: "button", class: "tl-lang tl-end", onclick: () => {
      this.lang = this.lang === "zh" ? "en" : "zh";
      this.build();
      this.root.querySelector<HTMLElement>(".tl-lang")?.focus();
    } }, this.t("language"));
    const head = [h("th", { scope: "col" }, this.t("variant")), this.heading(data.columns.find(c => c.key === "verdict")!), ...data.columns.filter(c => c.key !== "verdict").map(c => this.heading(c))];
    this.body = h("tbody", { onkeydown: (e: KeyboardEvent) => this.key(e) });
    this.detail = h("div", { class: "tl-panel", "data-panel": "detail" });
    this.root.replaceChildren(
      h("header", {}, h("h3", {}, this.t("whatif_of", { kernel: data.kernel })), h("span", { class: "tl-soft" }, line)),
      h("div", { class: "tl-bar" }, h("label", {}, only, h("span", {}, this.t("only_runs"))), speak), this.status,
      h("div", { class: "tl-panel tl-wide", "data-panel": "variants" }, h("table", {}, h("thead", {}, h("tr", {}, ...head)), this.body)), this.detail, h("div", { class: "tl-hint" }, this.t("whatif_hint"))
    );
    this.fill();
  }

  private heading(c: WhatIfColumn): HTMLElement {
    const now = this.sorting?.key === c.key ? (this.sorting.falling ? "descending" : "ascending") : "none";
    const sort = (): void => {
      const was = this.sorting;
      this.sorting = was?.key !== c.key ? { key: c.key, falling: false } : was.falling ? null : { key: c.key, falling: true };
      this.build();
      this.root.querySelector<HTMLElement>(`th[data-key="${c.key}"] button`)?.focus();
    };
    return h("th", { scope: "col", "aria-sort": now, "data-key": c.key }, h("button", { type: "button", onclick: sort }, this.t(c.key)));
  }

  private fill(): void {
    const shown = rows(this.view.data, this.sorting, this.onlyRuns);
    this.body.replaceChildren(...shown.map(k => this.row(k)));
    this.tell();
  }

  private row(k: number): HTMLElement {
    const { data } = this.view, v = data.variants[k]!;
    const pick = h("button", { type: "button", "aria-pressed": String(k === this.at), "aria-label": nameOf(v, this.t("as_written")), onclick: () => this.choose(k) }, k ? `${k}` : this.t("as_written"));
    const cells = data.columns.filter(c => c.key !== "verdict").map(c => h("td", {}, c.texts[k]!, c.key === "smem" ? this.meter(v) : null));
    return h("tr", { "data-variant": k, "data-runs": String(v.runs) }, h("td", {}, pick), h("td", { class: v.runs ? "tl-good" : "tl-bad" }, this.verdict(v)), ...cells);
  }

  /** Whether it runs, and the codes of what stands against it; the detail says it in words. */
  private verdict(v: WhatIfVariant): string {
    const codes = [...new Set([...(v.refusal ? [v.refusal] : []), ...v.findings].map(f => String(f.code)))].join(" ");
    return `${v.runs ? "✓" : "✗"} ${this.t(v.refusal ? "refused" : v.runs ? "fits" : "runs_not")} ${codes}`.trimEnd();
  }

  /** A bar of shared memory on the scale of the largest limit; a line where the limit of this target is. */
  private meter(v: WhatIfVariant): HTMLElement | null {
    if (v.smem_bytes === null) return null;
    const most = Math.max(1, ...this.view.data.variants.flatMap(o => [o.smem_bytes ?? 0, o.smem_limit_bytes ?? 0]));
    const over = v.smem_limit_bytes !== null && v.smem_bytes > v.smem_limit_bytes;
    const limit = v.smem_limit_bytes === null ? null : h("i", { style: `left:${(100 * v.smem_limit_bytes) / most}%` });
    return h("span", { class: "tl-smem", "aria-hidden": "true" }, h("span", { class: over ? "tl-over-limit" : "", style: `width:${(100 * v.smem_bytes) / most}%` }), limit);
  }

  private choose(k: number): void {
    this.at = k;
    for (const row of this.body.querySelectorAll<HTMLElement>("tr")) row.querySelector("button")!.setAttribute("aria-pressed", String(row.dataset.variant === String(k)));
    this.tell();
  }

  private key(e: KeyboardEvent): void {
    const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    if (!step) return;
    e.preventDefault();
    e.stopPropagation();
    const all = [...this.body.querySelectorAll<HTMLElement>("button")];
    const next = all[all.indexOf(document.activeElement as HTMLElement) + step];
    next?.focus();
    next?.click();
  }

  private tell(): void {
    const { data } = this.view, v = data.variants[this.at]!, name = nameOf(v, this.t("as_written"));
    this.status.dataset.variant = String(this.at);
    this.status.dataset.runs = String(v.runs);
    this.status.replaceChildren(h("b", {}, name), h("i", {}, v.target), h("span", { class: v.runs ? "tl-good" : "tl-bad" }, v.runs ? `✓ ${this.t("runs")}` : `✗ ${this.t("runs_not")}`));
    const told = [...(v.refusal ? [v.refusal] : []), ...v.findings];
    const differ = changes(data, this.at).map(c => h("li", {}, `${this.t(c.key)}: ${c.before} → ${c.text}${c.by ? ` (${c.by})` : ""}`));
    this.detail.replaceChildren(h("h4", {}, name, h("span", {}, this.t("compared"))),
      differ.length ? h("ul", {}, ...differ) : h("p", { class: "tl-soft" }, this.t("pass_same")),
      ...told.map(f => h("p", { class: "tl-bad" }, `${String(f.code)}  ${String(f.message)} → ${String(f.fix)}`)));
    this.model.set("selection", { variant: this.at, edits: v.edits });
    this.model.save_changes();
  }
}

function render({ model, el }: RenderProps): () => void {
  const draw = (): void => {
    el.replaceChildren();
    try {
      new WhatIfView(viewOf<WhatIfViewRecord>(model, "whatif"), model, el);
    } catch (e) {
      el.replaceChildren(h("p", { role: "alert" }, `TileLab: ${e instanceof Error ? e.message : String(e)}`));
    }
  };
  draw();
  model.on("change:view", draw);
  return () => model.off("change:view", draw);
}

export default { render };
