/** The program view, live: panes linked by line, two variants side by side, and what each pass changed. */
import { choice, h } from "@tilelab/shared/dom";
import { MONO, SANS, THEME, type ProgramPane, type ProgramVariant, type ProgramViewRecord } from "@tilelab/shared/generated";
import { oncePerFrame, viewOf, type Model, type RenderProps } from "@tilelab/shared/view";
import { langOf, word, type Lang } from "@tilelab/shared/words";
import base from "../layout/style.css";
import { Column } from "./column.ts";
import { ProgramModel, type Spot } from "./model.ts";
import { passes } from "./passes.ts";
import style from "./style.css";
import { table } from "./table.ts";

const PANES = ["python", "tile", "lowered", "source", "ptx", "sass"];

class ProgramView {
  private lang: Lang;
  private variant: number;
  private beside: number;
  private readonly shown: Set<string>;
  private readonly m: ProgramModel;
  private columns: Column[] = [];
  private now: Spot | null = null;
  private pinned = false;
  private readonly status = h("div", { role: "status", "aria-live": "polite" });
  private readonly root = h("section", { class: "tl-view tl-program" });
  private readonly tell = oncePerFrame(() => this.share());

  constructor(private readonly view: ProgramViewRecord, private readonly model: Model, el: HTMLElement) {
    const { data } = view;
    this.lang = langOf(view.lang);
    this.m = new ProgramModel(data);
    [this.variant, this.beside, this.shown] = [data.selected, data.beside, new Set(data.shown)];
    this.root.style.fontFamily = SANS;
    this.root.style.setProperty("--tl-mono", MONO);
    el.append(h("style", {}, THEME + base + style), this.root);
    this.build();
  }

  private t(key: string, fill: Record<string, unknown> = {}): string {
    return word(key, this.lang, fill);
  }

  private get record(): ProgramVariant {
    return this.view.data.variants[this.variant]!;
  }

  private title(v: ProgramVariant): string {
    return `${v.kernel} · ${v.target}${v.name ? ` · ${v.name}` : ""}`;
  }

  private paneName(pane: ProgramPane): string {
    return this.t(`pane_${pane.key}`, { language: pane.language });
  }

  private build(): void {
    const v = this.record, changed = v.passes.filter(p => p.changed).length;
    const ms = v.passes.reduce((sum, p) => sum + p.ms, 0).toFixed(0);
    const line = `${v.target}${v.name ? ` · ${v.name}` : ""} · ${this.t("located", { percent: (100 * v.located).toFixed(0) })}${v.note ? ` · ${v.note}` : ""}`;
    this.root.lang = this.lang === "zh" ? "zh-CN" : "en";
    this.root.setAttribute("aria-label", `${v.kernel}: ${line}`);
    this.columns = this.makeColumns();
    const hint = this.t("passes_hint", { changed, count: v.passes.filter(p => p.name !== "start").length, ms });
    this.root.replaceChildren(
      h("header", {}, h("h3", {}, v.kernel), h("span", { class: "tl-soft" }, line)),
      this.bar(), this.status, h("div", { class: "tl-columns" }, ...this.columns.map(c => c.element)),
      ...(v.passes.length ? [passes(this.m, v, hint, this.lang)] : []),
      table(this.m, this.variant, p => this.paneName(p), this.lang), h("div", { class: "tl-hint" }, this.t("program_keys"))
    );
    this.update(false);
  }

  private bar(): HTMLElement {
    const { variants } = this.view.data, bar = h("div", { class: "tl-bar" });
    if (variants.length > 1) {
      const names = variants.map((v, k) => [String(k), this.title(v)] as const);
      bar.append(
        choice(this.t("variant"), names, String(this.variant), v => this.turn(() => { this.variant = Number(v); })),
        choice(this.t("beside"), [["-1", this.t("nothing_beside")], ...names], String(this.beside), v => this.turn(() => { this.beside = Number(v); }))
      );
    }
    const panes = h("span", { class: "tl-group", role: "group", "aria-label": this.t("panes") });
    for (const key of PANES) {
      const pane = this.m.pane(this.variant, key);
      if (!pane) continue;
      const on = this.shown.has(key);
      panes.append(h("button", { type: "button", "data-show": key, "aria-pressed": String(on), onclick: () => {
        if (!on) this.shown.add(key);
        else if (this.shown.size > 1) this.shown.delete(key);
        this.turn(() => undefined, `[data-show="${key}"]`);
      } }, this.paneName(pane)));
    }
    bar.append(panes, h("button", { type: "button", class: "tl-lang tl-end", onclick: () => {
      this.turn(() => { this.lang = this.lang === "zh" ? "en" : "zh"; }, ".tl-lang");
    } }, this.t("language")));
    return bar;
  }

  private turn(change: () => void, focus = ""): void {
    change();
    this.now = null;
    this.pinned = false;
    this.build();
    if (focus) this.root.querySelector<HTMLElement>(focus)?.focus();
  }

  private makeColumns(): Column[] {
    const two = this.beside >= 0 && this.beside !== this.variant, out: Column[] = [];
    for (const key of PANES.filter(k => this.shown.has(k))) {
      for (const variant of two && key !== "python" ? [this.variant, this.beside] : [this.variant]) {
        const pane = this.m.pane(variant, key);
        if (!pane) continue;
        const other = variant === this.variant ? this.beside : this.variant;
        const differing = two ? this.m.differing(variant, other, key) : new Set<number>();
        const name = this.paneName(pane) + (two && key !== "python" ? ` · ${this.title(this.view.data.variants[variant]!)}` : "");
        const hint = differing.size ? this.t("differ", { count: differing.size }) : `${pane.lines.length} ${this.t("lines")}`;
        out.push(new Column(pane, this.m.places(pane), { variant, key, name, hint, differing }, {
          point: line => this.point({ variant, key, line }, false), pin: line => this.pin({ variant, key, line }), free: () => this.free()
        }));
      }
    }
    return out;
  }

  // ---------------------------------------------------------------------------------------------- selection
  private point(spot: Spot, walk: boolean): void {
    if (this.pinned && !walk) return;
    this.now = spot;
    this.update(false);
  }

  private pin(spot: Spot): void {
    const again = this.pinned && JSON.stringify(spot) === JSON.stringify(this.now);
    this.now = spot;
    this.pinned = !again;
    this.update(!again);
  }

  private free(): void {
    this.pinned = false;
    this.now = null;
    this.update(false);
  }

  private update(follow: boolean): void {
    const { now } = this, parts: string[] = [];
    for (const c of this.columns) {
      const found = now ? this.m.linked(now, c.spot.variant, c.spot.key) : [];
      const here = now && c.spot.variant === now.variant && c.spot.key === now.key ? now.line : -1;
      c.mark(found, here, follow && here < 0);
      if (now && here < 0) parts.push(this.t("linked", { pane: c.spot.name, count: found.length }));
    }
    const user = now ? this.m.user(now) : null, { dataset } = this.status;
    for (const name of Object.keys(dataset)) delete dataset[name];
    if (!now) this.status.replaceChildren(h("i", {}, this.t("program_keys")));
    else {
      dataset.pane = now.key;
      dataset.at = String(now.line + 1);
      if (user) Object.assign(dataset, { file: user.file, line: String(user.line) });
      if (this.pinned) dataset.pinned = "true";
      this.status.replaceChildren(
        h("b", {}, user ? `${user.file}:${user.line}` : this.t("unlinked")), h("i", {}, user ? parts.join(" · ") : ""),
        ...(this.pinned ? [h("span", { class: "tl-pin" }, `● ${this.t("pinned")}`)] : []));
    }
    this.tell();
  }

  /** Lets Python know what is selected. */
  private share(): void {
    const { now } = this, user = now ? this.m.user(now) : null;
    this.model.set("selection", { pane: now?.key ?? null, at: now ? now.line + 1 : null, file: user?.file ?? null, line: user?.line ?? null, pinned: this.pinned });
    this.model.save_changes();
  }
}

function render({ model, el }: RenderProps): () => void {
  const draw = (): void => {
    el.replaceChildren();
    try {
      new ProgramView(viewOf<ProgramViewRecord>(model, "program"), model, el);
    } catch (e) {
      el.replaceChildren(h("p", { role: "alert" }, `TileLab: ${e instanceof Error ? e.message : String(e)}`));
    }
  };
  draw();
  model.on("change:view", draw);
  return () => model.off("change:view", draw);
}

export default { render };
