/** A plan of the pipeline as rows of cells: what runs in each step, and what each version of a buffer holds then. */
import type { PipelineLoop, PipelinePlanRecord } from "@tilelab/shared/generated";
import { word, type Lang } from "@tilelab/shared/words";

export interface Cell {
  row: number;
  step: number;
  iteration: number;
  /** A version that is only being filled. */
  pale: boolean;
}

/** Statements in the order of the picture: lane by lane, within a lane as in the source. */
export const rows = (plan: PipelinePlanRecord): number[] =>
  plan.statements.map((_, k) => k).sort((a, b) => plan.statements[a]!.lane - plan.statements[b]!.lane || a - b);

export const stepCells = (plan: PipelinePlanRecord): Cell[] => {
  const order = rows(plan);
  return plan.cells.map(c => ({ row: order.indexOf(c.statement), step: c.step, iteration: c.iteration, pale: false }));
};

/** (buffer, version) in the order of the picture. */
export const versionRows = (plan: PipelinePlanRecord): [number, number][] =>
  plan.buffers.flatMap((b, k) => Array.from({ length: b.versions }, (_, v): [number, number] => [k, v]));

export const versionCells = (plan: PipelinePlanRecord): Cell[] => {
  const at = new Map(versionRows(plan).map(([b, v], row) => [`${b},${v}`, row]));
  return plan.held.flatMap(h => Array.from({ length: h.last - h.written + 1 }, (_, k) => ({
    row: at.get(`${h.buffer},${h.version}`)!, step: h.written + k, iteration: h.iteration, pale: h.written + k < h.read
  })));
};

export const phaseOf = (plan: PipelinePlanRecord, step: number): string => plan.phases.find(p => p.first <= step && step < p.end)?.key ?? "";

export const size = (n: number): string => (n < 1024 ? `${n} B` : `${Number((n / 1024).toPrecision(4))} KiB`);

/** A lane in words: what it does, and its threads where it is a role. */
export const laneText = (lane: string, lang: Lang): string => {
  const [key, threads] = lane.split(" ", 2);
  return word(`lane_${key}`, lang) + (threads ? ` ${threads}` : "");
};

/** The loop as it is written. */
export const loopText = (loop: PipelineLoop, plan: PipelinePlanRecord): string =>
  `for ${loop.name} in ${plan.basis === "hand-roles" ? "T.serial" : "T.Pipelined"}`;
