/**
 * Conditions such as `acc[0, 0] > 1e4`: the closed part of Python's expressions that `tilelab/debugger/condition.py` knows, over the values of a
 * step. An array counts as true if any element is; elements that nobody has written count as false.
 */
import type { Nd } from "./model.ts";

export type Names = (name: string) => Nd | undefined;

type Slice = { start: number | null; stop: number | null; step: number | null };
type Index = { at: Node } | { slice: [Node | null, Node | null, Node | null] };
type Node =
  | { kind: "number"; value: number }
  | { kind: "name"; name: string }
  | { kind: "unary"; op: string; a: Node }
  | { kind: "binary"; op: string; a: Node; b: Node }
  | { kind: "bool"; op: "and" | "or"; parts: Node[] }
  | { kind: "compare"; ops: string[]; parts: Node[] }
  | { kind: "index"; base: Node; indices: Index[] }
  | { kind: "call"; name: string; args: Node[] };

export class ConditionError extends Error {}

const mod = (a: number, b: number): number => a - b * Math.floor(a / b);
const BINARY: Record<string, (a: number, b: number) => number> = {
  "+": (a, b) => a + b, "-": (a, b) => a - b, "*": (a, b) => a * b, "/": (a, b) => a / b, "//": (a, b) => Math.floor(a / b), "%": mod,
  "**": (a, b) => a ** b, "==": (a, b) => Number(a === b), "!=": (a, b) => Number(a !== b), "<": (a, b) => Number(a < b),
  "<=": (a, b) => Number(a <= b), ">": (a, b) => Number(a > b), ">=": (a, b) => Number(a >= b)
};
const EACH: Record<string, (a: number) => number> = {
  abs: Math.abs, isnan: a => Number(Number.isNaN(a)), isinf: a => Number(Math.abs(a) === Infinity), isfinite: a => Number(Number.isFinite(a))
};
const WHOLE: Record<string, (all: number[]) => number> = {
  min: all => all.reduce((a, b) => (Number.isNaN(a) || a < b ? a : b), all.length ? all[0]! : NaN),
  max: all => all.reduce((a, b) => (Number.isNaN(a) || a > b ? a : b), all.length ? all[0]! : NaN),
  sum: all => all.reduce((a, b) => a + b, 0), mean: all => all.reduce((a, b) => a + b, 0) / all.length,
  any: all => Number(all.some(Boolean)), all: all => Number(all.every(Boolean))
};

export class Condition {
  readonly names: ReadonlySet<string>;
  private readonly tree: Node;

  constructor(readonly text: string) {
    const parser = new Parser(text);
    this.tree = parser.whole();
    this.names = parser.names;
  }

  /** The value at a step, or null where a name has none yet. */
  value(names: Names): Nd | null {
    for (const name of this.names) if (!names(name)) return null;
    return evaluate(this.tree, names);
  }

  holds(names: Names): boolean {
    const value = this.value(names);
    return value !== null && truth(value);
  }
}

// ------------------------------------------------------------------------------------------------ parsing
const TOKEN = /\s*(?:(\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)|([A-Za-z_]\w*)|(\*\*|\/\/|[=!<>]=|[-+*/%<>()[\],:]))/y;

class Parser {
  readonly names = new Set<string>();
  private readonly tokens: string[] = [];
  private at = 0;

  constructor(private readonly text: string) {
    TOKEN.lastIndex = 0;
    const trimmed = text.trimEnd();
    while (TOKEN.lastIndex < trimmed.length) {
      const from = TOKEN.lastIndex, found = TOKEN.exec(trimmed);
      if (!found) throw this.wrong(trimmed.slice(from).trim());
      this.tokens.push((found[1] ?? found[2] ?? found[3])!);
    }
  }

  whole(): Node {
    const node = this.or();
    if (this.at < this.tokens.length || !this.tokens.length) throw this.wrong(this.tokens[this.at] ?? "");
    return node;
  }

  private wrong(what: string): ConditionError {
    return new ConditionError(`${JSON.stringify(this.text)}: ${what || "…"}?`);
  }

  private peek(): string | undefined {
    return this.tokens[this.at];
  }

  private take(...wanted: string[]): string | undefined {
    const token = this.peek();
    if (token === undefined || !wanted.includes(token)) return undefined;
    this.at++;
    return token;
  }

  private need(token: string): void {
    if (!this.take(token)) throw this.wrong(`${token} ${this.peek() ?? ""}`);
  }

  private or(): Node {
    return this.bool("or", () => this.bool("and", () => this.not()));
  }

  private bool(op: "and" | "or", part: () => Node): Node {
    const parts = [part()];
    while (this.take(op)) parts.push(part());
    return parts.length > 1 ? { kind: "bool", op, parts } : parts[0]!;
  }

  private not(): Node {
    return this.take("not") ? { kind: "unary", op: "not", a: this.not() } : this.compare();
  }

  private compare(): Node {
    const parts = [this.sum()], ops: string[] = [];
    for (let op = this.take("==", "!=", "<", "<=", ">", ">="); op; op = this.take("==", "!=", "<", "<=", ">", ">=")) {
      ops.push(op);
      parts.push(this.sum());
    }
    return ops.length ? { kind: "compare", ops, parts } : parts[0]!;
  }

  private left(part: () => Node, ...signs: string[]): Node {
    let node = part();
    for (let op = this.take(...signs); op; op = this.take(...signs)) node = { kind: "binary", op, a: node, b: part() };
    return node;
  }

  private sum(): Node {
    return this.left(() => this.left(() => this.sign(), "*", "/", "//", "%"), "+", "-");
  }

  private sign(): Node {
    const op = this.take("-", "+");
    return op ? { kind: "unary", op, a: this.sign() } : this.power();
  }

  private power(): Node {
    const a = this.postfix();
    return this.take("**") ? { kind: "binary", op: "**", a, b: this.sign() } : a;
  }

  private postfix(): Node {
    let node = this.atom();
    while (this.take("[")) {
      const indices: Index[] = [];
      do indices.push(this.index());
      while (this.take(",") && this.peek() !== "]");
      this.need("]");
      node = { kind: "index", base: node, indices };
    }
    return node;
  }

  private index(): Index {
    const parts: (Node | null)[] = [];
    let colons = 0;
    for (;;) {
      const next = this.peek();
      parts.push(next === ":" || next === "," || next === "]" ? null : this.or());
      if (!this.take(":")) break;
      colons++;
    }
    if (!colons && parts[0]) return { at: parts[0] };
    if (!colons || colons > 2) throw this.wrong("[ ]");
    return { slice: [parts[0] ?? null, parts[1] ?? null, parts[2] ?? null] };
  }

  private atom(): Node {
    const token = this.peek();
    if (token === undefined) throw this.wrong("");
    this.at++;
    if (token === "(") {
      const node = this.or();
      this.need(")");
      return node;
    }
    if (/^[\d.]/.test(token)) return { kind: "number", value: Number(token) };
    if (token === "True" || token === "False") return { kind: "number", value: Number(token === "True") };
    if (!/^[A-Za-z_]/.test(token) || ["and", "or", "not", "if", "else", "lambda", "in", "is"].includes(token)) throw this.wrong(token);
    if (this.peek() === "(") {
      if (!(token in EACH) && !(token in WHOLE)) throw this.wrong(`${token}()`);
      this.at++;
      const args = [this.or()];
      this.need(")");
      return { kind: "call", name: token, args };
    }
    this.names.add(token);
    return { kind: "name", name: token };
  }
}

// --------------------------------------------------------------------------------------------- evaluation
export const scalar = (value: number): Nd => ({ shape: [], data: Float64Array.of(value), empty: null });

const truth = (v: Nd): boolean => {
  for (let k = 0; k < v.data.length; k++) if (v.data[k] && !v.empty?.[k]) return true;
  return false;
};

function evaluate(node: Node, names: Names): Nd {
  switch (node.kind) {
    case "number":
      return scalar(node.value);
    case "name":
      return names(node.name)!;
    case "unary": {
      const a = evaluate(node.a, names);
      if (node.op === "not") return scalar(Number(!truth(a)));
      return node.op === "-" ? each(a, x => -x) : a;
    }
    case "binary":
      return both(evaluate(node.a, names), evaluate(node.b, names), BINARY[node.op]!);
    case "bool": {
      const parts = node.parts.map(p => truth(evaluate(p, names)));
      return scalar(Number(node.op === "and" ? parts.every(Boolean) : parts.some(Boolean)));
    }
    case "compare": {
      const parts = node.parts.map(p => evaluate(p, names));
      return node.ops.map((op, k) => both(parts[k]!, parts[k + 1]!, BINARY[op]!)).reduce((a, b) => both(a, b, (x, y) => Number(x && y)));
    }
    case "call": {
      const a = evaluate(node.args[0]!, names), one = EACH[node.name];
      if (one) return each(a, one);
      return scalar(WHOLE[node.name]!(Array.from(a.data as ArrayLike<number>).filter((_, k) => !a.empty?.[k])));
    }
    case "index":
      return pick(evaluate(node.base, names), node.indices.map(i => resolve(i, names)));
  }
}

function each(a: Nd, f: (x: number) => number): Nd {
  return { shape: a.shape, data: Float64Array.from(a.data as ArrayLike<number>, f), empty: a.empty };
}

/** Elementwise, with axes of size 1 repeated as numpy does. */
function both(a: Nd, b: Nd, f: (x: number, y: number) => number): Nd {
  const rank = Math.max(a.shape.length, b.shape.length);
  const full = (s: readonly number[]): number[] => [...Array<number>(rank - s.length).fill(1), ...s];
  const sa = full(a.shape), sb = full(b.shape);
  const shape = sa.map((n, k) => {
    if (n !== sb[k] && n !== 1 && sb[k] !== 1) throw new ConditionError(`(${a.shape.join(", ")}) ≠ (${b.shape.join(", ")})`);
    return n === 1 ? sb[k]! : n;
  });
  const size = shape.reduce((p, n) => p * n, 1), data = new Float64Array(size), strides = (s: number[]): number[] => {
    let step = 1;
    return s.map((_, k) => k).reverse().map(k => {
      const own = s[k] === 1 ? 0 : step;
      step *= s[k]!;
      return own;
    }).reverse();
  };
  const ta = strides(sa), tb = strides(sb), empty = a.empty || b.empty ? new Uint8Array(size) : null, at = Array<number>(rank).fill(0);
  let ka = 0, kb = 0;
  for (let k = 0; k < size; k++) {
    data[k] = f(a.data[ka]!, b.data[kb]!);
    if (empty && (a.empty?.[ka] || b.empty?.[kb])) empty[k] = 1;
    for (let d = rank - 1; d >= 0; d--) {
      ka += ta[d]!;
      kb += tb[d]!;
      if (++at[d]! < shape[d]!) break;
      at[d] = 0;
      ka -= ta[d]! * shape[d]!;
      kb -= tb[d]! * shape[d]!;
    }
  }
  return { shape, data, empty };
}

function resolve(index: Index, names: Names): number | Slice {
  const whole = (n: Node | null): number | null => (n ? Math.trunc(evaluate(n, names).data[0]!) : null);
  if ("at" in index) return whole(index.at)!;
  const [start, stop, step] = index.slice.map(whole) as [number | null, number | null, number | null];
  return { start, stop, step };
}

function pick(a: Nd, indices: (number | Slice)[]): Nd {
  if (indices.length > a.shape.length) throw new ConditionError(`${indices.length} > ${a.shape.length}`);
  const shape: number[] = [];
  let places = [0];
  a.shape.forEach((n, d) => {
    const stride = a.shape.slice(d + 1).reduce((p, m) => p * m, 1), index = indices[d] ?? { start: null, stop: null, step: null };
    if (typeof index === "number") {
      const i = index < 0 ? index + n : index;
      if (i < 0 || i >= n) throw new ConditionError(`${index} ∉ 0…${n - 1}`);
      places = places.map(p => p + i * stride);
      return;
    }
    const chosen = range(index, n);
    shape.push(chosen.length);
    places = places.flatMap(p => chosen.map(i => p + i * stride));
  });
  return {
    shape, data: Float64Array.from(places, p => a.data[p]!), empty: a.empty && Uint8Array.from(places, p => a.empty![p]!)
  };
}

function range({ start, stop, step }: Slice, n: number): number[] {
  const by = step ?? 1, clamp = (v: number, low: number, high: number): number => Math.max(low, Math.min(high, v < 0 ? v + n : v));
  if (!by) throw new ConditionError("step 0");
  const out: number[] = [];
  if (by > 0) for (let i = clamp(start ?? 0, 0, n); i < clamp(stop ?? n, 0, n); i += by) out.push(i);
  else for (let i = start === null ? n - 1 : clamp(start, -1, n - 1); i > (stop === null ? -1 : clamp(stop, -1, n - 1)); i += by) out.push(i);
  return out;
}
