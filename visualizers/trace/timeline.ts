/** The steps along one axis: a lane for each role, coloured by source line; the writes of the chosen name; findings, prints, breakpoints. */
import { css, rampAt } from "@tilelab/shared/colour";
import { h } from "@tilelab/shared/dom";
import { SANS } from "@tilelab/shared/generated";
import { oncePerFrame } from "@tilelab/shared/view";
import { word, type Lang } from "@tilelab/shared/words";
import { threadsText, type TraceModel } from "./model.ts";

const LEFT = 118, RIGHT = 6, LANE = 15, TOP = 20, MARKS = 18, MOST_LANES = 6, DETAIL = 120;

export interface TimelineState {
  at: number;
  name: string;
  stops: ReadonlySet<number>;
}

/** A colour for each source line, in the order of the program. */
export function lineColours(m: TraceModel): (step: number) => string {
  const keys = [...new Set(Array.from({ length: m.count }, (_, k) => `${m.file[k]}:${String(m.line[k]).padStart(7, "0")}`))].sort();
  const colours = new Map(keys.map((key, k) => [key, css(rampAt(keys.length > 1 ? 0.08 + (0.86 * k) / (keys.length - 1) : 0.5))]));
  return step => colours.get(`${m.file[step]}:${String(m.line[step]).padStart(7, "0")}`)!;
}

export class Timeline {
  readonly element: HTMLElement;
  private readonly canvas: HTMLCanvasElement;
  private readonly over: HTMLCanvasElement;
  private readonly lanes: number[];
  private width = 600;
  private first = 0; // the steps that are shown
  private shown: number;
  private state: TimelineState = { at: 0, name: "", stops: new Set() };
  private hovered = -1;
  private readonly paintSoon = oncePerFrame(() => this.paint());
  private readonly overSoon = oncePerFrame(() => this.paintOver());

  constructor(private readonly m: TraceModel, private readonly lang: Lang, private readonly colour: (step: number) => string,
    private readonly go: (step: number) => void, private readonly hover: (step: number) => void) {
    this.lanes = [...new Set(Array.from(m.role as ArrayLike<number>))].slice(0, MOST_LANES);
    this.shown = m.count;
    this.canvas = h("canvas", { "aria-hidden": "true" });
    this.over = h("canvas", {
      class: "tl-over", tabindex: 0, role: "slider", "aria-label": word("timeline", lang), "aria-valuemin": 0, "aria-valuemax": m.count - 1,
      onpointerdown: (e: PointerEvent) => this.down(e), onpointermove: (e: PointerEvent) => this.move(e), onpointerleave: () => this.leave(),
      onwheel: (e: WheelEvent) => this.wheel(e), onkeydown: (e: KeyboardEvent) => this.key(e), onfocus: () => this.overSoon(), onblur: () => this.overSoon()
    });
    this.element = h("div", { class: "tl-grid tl-time" }, this.canvas, this.over);
  }

  resize(width: number): void {
    this.width = Math.max(260, width);
    const ratio = globalThis.devicePixelRatio || 1, high = this.height;
    for (const c of [this.canvas, this.over]) {
      c.width = Math.round(this.width * ratio);
      c.height = Math.round(high * ratio);
      c.style.width = `${this.width}px`;
      c.style.height = `${high}px`;
    }
    this.element.style.width = `${this.width}px`;
    this.element.style.height = `${high}px`;
    this.paintSoon();
    this.overSoon();
  }

  show(state: TimelineState): void {
    const same = state.name === this.state.name && state.stops === this.state.stops;
    this.state = state;
    const kept = this.first;
    if (state.at < this.first || state.at >= this.first + this.shown) this.first = this.clamp(state.at - this.shown / 2);
    if (!same || kept !== this.first) this.paintSoon();
    this.overSoon();
    this.over.setAttribute("aria-valuenow", String(state.at));
    this.over.setAttribute("aria-valuetext", `${state.at}: ${this.m.textOf(state.at)}`);
  }

  repaint(): void {
    this.paintSoon();
    this.overSoon();
  }

  private get height(): number {
    return TOP + (this.lanes.length + 1) * LANE + MARKS + (this.shown < this.m.count ? 12 : 0);
  }

  private get unit(): number {
    return (this.width - LEFT - RIGHT) / this.shown;
  }

  private x(step: number): number {
    return LEFT + (step - this.first) * this.unit;
  }

  private stepAt(e: MouseEvent): number {
    const box = this.over.getBoundingClientRect(), px = ((e.clientX - box.left) * this.width) / box.width;
    if (px < LEFT - 4) return -1;
    return Math.max(0, Math.min(this.m.count - 1, Math.floor(this.first + (px - LEFT) / this.unit)));
  }

  private clamp(first: number): number {
    return Math.max(0, Math.min(this.m.count - this.shown, Math.round(first)));
  }

  // ---------------------------------------------------------------------------------------------- painting
  private token(name: string): string {
    return getComputedStyle(this.element).getPropertyValue(`--tl-${name}`).trim() || "#888";
  }

  private context(canvas: HTMLCanvasElement): CanvasRenderingContext2D {
    const c = canvas.getContext("2d")!, ratio = globalThis.devicePixelRatio || 1;
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.clearRect(0, 0, this.width, this.height);
    return c;
  }

  private paint(): void {
    const c = this.context(this.canvas), { m, unit } = this, last = Math.min(m.count, this.first + this.shown);
    c.font = `11px ${SANS}`;
    c.textBaseline = "middle";
    const soft = this.token("soft"), panel = this.token("panel"), gap = unit >= 5 ? 1 : 0, wide = Math.max(unit - gap, 0.75);
    const label = (text: string, y: number): void => {
      c.fillStyle = soft;
      c.textAlign = "right";
      c.fillText(text.length > 18 ? `${text.slice(0, 17)}…` : text, LEFT - 10, y);
    };
    this.ticks(c, soft, last);
    this.lanes.forEach((role, lane) => {
      const y = TOP + lane * LANE;
      label(threadsText(m.data.roles[role] ?? "", this.lang) || word("whole_block", this.lang), y + LANE / 2);
      c.fillStyle = panel;
      c.fillRect(LEFT, y + 1, this.width - LEFT - RIGHT, LANE - 3);
      let drawn = -1;
      for (let k = this.first; k < last; k++) {
        if (m.role[k] !== role) continue;
        const x = this.x(k);
        if (unit < 1 && Math.floor(x) === drawn) continue;
        drawn = Math.floor(x);
        c.fillStyle = this.colour(k);
        c.fillRect(x, y + 1, wide, LANE - 3);
      }
    });
    const y = TOP + this.lanes.length * LANE, b = m.buffer(this.state.name);
    if (b) {
      label(word("writes_of", this.lang, { name: b.name }), y + LANE / 2);
      c.fillStyle = this.token("accent");
      for (const k of b.steps) {
        if (k < this.first || k >= last) continue;
        c.beginPath();
        if (unit >= 6) c.arc(this.x(k) + (unit - gap) / 2, y + LANE / 2, Math.min(3.2, unit / 2.4), 0, 7);
        else c.rect(this.x(k), y + 3, Math.max(0.75, wide), LANE - 6);
        c.fill();
      }
    }
    this.paintMarks(c, y + LANE, last);
  }

  private ticks(c: CanvasRenderingContext2D, soft: string, last: number): void {
    const room = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000].find(n => n * this.unit >= 44) ?? 100000;
    c.fillStyle = soft;
    c.textAlign = "center";
    for (let k = Math.ceil(this.first / room) * room; k < last; k += room) c.fillText(String(k), this.x(k) + this.unit / 2, 9);
  }

  /** Findings ▲, prints ■, the first NaN ✕, stops at breakpoints ●: shapes differ, not only colours. */
  private paintMarks(c: CanvasRenderingContext2D, y: number, last: number): void {
    const { data } = this.m, bad = this.token("bad"), inside = (k: number): boolean => k >= this.first && k < last;
    const middle = (k: number): number => this.x(k) + this.unit / 2;
    c.fillStyle = this.token("good");
    for (const k of new Set(data.prints.map(p => p.step))) if (inside(k)) c.fillRect(middle(k) - 3.5, y + 4, 7, 7);
    c.fillStyle = bad;
    for (const k of this.state.stops) {
      if (!inside(k)) continue;
      c.beginPath();
      c.arc(middle(k), y + 7.5, 3.4, 0, 7);
      c.fill();
    }
    for (const f of data.findings) {
      if (!inside(f.step) || f.severity === "info") continue;
      const x = middle(f.step);
      c.beginPath();
      c.moveTo(x, y + 2);
      c.lineTo(x + 5.5, y + 12);
      c.lineTo(x - 5.5, y + 12);
      c.fill();
    }
    const told = data.findings.some(f => f.step === data.nan?.step && f.code === "TL301"); // it has its mark already
    if (data.nan && inside(data.nan.step) && !told) {
      const x = middle(data.nan.step);
      c.strokeStyle = bad;
      c.lineWidth = 2.2;
      c.beginPath();
      for (const s of [1, -1]) {
        c.moveTo(x - 4.5, y + 7 - 4.5 * s);
        c.lineTo(x + 4.5, y + 7 + 4.5 * s);
      }
      c.stroke();
    }
  }

  private paintOver(): void {
    const c = this.context(this.over), { at } = this.state, bottom = TOP + (this.lanes.length + 1) * LANE + MARKS - 2;
    const unit = Math.max(this.unit, 1), x = this.x(at);
    if (this.hovered >= 0 && this.hovered !== at) {
      c.fillStyle = this.token("mark");
      c.globalAlpha = 0.14;
      c.fillRect(this.x(this.hovered), TOP, unit, bottom - TOP);
      c.globalAlpha = 1;
    }
    for (const [colour, wide] of [[this.token("halo"), 5], [this.token("mark"), 2]] as const) {
      c.strokeStyle = colour;
      c.lineWidth = wide;
      c.beginPath();
      if (unit >= 6) c.roundRect(x - 1, TOP - 1, unit, bottom - TOP, 3);
      else {
        c.moveTo(x + unit / 2, TOP - 3);
        c.lineTo(x + unit / 2, bottom);
      }
      c.stroke();
    }
    if (this.shown < this.m.count) this.overview(c, bottom + 4);
    if (document.activeElement === this.over && this.over.matches(":focus-visible")) {
      c.strokeStyle = this.token("accent");
      c.setLineDash([4, 3]);
      c.strokeRect(LEFT - 3, TOP - 3, this.width - LEFT + 2, bottom - TOP + 4);
      c.setLineDash([]);
    }
  }

  /** Which part of all steps is shown. */
  private overview(c: CanvasRenderingContext2D, y: number): void {
    const wide = this.width - LEFT - RIGHT, scale = wide / this.m.count;
    c.fillStyle = this.token("panel");
    c.fillRect(LEFT, y, wide, 6);
    c.fillStyle = this.token("ran");
    c.fillRect(LEFT + this.first * scale, y, Math.max(4, this.shown * scale), 6);
    c.fillStyle = this.token("mark");
    c.fillRect(LEFT + this.state.at * scale - 0.5, y, 1.5, 6);
  }

  // ------------------------------------------------------------------------------------------------- input
  private dragging = false;

  private down(e: PointerEvent): void {
    const step = this.stepAt(e);
    if (step < 0) return;
    this.dragging = true;
    this.over.setPointerCapture(e.pointerId);
    const stop = (): void => {
      this.dragging = false;
      this.over.removeEventListener("pointerup", stop);
      this.over.removeEventListener("pointercancel", stop);
    };
    this.over.addEventListener("pointerup", stop);
    this.over.addEventListener("pointercancel", stop);
    this.go(step);
  }

  private move(e: PointerEvent): void {
    const step = this.stepAt(e);
    if (step === this.hovered) return;
    this.hovered = step;
    if (this.dragging && step >= 0) this.go(step);
    else this.hover(step);
    this.overSoon();
  }

  private leave(): void {
    this.hovered = -1;
    this.hover(-1);
    this.overSoon();
  }

  private wheel(e: WheelEvent): void {
    if (!e.ctrlKey && !e.metaKey) return; // plain scrolling is the page's
    e.preventDefault();
    const step = this.stepAt(e);
    this.zoom(e.deltaY < 0 ? 0.6 : 1 / 0.6, step < 0 ? this.state.at : step);
  }

  /** Shows `factor` times as many steps, keeping `about` in its place; 0 shows all. */
  zoom(factor: number, about = this.state.at): void {
    const before = this.shown, share = (about - this.first) / before, high = this.height;
    this.shown = factor ? Math.max(Math.min(12, this.m.count), Math.min(this.m.count, Math.round(before * factor))) : this.m.count;
    this.first = this.clamp(about - share * this.shown);
    if (this.height !== high) this.resize(this.width);
    this.repaint();
  }

  /** As many steps as can be told apart, where there are more than that. */
  closer(): void {
    const most = Math.max(DETAIL, Math.floor((this.width - LEFT) / 6));
    if (this.m.count > 4 * most) this.zoom(most / this.m.count);
  }

  private key(e: KeyboardEvent): void {
    const moves: Record<string, number> = {
      ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10, Home: -this.m.count, End: this.m.count
    };
    const by = moves[e.key];
    if (by !== undefined) this.go(Math.max(0, Math.min(this.m.count - 1, this.state.at + by)));
    else if (e.key === "+" || e.key === "=") this.zoom(0.6);
    else if (e.key === "-") this.zoom(1 / 0.6);
    else if (e.key === "0") this.zoom(0);
    else return;
    e.preventDefault();
    e.stopPropagation();
  }
}
