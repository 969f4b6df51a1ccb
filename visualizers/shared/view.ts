/** What every view has: the model that anywidget or a page gives, and a picture that is rebuilt when the data changes. */
import { VERSIONS, type ViewRecord } from "./generated.ts";

export interface Model {
  get(key: string): unknown;
  set(key: string, value: unknown): void;
  on(event: string, callback: () => void): void;
  off(event?: string | null, callback?: (() => void) | null): void;
  save_changes(): void;
  /** Sends a message to Python; a page without a kernel has none. */
  send?(content: unknown): void;
}

export interface RenderProps {
  model: Model;
  el: HTMLElement;
}

/** Returns the view in the model, or says why it cannot be drawn. */
export function viewOf<T extends { kind: string; version: number; schema: string } = ViewRecord>(model: Model, kind: keyof typeof VERSIONS): T {
  const view = model.get("view") as T;
  if (view.kind !== kind || view.version !== VERSIONS[kind]) {
    throw new Error(`this code draws ${kind} views of version ${VERSIONS[kind]}, not ${view.schema} version ${view.version}`);
  }
  return view;
}

/** Runs `draw` at most once a frame, however often it is asked for. */
export function oncePerFrame(draw: () => void): () => void {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      draw();
    });
  };
}
