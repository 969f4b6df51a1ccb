/** The session in a Python kernel, where there is one: it does the moves; this side shows where it is. */
import type { TraceBreak, TraceValue, TraceWatch } from "@tilelab/shared/generated";
import type { Model } from "@tilelab/shared/view";

/** What the kernel says of its session (the trait `session`). */
export interface Told {
  at: number;
  hit: TraceBreak | null;
  breakpoints: TraceBreak[];
  watches: TraceWatch[];
  message: string;
}

export class Live {
  private readonly asked = new Set<string>();

  constructor(private readonly model: Model, private readonly told: (t: Told) => void, private readonly value: (name: string, step: number, origin: number[], v: TraceValue) => void) {
    model.on("change:session", () => this.hear());
    model.on("change:fetched", () => {
      const got = model.get("fetched") as { name: string; step: number; origin: number[]; value: TraceValue } | undefined;
      if (got?.value) this.value(got.name, got.step, got.origin, got.value);
    });
  }

  /** The present state, or null where no kernel holds a session. */
  static state(model: Model): Told | null {
    const told = model.get("session") as Told | undefined;
    return told && typeof told.at === "number" ? told : null;
  }

  hear(): void {
    const told = Live.state(this.model);
    if (told) this.told(told);
  }

  /** Asks for a command of the terminal (`s`, `b`, `n`, `o`, `c`, `r`, `g 12`, `k acc[0] > 1`, `K 2`, `w x`, `W x`). */
  ask(command: string): void {
    this.model.send?.({ command });
  }

  /** Asks once for a value that is not in the view: the part of it that begins at `origin`. */
  fetch(name: string, step: number, origin: number[]): void {
    const key = `${name}@${step}@${origin.join()}`;
    if (this.asked.has(key)) return;
    this.asked.add(key);
    this.model.send?.({ fetch: name, step, origin });
  }
}
