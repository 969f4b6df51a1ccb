/** The trace view, live: an anywidget module. With a kernel it is the face of a debugger session; on a page it moves over the steps it holds. */
import { watchTheme } from "@tilelab/shared/colour";
import { h } from "@tilelab/shared/dom";
import { MONO, SANS, THEME, type TraceViewRecord } from "@tilelab/shared/generated";
import { oncePerFrame, viewOf, type Model, type RenderProps } from "@tilelab/shared/view";
import { langOf, word, type Lang } from "@tilelab/shared/words";
import base from "../layout/style.css";
import { elementText, loopsText, valueText } from "./format.ts";
import { icon } from "./icons.ts";
import { Live, type Told } from "./live.ts";
import { TraceModel, type Nd } from "./model.ts";
import { Prints } from "./prints.ts";
import { breakText, Session } from "./session.ts";
import { Source } from "./source.ts";
import { sparkline } from "./sparkline.ts";
import style from "./style.css";
import { lineColours, Timeline } from "./timeline.ts";
import { Values } from "./values.ts";

const MOST_POINTS = 300; // of a watch's line

class TraceView {
  private lang: Lang;
  private readonly m: TraceModel;
  private readonly session: Session;
  private readonly live: Live | null;
  private readonly colour: (step: number) => string;
  private readonly root = h("section", { class: "tl-view tl-trace", tabindex: -1, onkeydown: (e: KeyboardEvent) => this.key(e) });
  private readonly status = h("div", { role: "status", "aria-live": "polite" });
  private readonly message = h("div", { class: "tl-warn", role: "alert" });
  private readonly stepInput = h("input", { type: "number", min: 0, class: "tl-stepinput", onchange: () => this.command(`g ${this.stepInput.value}`) });
  private readonly lists = h("div", { class: "tl-lists" });
  private timeline!: Timeline;
  private source!: Source;
  private values!: Values;
  private prints: Prints | null = null;
  private built = 0;
  private follow = true;
  private stops: ReadonlySet<number> = new Set();
  private stopsOf = "";
  private playing: ReturnType<typeof setInterval> | null = null;
  private readonly tell = oncePerFrame(() => this.share());
  private point: { name: string; index: readonly number[] | null; pinned: boolean } = { name: "", index: null, pinned: false };

  constructor(private readonly view: TraceViewRecord, private readonly model: Model, el: HTMLElement) {
    this.lang = langOf(view.lang);
    this.m = new TraceModel(view.data);
    this.session = new Session(this.m);
    this.colour = lineColours(this.m);
    this.live = Live.state(model) ? new Live(model, t => this.hear(t), (name, step, origin, v) => {
      this.m.take(name, step, origin, v);
      this.update();
    }) : null;
    this.root.style.fontFamily = SANS;
    this.root.style.setProperty("--tl-mono", MONO);
    const wrote = this.m.wrote(view.data.at);
    this.follow = !wrote.length || wrote.includes(view.data.selected); // whose values were asked for stay in view
    el.append(h("style", {}, THEME + base + style), this.root);
    this.build();
    this.live?.hear();
  }

  repaint(): void {
    this.timeline.repaint();
    this.values.repaint();
    this.prints?.repaint();
  }

  resize(): void {
    const width = this.root.clientWidth;
    if (width && Math.abs(width - this.built) > 24) this.layOut();
  }

  close(): void {
    if (this.playing) clearInterval(this.playing);
  }

  // ----------------------------------------------------------------------------------------------- building
  private t(key: string, fill: Record<string, unknown> = {}): string {
    return word(key, this.lang, fill);
  }

  private build(): void {
    const { m, lang } = this, { data } = m, inner = (): number => Math.max(260, (this.root.clientWidth || 1100) - 38);
    this.root.lang = lang === "zh" ? "zh-CN" : "en";
    this.root.setAttribute("aria-label", this.view.title);
    this.timeline = new Timeline(m, lang, this.colour, k => this.command(`g ${k}`), k => this.say(k));
    this.source = new Source(m, this.session, lang, this.colour, (line, file) => this.toggle(line, file));
    const name = this.values?.name;
    this.values = new Values(m, lang, {
      choose: chosen => {
        this.follow = false;
        this.values.choose(chosen);
        this.update();
      },
      point: (n, index, pinned) => {
        this.point = { name: n, index, pinned };
        this.tell();
      },
      go: k => this.command(`g ${k}`),
      missing: (n, k) => this.fetch(n, k),
      page: this.live && ((n, origin) => {
        m.move(n, origin);
        this.follow = false;
        this.update();
      })
    });
    if (name) this.values.name = name;
    this.prints = data.prints.length || !m.count ? new Prints(data.prints, data.prints_lost, lang, m.count ? k => this.command(`g ${k}`) : null, inner) : null;
    const head = [h("h3", {}, this.view.title), m.count ? h("span", { class: "tl-soft" }, this.t("steps", { count: m.count.toLocaleString("en") })) : null,
      this.live ? h("span", { class: "tl-live-mark" }, this.t("live")) : null, h("button", { type: "button", class: "tl-lang tl-end", onclick: () => this.speak() }, this.t("language"))];
    const notes = data.notes.map(n => h("p", { class: "tl-soft" }, n));
    if (!m.count) {
      this.root.replaceChildren(h("header", {}, ...head), ...notes, this.prints!.element);
      return;
    }
    this.stepInput.max = String(m.count - 1);
    this.stepInput.setAttribute("aria-label", this.t("do_goto"));
    this.root.replaceChildren(
      h("header", {}, ...head), ...notes, this.controls(), this.timeline.element, this.status, this.message,
      h("div", { class: "tl-panels tl-columns" }, h("div", { class: "tl-panel tl-left", "data-panel": "source" }, this.source.element),
        h("div", { class: "tl-panel tl-right", "data-panel": "values" }, this.values.element)),
      this.lists, this.prints?.element ?? "", this.table(), h("div", { class: "tl-hint" }, this.t("keys"))
    );
    this.layOut();
    this.timeline.closer();
    if (data.nan && data.nan.step === this.session.at && data.nan.buffer === this.values.name) this.values.pinIndex(data.nan.index);
  }

  private layOut(): void {
    this.built = this.root.clientWidth;
    if (!this.m.count) return;
    this.timeline.resize((this.built || 1100) - 38);
    this.update();
  }

  private controls(): HTMLElement {
    const button = (command: "r" | "b" | "s" | "n" | "o" | "c", key: string): HTMLElement =>
      h("button", { type: "button", title: `${this.t(key)} (${command})`, "aria-label": this.t(key), "aria-keyshortcuts": command, "data-do": command, onclick: () => this.command(command) },
        icon(command), h("span", { class: "tl-long" }, this.t(key)));
    const play = h("button", { type: "button", class: "tl-play", "aria-label": this.t("speed_play"), title: this.t("speed_play"), onclick: () => this.play(play) }, "▷");
    const ask = (key: string, hint: string, command: string): HTMLElement => {
      const input = h("input", { type: "text", placeholder: this.t(hint), "aria-label": this.t(key), spellcheck: "false", autocapitalize: "off", "data-ask": command });
      return h("form", { class: "tl-ask", onsubmit: (e: Event) => {
        e.preventDefault();
        if (input.value.trim()) this.command(`${command} ${input.value.trim()}`);
        if (!this.message.textContent) input.value = "";
      } }, input, h("button", { type: "submit" }, this.t(key)));
    };
    return h("div", { class: "tl-bar tl-debug" },
      h("span", { class: "tl-group" }, button("r", "do_reverse"), button("b", "do_back"), button("s", "do_step"), button("n", "do_over"), button("o", "do_out"),
        button("c", "do_continue"), play),
      h("label", {}, h("span", {}, this.t("step")), this.stepInput, h("span", {}, `/ ${this.m.count - 1}`)),
      ask("do_break", "break_hint", "k"), ask("do_watch", "watch_hint", "w"), this.zooms());
  }

  private zooms(): HTMLElement | null {
    if (this.m.count < 100) return null;
    const zoom = (sign: string, key: string, factor: number): HTMLElement =>
      h("button", { type: "button", "aria-label": `${this.t("timeline")}: ${this.t(key)}`, title: `${this.t("timeline")}: ${this.t(key)}`, onclick: () => this.timeline.zoom(factor) }, sign);
    return h("span", { class: "tl-group tl-end" }, zoom("+", "zoom_in", 0.5), zoom("−", "zoom_out", 2), zoom(this.t("fit"), "fit", 0));
  }

  private speak(): void {
    this.lang = this.lang === "zh" ? "en" : "zh";
    this.build();
    this.root.querySelector<HTMLElement>(".tl-lang")?.focus();
  }

  private play(button: HTMLElement): void {
    if (this.playing) {
      clearInterval(this.playing);
      this.playing = null;
    } else {
      this.playing = setInterval(() => {
        if (this.session.at >= this.m.count - 1) this.play(button);
        else this.command("s");
      }, 350);
    }
    button.textContent = this.playing ? "❚❚" : "▷";
    const text = this.t(this.playing ? "speed_pause" : "speed_play");
    button.title = text;
    button.setAttribute("aria-label", text);
  }

  // ------------------------------------------------------------------------------------------------ commands
  /** The keys of the terminal; what they do is asked of the kernel where there is one. */
  private key(e: KeyboardEvent): void {
    const target = e.target as HTMLElement;
    if (e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName)) {
      if (e.key === "Escape") this.root.focus();
      e.stopPropagation();
      return;
    }
    if (e.key === "Escape") {
      target.blur(); // the page's own keys work again
      return;
    }
    if (["s", "b", "n", "o", "c", "r"].includes(e.key)) this.command(e.key);
    else if (e.key === "g") this.stepInput.select();
    else if (e.key === "k" || e.key === "w") this.root.querySelector<HTMLElement>(`[data-ask="${e.key}"]`)?.focus();
    else return;
    e.preventDefault();
    e.stopPropagation(); // Jupyter has its own use for these keys
  }

  private command(text: string): void {
    this.message.textContent = "";
    const scrub = /^g (\d+)$/.exec(text);
    if (this.live) {
      if (scrub) this.session.goto(Number(scrub[1])); // shown at once; the kernel follows
      this.live.ask(text);
      if (scrub) this.update();
      return;
    }
    const { session } = this, rest = text.slice(2).trim();
    const acts: Record<string, () => string | void> = {
      s: () => session.step(), b: () => session.step(-1), n: () => session.over(), o: () => session.out(), c: () => session.cont(), r: () => session.reverse(),
      g: () => session.goto(Math.trunc(Number(rest) || 0)), k: () => session.breakAt(rest), K: () => session.clear(rest ? Number(rest) : undefined),
      w: () => session.watch(rest), W: () => session.unwatch(rest)
    };
    try {
      this.message.textContent = acts[text[0]!]?.() ?? "";
    } catch (e) {
      this.message.textContent = e instanceof Error ? e.message : String(e);
    }
    this.update();
  }

  private hear(t: Told): void {
    const { session } = this;
    session.goto(t.at);
    session.hit = t.hit;
    session.breakpoints = t.breakpoints;
    session.watches = t.watches.map(w => w.text);
    this.message.textContent = t.message;
    this.update();
  }

  private fetch(name: string, step: number): void {
    const b = this.m.buffer(name);
    if (!b || !this.live) return;
    const at = Array.from(b.steps as ArrayLike<number>).filter(k => k <= step).pop();
    if (at !== undefined) this.live.fetch(name, at, b.origin);
  }

  private toggle(line: number, file: string): void {
    const stop = this.session.onLine(file, line), short = file.split(/[\\/]/).pop()!;
    this.command(stop ? `K ${stop.number}` : `k ${this.m.data.files.length > 1 ? `${short}:` : ""}${line}`);
  }

  // ------------------------------------------------------------------------------------------------- showing
  private update(): void {
    if (!this.m.count) return;
    const { session, m } = this, at = session.at;
    if (this.follow) {
      const wrote = m.wrote(at), keep = wrote.includes(this.values.name);
      if (wrote.length && !keep) this.values.choose(wrote[0]!);
    }
    this.stepInput.value = String(at);
    this.timeline.show({ at, name: this.values.name, stops: this.stopping() });
    this.source.show();
    const wide = this.root.querySelector<HTMLElement>(".tl-right")?.clientWidth || 420;
    this.values.show(at, Math.min(560, Math.max(240, wide - 4)));
    this.prints?.show(at);
    this.say(-1);
    this.showLists();
    this.tell();
  }

  /** The steps at which lines with breakpoints run. */
  private stopping(): ReadonlySet<number> {
    const key = this.session.breakpoints.map(breakText).join();
    if (key !== this.stopsOf) {
      this.stopsOf = key;
      const lines = this.session.breakpoints.filter(b => b.line || b.event);
      const out = new Set<number>();
      for (let k = 0; k < this.m.count && lines.length; k++) if (lines.some(b => b.event !== "nan" && this.session.stops(b, k))) out.add(k);
      this.stops = out;
    }
    return this.stops;
  }

  /** The status line: the step pointed at on the timeline, or the present one. */
  private say(pointed: number): void {
    const { m, session, status } = this, k = pointed < 0 ? session.at : pointed;
    const file = m.fileOf(k), line = m.line[k]!;
    status.classList.toggle("tl-other", pointed >= 0 && pointed !== session.at);
    Object.assign(status.dataset, { step: String(session.at), line: String(m.line[session.at]!), loops: loopsText(m.loops(session.at)) });
    const parts: (Node | string | null)[] = [
      h("b", {}, this.t("step_of", { at: k, last: m.count - 1 })), file ? h("span", { class: "tl-mono" }, `${file.name.split(/[\\/]/).pop()}:${line}`) : null,
      m.caller[k] ? h("i", {}, this.t("macro_from", { line: m.caller[k] })) : null,
      ...m.loops(k).map(([n, v]) => h("span", { class: "tl-loop" }, h("i", {}, n), ` ${v}`)), m.who(k, this.lang) ? h("span", { class: "tl-role" }, m.who(k, this.lang)) : null,
      h("code", { class: "tl-text" }, m.textOf(k))
    ];
    if (session.hit && pointed < 0) parts.push(h("span", { class: "tl-pin" }, `● ${this.t("stopped_at")} ${breakText(session.hit)}`));
    status.replaceChildren(...parts.filter((p): p is Node => p !== null));
  }

  private showLists(): void {
    const { data } = this.m, out: (HTMLElement | null)[] = [this.nan(), this.breaks(), this.watching()];
    const findings = data.findings.filter(f => f.severity !== "info" || data.findings.length < 6);
    if (findings.length) {
      out.push(this.panel("findings", this.t("findings"), ...findings.map(f => h("div", { class: `tl-item tl-${f.severity}` },
        h("b", {}, f.code), h("span", {}, `${f.message} `, f.fix ? h("i", {}, f.fix) : null), this.goButton(f.step)))));
    }
    this.lists.replaceChildren(...out.filter((p): p is HTMLElement => p !== null));
  }

  private panel(name: string, title: string, ...content: (HTMLElement | null)[]): HTMLElement {
    return h("div", { class: "tl-panel", "data-panel": name }, h("h4", {}, title), ...content);
  }

  private goButton(step: number): HTMLElement | null {
    return step < 0 ? null : h("button", { type: "button", class: "tl-go", onclick: () => this.command(`g ${step}`) }, `${this.t("step")} ${step}`);
  }

  private nan(): HTMLElement | null {
    const { nan } = this.m.data;
    if (!nan) return null;
    const where = this.t("first_nan_where", { element: elementText(nan.buffer, nan.index), value: nan.value, step: nan.step });
    const operands = nan.operands.map(o => h("button", { type: "button", class: "tl-operand", onclick: () => this.look(o.buffer, o.index, Math.max(0, nan.step - 1)) },
      `${elementText(o.buffer, o.index)} = `, h("b", { class: Number.isFinite(Number(o.value)) ? "" : "tl-bad" }, o.value)));
    const go = h("button", { type: "button", class: "tl-go", onclick: () => this.look(nan.buffer, nan.index, nan.step) }, `${this.t("step")} ${nan.step}`);
    return this.panel("nan", this.t("first_nan", { value: nan.value }), h("div", { class: "tl-item tl-error" }, h("span", {}, where), go),
      operands.length ? h("div", { class: "tl-operands" }, h("i", {}, this.t("operands")), ...operands) : null);
  }

  /** Goes to a step and shows one element of a buffer there. */
  private look(name: string, index: readonly number[], step: number): void {
    this.follow = false;
    this.values.choose(name);
    this.command(`g ${step}`);
    this.values.pinIndex(index);
  }

  private breaks(): HTMLElement | null {
    const { breakpoints } = this.session;
    if (!breakpoints.length) return null;
    return this.panel("breakpoints", this.t("breakpoints"), ...breakpoints.map(b => h("div", { class: "tl-item" }, h("code", {}, breakText(b)), this.remove(breakText(b), `K ${b.number}`))));
  }

  private remove(what: string, command: string): HTMLElement {
    return h("button", { type: "button", class: "tl-remove", "aria-label": this.t("remove", { what }), title: this.t("remove", { what }), onclick: () => this.command(command) }, "×");
  }

  private watching(): HTMLElement | null {
    const { session, m } = this, known = new Map((Live.state(this.model)?.watches ?? []).map(w => [w.text, w.value]));
    if (!session.watches.length) return null;
    return this.panel("watches", this.t("watches"), ...session.watched().map(w => {
      const text = this.live ? (known.get(w.text) ?? "") : w.value ? valueText(w.value) : w.wrong;
      const turns = session.turns(w.text), every = Math.max(1, Math.ceil(turns.length / MOST_POINTS));
      const points = turns.filter((_, k) => k % every === 0 || k === turns.length - 1).flatMap(step => {
        const v: Nd | null = session.valueOf(w.text, step).value;
        return v && v.data.length === 1 && !v.empty?.[0] ? [[step, v.data[0]!] as const] : [];
      });
      const line = points.length > 1 ? sparkline(points, { last: m.count - 1, at: session.at, title: this.t("element_history", { name: w.text }), go: k => this.command(`g ${k}`) }) : null;
      return h("div", { class: "tl-item tl-watch", "data-watch": w.text }, h("code", {}, w.text), h("b", {}, text || this.t("no_value")), line, this.remove(w.text, `W ${w.text}`));
    }));
  }

  /** All steps as a table, for those who cannot see the picture: built when opened, a page at a time. */
  private table(): HTMLElement {
    const { m } = this, details = h("details", { class: "tl-table" }, h("summary", {}, this.t("show_table"))), page = 32;
    let first = 0;
    const body = h("tbody"), where = h("span", { class: "tl-soft" });
    const turn = (to: number): void => {
      first = Math.max(0, Math.min(to, Math.floor((m.count - 1) / page) * page));
      const last = Math.min(m.count, first + page);
      body.replaceChildren(...Array.from({ length: last - first }, (_, i) => {
        const k = first + i;
        return h("tr", { class: k === this.session.at ? "tl-here" : "" }, ...[k, m.line[k] || "", loopsText(m.loops(k)), m.who(k, this.lang), m.textOf(k), m.wrote(k).join(", ")].map(c => h("td", {}, String(c))));
      }));
      where.textContent = `${first}–${last - 1} / ${m.count}`;
    };
    details.addEventListener("toggle", () => {
      if (!details.open || details.childElementCount > 1) return;
      const head = ["step", "line", "loops", "role", "statement", "wrote"].map(k => h("th", { scope: "col" }, this.t(k)));
      const pages = h("div", { class: "tl-pages" }, h("button", { type: "button", onclick: () => turn(first - page) }, this.t("previous")), where,
        h("button", { type: "button", onclick: () => turn(first + page) }, this.t("next")));
      details.append(h("div", { class: "tl-scroll" }, h("table", {}, h("thead", {}, h("tr", {}, ...head)), body)));
      if (m.count > page) details.append(pages);
      turn(this.session.at - (this.session.at % page));
    });
    return details;
  }

  /** Lets Python know what is looked at. */
  private share(): void {
    const { point, session } = this;
    this.model.set("selection", { step: session.at, buffer: this.values.name, element: point.index, pinned: point.pinned });
    this.model.save_changes();
  }
}

function render({ model, el }: RenderProps): () => void {
  let view: TraceView | null = null;
  const draw = (): void => {
    view?.close();
    el.replaceChildren();
    try {
      view = new TraceView(viewOf<TraceViewRecord>(model, "trace"), model, el);
    } catch (e) {
      el.replaceChildren(h("p", { role: "alert" }, `TileLab: ${e instanceof Error ? e.message : String(e)}`));
    }
  };
  draw();
  const stop = watchTheme(() => view?.repaint());
  const sizes = new ResizeObserver(() => view?.resize());
  sizes.observe(el);
  model.on("change:view", draw);
  return () => {
    stop();
    sizes.disconnect();
    view?.close();
    model.off("change:view", draw);
  };
}

export default { render };
