/** Time travel over the steps of a view: the moves of `tilelab/debugger/session.py`, over the values that the file holds. */
import type { TraceBreak } from "@tilelab/shared/generated";
import { Condition, ConditionError, scalar, type Names } from "./condition.ts";
import type { Nd, TraceModel } from "./model.ts";

export interface Watched {
  readonly text: string;
  readonly value: Nd | null;
  readonly wrong: string;
}

const BOUNDS = ["TL101", "TL102"];
const base = (path: string): string => path.split(/[\\/]/).pop()!;

export function breakText(b: TraceBreak): string {
  const parts = [b.line ? `${base(b.file) || "line"}:${b.line}` : "", b.condition && `if ${b.condition}`, b.event];
  return `#${b.number} ${parts.filter(Boolean).join(" ")}`;
}

export class Session {
  at: number;
  hit: TraceBreak | null = null;
  breakpoints: TraceBreak[];
  watches: string[];
  private readonly compiled = new Map<string, Condition>();
  private number: number;

  constructor(readonly m: TraceModel) {
    this.at = m.data.at;
    this.breakpoints = [...m.data.breakpoints];
    this.watches = m.data.watches.map(w => w.text);
    this.number = Math.max(0, ...this.breakpoints.map(b => b.number));
  }

  // ------------------------------------------------------------------------------------------------- moves
  goto(step: number): void {
    this.at = Math.max(0, Math.min(this.m.count - 1, step));
    this.hit = null;
  }

  step(n = 1): void {
    this.goto(this.at + n);
  }

  /** To the next step that is not inside a macro called from here, nor deeper in loops than here. */
  over(): void {
    const [macros, loops] = this.depth(this.at);
    this.seek(k => this.depth(k)[0] <= macros && this.depth(k)[1] <= loops);
  }

  /** To the next step outside the innermost macro or loop of the present one. */
  out(): void {
    const [macros, loops] = this.depth(this.at);
    this.seek(k => (macros ? this.depth(k)[0] < macros : this.depth(k)[1] < Math.max(loops, 1)));
  }

  cont(): void {
    this.run(1);
  }

  reverse(): void {
    this.run(-1);
  }

  private depth(step: number): [number, number] {
    return [this.m.depth[step]!, this.m.loopDepth(step)];
  }

  private seek(wanted: (step: number) => boolean): void {
    let k = this.at + 1;
    while (k < this.m.count && !wanted(k)) k++;
    this.goto(k);
  }

  private run(by: 1 | -1): void {
    for (let k = this.at + by; k >= 0 && k < this.m.count; k += by) {
      const point = this.breakpoints.find(b => this.stops(b, k));
      if (!point) continue;
      this.goto(k);
      this.hit = point;
      return;
    }
    this.goto(by > 0 ? this.m.count - 1 : 0);
  }

  // ------------------------------------------------------------------------------------------- breakpoints
  /** Adds a breakpoint at a line (`12` or `kernel.py:12`), a condition, `nan`, `oob`, `finding` or a code; says what is wrong with it. */
  breakAt(where: string): string {
    const text = where.trim(), line = /^(?:(.*):)?(\d+)$/.exec(text);
    const point: TraceBreak = { number: this.number + 1, file: "", line: 0, condition: "", event: "" };
    if (/^(nan|finding|oob|TL\d{3})$/.test(text)) point.event = text;
    else if (line) {
      [point.file, point.line] = [line[1] ?? "", Number(line[2])];
      const ran = (k: number): boolean => this.covers(k, point.file, point.line) || this.called(k, point.file, point.line);
      if (!this.steps().some(ran)) return `${text}: —`;
    } else {
      const wrong = this.check(text);
      if (wrong) return wrong;
      point.condition = text;
    }
    this.number++;
    this.breakpoints.push(point);
    return "";
  }

  clear(number?: number): void {
    this.breakpoints = number === undefined ? [] : this.breakpoints.filter(b => b.number !== number);
  }

  /** The breakpoint on a line, if there is one. */
  onLine(file: string, line: number): TraceBreak | undefined {
    return this.breakpoints.find(b => b.line === line && (!b.file || base(b.file) === base(file)));
  }

  stops(b: TraceBreak, k: number): boolean {
    if (b.line) {
      if (this.covers(k, b.file, b.line)) return true;
      return this.called(k, b.file, b.line) && !(k > 0 && this.called(k - 1, b.file, b.line));
    }
    if (b.event === "nan") return this.firstBad(k);
    if (b.event) return this.happens(b.event, k);
    const now = this.condition(b.condition);
    return now !== null && now.holds(this.names(k)) && !(k > 0 && now.holds(this.names(k - 1)));
  }

  private steps(): number[] {
    return Array.from({ length: this.m.count }, (_, k) => k);
  }

  private sameFile(k: number, file: string): boolean {
    return !file || base(this.m.fileOf(k)?.name ?? "") === base(file);
  }

  private covers(k: number, file: string, line: number): boolean {
    return this.m.line[k]! <= line && line <= this.m.end[k]! && this.sameFile(k, file);
  }

  private called(k: number, file: string, line: number): boolean {
    return this.m.depth[k]! > 0 && this.m.caller[k] === line && (!file || this.m.data.files.some(f => base(f.name) === base(file)));
  }

  private happens(event: string, k: number): boolean {
    return this.m.data.findings.some(f => f.step === k && (event === "finding" || (event === "oob" ? BOUNDS.includes(f.code) : f.code === event)));
  }

  /** Whether a buffer holds a NaN from this step on, or this is the step of the first NaN or Inf that was not meant (a mask's may be). */
  private firstBad(k: number): boolean {
    const fresh = (name: string): boolean => hasNan(this.m.value(name, k)?.value) && !hasNan(k > 0 ? this.m.value(name, k - 1)?.value : undefined);
    return this.m.data.nan?.step === k || this.m.wrote(k).some(fresh);
  }

  // ----------------------------------------------------------------------------------------------- watches
  /** Adds a watch; says what is wrong with it. */
  watch(text: string): string {
    const wrong = this.check(text);
    if (!wrong && !this.watches.includes(text)) this.watches.push(text);
    return wrong;
  }

  unwatch(text: string): void {
    this.watches = this.watches.filter(w => w !== text);
  }

  watched(): Watched[] {
    return this.watches.map(text => ({ text, ...this.valueOf(text, this.at) }));
  }

  valueOf(text: string, step: number): { value: Nd | null; wrong: string } {
    try {
      return { value: this.condition(text)?.value(this.names(step)) ?? null, wrong: "" };
    } catch (e) {
      return { value: null, wrong: e instanceof Error ? e.message : String(e) };
    }
  }

  /** The steps where the value of an expression may change: those that write a name in it, or all if it reads a loop variable. */
  turns(text: string): number[] {
    const names = [...(this.condition(text)?.names ?? [])];
    if (!names.every(n => this.m.buffer(n))) return this.steps();
    return [...new Set(names.flatMap(n => [...this.m.buffer(n)!.steps]))].sort((a, b) => a - b);
  }

  /** The values of buffers and loop variables at a step. */
  names(step: number): Names {
    const loops = new Map(this.m.loops(step));
    return name => (loops.has(name) ? scalar(loops.get(name)!) : this.m.value(name, step)?.value);
  }

  private condition(text: string): Condition | null {
    const known = this.compiled.get(text);
    if (known) return known;
    try {
      const made = new Condition(text);
      this.compiled.set(text, made);
      return made;
    } catch {
      return null;
    }
  }

  private check(text: string): string {
    try {
      const made = new Condition(text), loops = new Set(this.m.data.loops.flat());
      const unknown = [...made.names].filter(n => !this.m.buffer(n) && !loops.has(n));
      return unknown.length ? `${unknown.join(", ")}?` : "";
    } catch (e) {
      if (e instanceof ConditionError) return e.message;
      throw e;
    }
  }
}

export function hasNan(value: Nd | undefined): boolean {
  if (!value || !(value.data instanceof Float32Array || value.data instanceof Float64Array)) return false;
  for (let k = 0; k < value.data.length; k++) if (Number.isNaN(value.data[k]) && !value.empty?.[k]) return true;
  return false;
}
