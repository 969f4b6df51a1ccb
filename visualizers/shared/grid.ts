/**
 * A grid of coloured cells on a canvas: any size, one picture for the cells and a second, cheap one for what is marked.
 * Zoom with + and −, pan by dragging; arrow keys walk over the cells.
 */
import { css, inkOn, type Rgb } from "./colour.ts";
import { h } from "./dom.ts";
import { MONO } from "./generated.ts";
import { oncePerFrame } from "./view.ts";

export interface GridSource {
  rows: number;
  columns: number;
  /** The item in a cell, or -1 where nothing is. */
  item(row: number, column: number): number;
  /** The cell of an item, or null where it is not shown. */
  cell(item: number): readonly [number, number] | null;
  colour(item: number): Rgb;
  /** What to write in a cell, longest first; the first that fits is written. */
  labels?(item: number): readonly string[];
  /** Names of rows and columns along the edges. Default: their numbers. */
  rowName?(row: number): string;
  columnName?(column: number): string;
  /** Size of a cell when there is room for it, in pixels. */
  size?: readonly [number, number];
  /** How much wider than high (or higher than wide) a small cell may be. Default: 2. */
  stretch?: number;
  /** Space kept on the left for the names of rows, in pixels. */
  left?: number;
  /** Runs of columns with a name above them; the shaded one is set off. */
  bands?: readonly { readonly first: number; readonly end: number; readonly name: string; readonly shaded: boolean }[];
  /** A bar below each column, with a name at the left. */
  bars?: { readonly name: string; readonly values: readonly number[] };
}

export interface Marks {
  /** The cell pointed at: drawn with a frame. */
  focus: ReadonlySet<number>;
  /** What belongs to it: stays bright while the rest fades. Empty: nothing fades. */
  kin: ReadonlySet<number>;
  /** What gets a line around it while nothing fades. */
  ring?: ReadonlySet<number>;
}

export interface GridEvents {
  hover(item: number): void;
  pin(item: number): void;
  unpin(): void;
}

const TOP = 20, BAND = 18, FOOT = 34, LEFT = 32, ZOOMS = [1, 1.5, 2, 3, 4, 6, 8, 12, 16];
const OUTLINED = 2048; // more bright cells than this need no line around them
const STEPS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];

export class Grid {
  readonly element: HTMLElement;
  readonly canvas: HTMLCanvasElement;
  private readonly over: HTMLCanvasElement;
  private source: GridSource;
  private marks: Marks = { focus: new Set(), kin: new Set() };
  private small: HTMLCanvasElement | null = null; // one pixel a cell
  private zoom = 0;
  private x = 0;
  private y = 0;
  private cursor: [number, number] = [0, 0];
  private width = 0;
  private height = 0;
  private unit: [number, number] = [1, 1];
  private readonly left: number;
  private readonly top: number;
  private readonly foot: number;
  private readonly paintSoon = oncePerFrame(() => this.paint());
  private readonly markSoon = oncePerFrame(() => this.paintMarks());

  constructor(source: GridSource, private readonly events: GridEvents, label: string, private readonly most: readonly [number, number]) {
    this.source = source;
    this.left = source.left ?? LEFT;
    this.top = TOP + (source.bands ? BAND : 0);
    this.foot = source.bars ? FOOT : 0;
    this.canvas = h("canvas", { "aria-hidden": "true" });
    this.over = h("canvas", {
      class: "tl-over", tabindex: 0, role: "application", "aria-label": label,
      onpointermove: (e: PointerEvent) => this.move(e), onpointerdown: (e: PointerEvent) => this.down(e),
      onpointerup: (e: PointerEvent) => this.up(e), onkeydown: (e: KeyboardEvent) => this.key(e),
      onwheel: (e: WheelEvent) => this.wheel(e), onfocus: () => this.markSoon(), onblur: () => this.markSoon()
    });
    this.element = h("div", { class: "tl-grid" }, this.canvas, this.over);
    this.resize();
  }

  /** Height of the cells, in pixels. */
  private get high(): number {
    return this.height - this.top - this.foot;
  }

  /** Width and height of the whole, in pixels. */
  get pixels(): readonly [number, number] {
    return [this.width, this.height];
  }

  /** Draws something else in the same place. */
  show(source: GridSource): void {
    const same = source.rows === this.source.rows && source.columns === this.source.columns;
    this.source = source;
    this.small = null;
    if (!same) this.resize();
    this.paintSoon();
    this.markSoon();
  }

  mark(marks: Marks): void {
    this.marks = marks;
    this.markSoon();
  }

  repaint(): void {
    this.paintSoon();
    this.markSoon();
  }

  zoomBy(steps: number, at?: readonly [number, number]): void {
    const [cx, cy] = at ?? [(this.width - this.left) / 2, (this.high) / 2];
    const before = ZOOMS[this.zoom]!;
    this.zoom = steps === 0 ? 0 : Math.min(ZOOMS.length - 1, Math.max(0, this.zoom + steps));
    const factor = ZOOMS[this.zoom]! / before;
    this.x = (this.x + cx) * factor - cx;
    this.y = (this.y + cy) * factor - cy;
    this.settle();
  }

  /** The cell under a point of the element, for tests and hover. */
  cellAt(px: number, py: number): [number, number] | null {
    const [w, hgt] = this.size();
    const column = Math.floor((px - this.left + this.x) / w), row = Math.floor((py - TOP + this.y) / hgt);
    const inside = px >= this.left && py >= this.top && row >= 0 && column >= 0 && row < this.source.rows && column < this.source.columns;
    return inside ? [row, column] : null;
  }

  /** The middle of a cell, in pixels of the element. */
  centre(row: number, column: number): [number, number] {
    const [w, hgt] = this.size();
    return [this.left - this.x + (column + 0.5) * w, this.top - this.y + (row + 0.5) * hgt];
  }

  // ---------------------------------------------------------------------------------------------- geometry
  private size(): [number, number] {
    const z = ZOOMS[this.zoom]!;
    return [this.unit[0] * z, this.unit[1] * z];
  }

  private resize(): void {
    const { rows, columns } = this.source;
    const [cw, ch] = this.source.size ?? [46, 24];
    const w = Math.min(cw, (this.most[0] - this.left) / columns), hgt = Math.min(ch, (this.most[1] - TOP) / rows);
    const stretch = this.source.stretch ?? 2;
    this.unit = w < 20 || hgt < 14 ? [Math.min(w, hgt * stretch), Math.min(hgt, w * stretch)] : [w, hgt];
    this.width = Math.ceil(this.left + this.unit[0] * columns) + 1;
    this.height = Math.ceil(this.top + this.unit[1] * rows) + 1 + this.foot;
    this.zoom = this.x = this.y = 0;
    const ratio = globalThis.devicePixelRatio || 1;
    for (const c of [this.canvas, this.over]) {
      c.width = Math.round(this.width * ratio);
      c.height = Math.round(this.height * ratio);
      c.style.width = `${this.width}px`;
      c.style.height = `${this.height}px`;
    }
    this.element.style.width = `${this.width}px`;
    this.element.style.height = `${this.height}px`;
  }

  private settle(): void {
    const [w, hgt] = this.size();
    this.x = Math.max(0, Math.min(this.x, w * this.source.columns - (this.width - this.left - 1)));
    this.y = Math.max(0, Math.min(this.y, hgt * this.source.rows - (this.high - 1)));
    this.repaint();
  }

  private window(): [number, number, number, number] {
    const [w, hgt] = this.size();
    return [
      Math.max(0, Math.floor(this.y / hgt)), Math.min(this.source.rows, Math.ceil((this.y + this.high) / hgt)),
      Math.max(0, Math.floor(this.x / w)), Math.min(this.source.columns, Math.ceil((this.x + this.width - this.left) / w))
    ];
  }

  private context(canvas: HTMLCanvasElement): CanvasRenderingContext2D {
    const c = canvas.getContext("2d")!;
    const ratio = globalThis.devicePixelRatio || 1;
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.clearRect(0, 0, this.width, this.height);
    return c;
  }

  private token(name: string): string {
    return getComputedStyle(this.element).getPropertyValue(`--tl-${name}`).trim() || "#888";
  }

  // ---------------------------------------------------------------------------------------------- painting
  private paint(): void {
    const c = this.context(this.canvas);
    const [w, hgt] = this.size();
    const [r0, r1, c0, c1] = this.window();
    c.save();
    c.beginPath();
    c.rect(this.left, this.top, this.width - this.left, this.high);
    c.clip();
    if (w >= 7 && hgt >= 7) this.paintCells(c, w, hgt, r0, r1, c0, c1);
    else {
      c.imageSmoothingEnabled = false;
      c.drawImage(this.picture(), this.left - this.x, this.top - this.y, w * this.source.columns, hgt * this.source.rows);
    }
    c.restore();
    this.paintNames(c, w, hgt, r0, r1, c0, c1);
  }

  private picture(): HTMLCanvasElement {
    if (this.small) return this.small;
    const { rows, columns } = this.source;
    const canvas = h("canvas", { width: columns, height: rows });
    const context = canvas.getContext("2d")!, image = context.createImageData(columns, rows);
    for (let i = 0, k = 0; i < rows; i++) {
      for (let j = 0; j < columns; j++, k += 4) {
        const item = this.source.item(i, j);
        if (item < 0) continue;
        const [r, g, b] = this.source.colour(item);
        image.data[k] = r;
        image.data[k + 1] = g;
        image.data[k + 2] = b;
        image.data[k + 3] = 255;
      }
    }
    context.putImageData(image, 0, 0);
    return (this.small = canvas);
  }

  private paintCells(c: CanvasRenderingContext2D, w: number, hgt: number, r0: number, r1: number, c0: number, c1: number): void {
    const gap = Math.min(w, hgt) >= 14 ? 1.5 : 0.75, radius = Math.min(w, hgt) >= 14 ? 3 : 1;
    c.font = `${Math.min(11, Math.max(8, hgt * 0.45))}px ${MONO}`;
    c.textAlign = "center";
    c.textBaseline = "middle";
    for (let i = r0; i < r1; i++) {
      for (let j = c0; j < c1; j++) {
        const item = this.source.item(i, j);
        if (item < 0) continue;
        const colour = this.source.colour(item), x = this.left - this.x + j * w, y = this.top - this.y + i * hgt;
        c.fillStyle = css(colour);
        c.beginPath();
        c.roundRect(x, y, w - gap, hgt - gap, radius);
        c.fill();
        const label = hgt < 11 ? undefined : this.source.labels?.(item).find(t => c.measureText(t).width <= w - gap - 3);
        if (label === undefined) continue;
        c.fillStyle = inkOn(colour);
        c.fillText(label, x + (w - gap) / 2, y + (hgt - gap) / 2 + 0.5);
      }
    }
  }

  private paintNames(c: CanvasRenderingContext2D, w: number, hgt: number, r0: number, r1: number, c0: number, c1: number): void {
    c.fillStyle = this.token("soft");
    c.font = `10.5px ${MONO}`;
    c.textBaseline = "middle";
    const step = (size: number, room: number): number => STEPS.find(s => s * size >= room) ?? 2048;
    const across = step(w, 26), down = step(hgt, 15);
    c.textAlign = "center";
    for (let j = Math.ceil(c0 / across) * across; j < c1; j += across) {
      const x = this.left - this.x + (j + 0.5) * w;
      if (x >= this.left) c.fillText(this.source.columnName?.(j) ?? String(j), x, this.top - TOP / 2);
    }
    c.textAlign = "right";
    for (let i = Math.ceil(r0 / down) * down; i < r1; i += down) {
      const y = this.top - this.y + (i + 0.5) * hgt;
      if (y >= this.top && y < this.top + this.high) c.fillText(short(c, this.source.rowName?.(i) ?? String(i), this.left - 8), this.left - 6, y);
    }
    this.paintBands(c, w);
    this.paintBars(c, w);
  }

  private paintBands(c: CanvasRenderingContext2D, w: number): void {
    c.textAlign = "center";
    for (const { first, end, name, shaded } of this.source.bands ?? []) {
      const x = Math.max(this.left, this.left - this.x + first * w), right = Math.min(this.width, this.left - this.x + end * w), wide = right - x;
      if (wide < 4) continue;
      c.fillStyle = this.token(shaded ? "here" : "panel");
      c.beginPath();
      c.roundRect(x, 1, wide - 2, BAND - 3, 4);
      c.fill();
      c.fillStyle = this.token("ink");
      c.fillText(short(c, name, wide - 6), x + (wide - 2) / 2, BAND / 2);
    }
  }

  private paintBars(c: CanvasRenderingContext2D, w: number): void {
    const { bars } = this.source;
    if (!bars) return;
    const most = Math.max(1, ...bars.values), low = this.height - 2;
    c.fillStyle = this.token("soft");
    c.textAlign = "right";
    c.fillText(short(c, bars.name, this.left - 8), this.left - 6, low - FOOT / 2 + 4);
    c.fillStyle = this.token("accent");
    bars.values.forEach((n, j) => {
      const x = this.left - this.x + j * w, tall = ((FOOT - 8) * n) / most;
      if (x >= this.left - 0.5 && tall > 0) c.fillRect(x, low - tall, w - 2, tall);
    });
  }

  private paintMarks(): void {
    const c = this.context(this.over);
    const { focus, kin, ring } = this.marks;
    const [w, hgt] = this.size();
    c.save();
    c.beginPath();
    c.rect(this.left - 2, this.top - 2, this.width - this.left + 2, this.high + 2);
    c.clip();
    if (ring?.size) this.outline(c, ring, w, hgt);
    if (kin.size || focus.size) {
      const corner = (item: number): [number, number] | null => {
        const cell = this.source.cell(item);
        return cell && [this.left - this.x + cell[1] * w, this.top - this.y + cell[0] * hgt];
      };
      if (kin.size) {
        c.fillStyle = this.token("paper");
        c.globalAlpha = 0.66;
        c.fillRect(this.left, this.top, this.width - this.left, this.high);
        c.globalAlpha = 1;
        for (const items of [kin, focus]) {
          for (const item of items) {
            const at = corner(item);
            if (at) c.clearRect(at[0], at[1], w, hgt);
          }
        }
        if (kin.size <= OUTLINED) this.outline(c, kin, w, hgt);
      }
      const gap = Math.min(w, hgt) >= 14 ? 1.5 : 0, ink = [this.token("halo"), this.token("mark")] as const;
      if (focus.size <= 256) {
        for (const item of focus) {
          const at = corner(item);
          if (at) this.frame(c, at[0], at[1], w - gap, hgt - gap, ink);
        }
      }
    }
    if (document.activeElement === this.over && this.over.matches(":focus-visible")) {
      const [x, y] = this.centre(...this.cursor);
      c.strokeStyle = this.token("accent");
      c.lineWidth = 2;
      c.setLineDash([4, 3]);
      c.strokeRect(x - w / 2 - 2, y - hgt / 2 - 2, w + 4, hgt + 4);
      c.setLineDash([]);
    }
    c.restore();
  }

  /** A line around what stays bright, along the edges to what fades: pale cells would be lost without it. */
  private outline(c: CanvasRenderingContext2D, kin: ReadonlySet<number>, w: number, hgt: number): void {
    c.strokeStyle = this.token("mark");
    c.lineWidth = Math.min(w, hgt) >= 14 ? 1.5 : 0.75;
    c.beginPath();
    const gap = Math.min(w, hgt) >= 14 ? 1.5 : 0;
    for (const item of kin) {
      const cell = this.source.cell(item);
      if (!cell) continue;
      const [i, j] = cell;
      const bright = (row: number, column: number): boolean =>
        row >= 0 && column >= 0 && row < this.source.rows && column < this.source.columns && kin.has(this.source.item(row, column));
      const x0 = this.left - this.x + j * w - gap / 2, y0 = this.top - this.y + i * hgt - gap / 2, x1 = x0 + w, y1 = y0 + hgt;
      for (const [row, column, ax, ay, bx, by] of [[i - 1, j, x0, y0, x1, y0], [i + 1, j, x0, y1, x1, y1], [i, j - 1, x0, y0, x0, y1], [i, j + 1, x1, y0, x1, y1]] as const) {
        if (bright(row, column)) continue;
        c.moveTo(ax, ay);
        c.lineTo(bx, by);
      }
    }
    c.stroke();
  }

  private frame(c: CanvasRenderingContext2D, x: number, y: number, w: number, hgt: number, ink: readonly [string, string]): void {
    for (const k of [0, 1] as const) {
      c.strokeStyle = ink[k];
      c.lineWidth = 4 - 2 * k;
      c.beginPath();
      c.roundRect(x - 0.5, y - 0.5, w + 1, hgt + 1, Math.min(3, w / 4));
      c.stroke();
    }
  }

  // ------------------------------------------------------------------------------------------------- input
  private drag: { x: number; y: number; moved: boolean } | null = null;

  private point(e: MouseEvent): [number, number] {
    const box = this.over.getBoundingClientRect();
    const scale = this.width / box.width || 1;
    return [(e.clientX - box.left) * scale, (e.clientY - box.top) * scale];
  }

  private move(e: PointerEvent): void {
    if (this.drag && this.zoom > 0) {
      const dx = e.clientX - this.drag.x, dy = e.clientY - this.drag.y;
      if (this.drag.moved || Math.hypot(dx, dy) > 4) {
        this.drag = { x: e.clientX, y: e.clientY, moved: true };
        this.x -= dx;
        this.y -= dy;
        this.settle();
        return;
      }
    }
    const cell = this.cellAt(...this.point(e));
    if (!cell) return;
    this.cursor = cell;
    const item = this.source.item(...cell);
    if (item >= 0) this.events.hover(item);
  }

  private down(e: PointerEvent): void {
    this.drag = { x: e.clientX, y: e.clientY, moved: false };
    if (this.zoom > 0) this.over.setPointerCapture(e.pointerId);
  }

  private up(e: PointerEvent): void {
    const moved = this.drag?.moved ?? false;
    this.drag = null;
    const cell = this.cellAt(...this.point(e));
    if (moved || !cell) return;
    const item = this.source.item(...cell);
    if (item >= 0) this.events.pin(item);
  }

  private wheel(e: WheelEvent): void {
    if (!e.ctrlKey && !e.metaKey) return; // plain scrolling is the page's
    e.preventDefault();
    const [px, py] = this.point(e);
    this.zoomBy(e.deltaY < 0 ? 1 : -1, [px - this.left, py - TOP]);
  }

  private key(e: KeyboardEvent): void {
    const { rows, columns } = this.source;
    const steps: Record<string, readonly [number, number]> = {
      ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
      Home: [0, -columns], End: [0, columns], PageUp: [-8, 0], PageDown: [8, 0]
    };
    const step = steps[e.key];
    const acts: Record<string, () => void> = {
      Enter: () => this.events.pin(this.source.item(...this.cursor)), " ": () => this.events.pin(this.source.item(...this.cursor)),
      Escape: () => this.events.unpin(), "+": () => this.zoomBy(1), "=": () => this.zoomBy(1), "-": () => this.zoomBy(-1), "0": () => this.zoomBy(0)
    };
    if (!step && !acts[e.key]) return;
    e.preventDefault();
    e.stopPropagation(); // Jupyter has its own use for these keys
    if (!step) return acts[e.key]!();
    const clamp = (v: number, n: number): number => Math.max(0, Math.min(n - 1, v));
    this.cursor = [clamp(this.cursor[0] + step[0], rows), clamp(this.cursor[1] + step[1], columns)];
    this.reveal();
    const item = this.source.item(...this.cursor);
    if (item >= 0) this.events.hover(item);
    this.markSoon();
  }

  /** Pans so that the cursor is in sight. */
  private reveal(): void {
    const [w, hgt] = this.size();
    const [row, column] = this.cursor;
    const wide = this.width - this.left, high = this.high;
    const x = Math.min(column * w, Math.max(this.x, (column + 1) * w - wide)), y = Math.min(row * hgt, Math.max(this.y, (row + 1) * hgt - high));
    if (x === this.x && y === this.y) return;
    [this.x, this.y] = [x, y];
    this.settle();
  }
}

/** The text, cut at the end with an ellipsis where there is no room for it. */
function short(c: CanvasRenderingContext2D, text: string, room: number): string {
  if (c.measureText(text).width <= room) return text;
  let n = text.length - 1;
  while (n > 0 && c.measureText(`${text.slice(0, n)}…`).width > room) n--;
  return n ? `${text.slice(0, n)}…` : "";
}
