/**
 * The Check button: run the cell, then let the kernel check what it defined and show the report below the cell.
 *
 * In a puzzle's notebook the solution is checked, whichever cell is active; the cells above it that this kernel has not
 * run yet are run first, so that one press is enough after a restart. Elsewhere the kernels that the active cell defines
 * are checked. All judging happens in `tilelab.lab.check`; this file only carries source text there and outputs back.
 */
import { SessionContextDialogs, type ISessionContext } from '@jupyterlab/apputils';
import type { Cell, CodeCell } from '@jupyterlab/cells';
import type { IOutput } from '@jupyterlab/nbformat';
import { NotebookActions, type Notebook, type NotebookPanel } from '@jupyterlab/notebook';
import type { Kernel, KernelMessage } from '@jupyterlab/services';
import type { ITranslator } from '@jupyterlab/translation';
import type { Language } from './api';

export const REPORT = 'application/vnd.tilelab.report+json';

/** What the kernel says beside the picture of the report. */
export interface Verdict {
  puzzle: string | null;
  passed: boolean;
  score: number | null;
  max: number | null;
}

/** Why nothing could be checked: a key of the messages. */
export class CannotCheck extends Error {
  constructor(readonly why: 'noCell' | 'noKernel' | 'notPython') {
    super(why);
  }
}

interface CellMark {
  role?: string;
}

/** Return the id of the puzzle that a notebook belongs to, or null. */
export function puzzleOf(notebook: Notebook): string | null {
  const mark = notebook.model?.getMetadata('tilelab') as { puzzle?: unknown } | undefined;
  return typeof mark?.puzzle === 'string' ? mark.puzzle : null;
}

/** Return whether Check has something to do for the active cell. */
export function checkable(notebook: Notebook): boolean {
  return puzzleOf(notebook) !== null || (isCode(notebook.activeCell) && defines(notebook.activeCell));
}

/** Remembers which cells each kernel has run, and checks. */
export class Checker {
  private readonly ran = new WeakMap<Kernel.IKernelConnection, Set<string>>();

  constructor(private readonly translator: ITranslator) {
    NotebookActions.executed.connect((_, { notebook, cell, success }) => {
      const kernel = kernelOf(notebook);
      if (kernel && success && isCode(cell)) {
        this.seen(kernel).add(key(cell));
      }
    });
  }

  /** Run, check, show. Returns null when the cell itself failed: its own error is below it then. */
  async check(panel: NotebookPanel, language: Language): Promise<Verdict | null> {
    const notebook = panel.content;
    const puzzle = puzzleOf(notebook);
    const cell = target(notebook, puzzle);
    if (cell === null) {
      throw new CannotCheck('noCell');
    }
    await panel.sessionContext.ready;
    const kernel = panel.sessionContext.session?.kernel;
    if (!kernel) {
      throw new CannotCheck('noKernel');
    }
    if ((await kernel.info).language_info.name !== 'python') {
      throw new CannotCheck('notPython');
    }
    show(notebook, cell);
    if (!(await this.run(panel, this.before(notebook, cell, kernel, puzzle).concat(cell)))) {
      return null;
    }
    const source = cell.model.sharedModel.getSource();
    const call = `check_cell(${[puzzle, language, source].map(v => (v === null ? 'None' : literal(v))).join(', ')})`;
    return this.ask(kernel, `from tilelab.lab.check import check_cell as _tilelab_check_cell\n_tilelab_${call}\n`, cell);
  }

  private seen(kernel: Kernel.IKernelConnection): Set<string> {
    let seen = this.ran.get(kernel);
    if (!seen) {
      seen = new Set();
      this.ran.set(kernel, seen);
      kernel.statusChanged.connect((_, status) => {
        if (status === 'restarting' || status === 'autorestarting') {
          this.ran.delete(kernel);
        }
      });
    }
    return seen;
  }

  private before(notebook: Notebook, cell: CodeCell, kernel: Kernel.IKernelConnection, puzzle: string | null): CodeCell[] {
    if (puzzle === null) {
      return [];
    }
    const seen = this.seen(kernel);
    const above = notebook.widgets.slice(0, notebook.widgets.indexOf(cell));
    return above.filter((c): c is CodeCell => isCode(c) && !seen.has(key(c)));
  }

  private run(panel: NotebookPanel, cells: Cell[]): Promise<boolean> {
    const context: ISessionContext = panel.sessionContext;
    return NotebookActions.runCells(panel.content, cells, context, new SessionContextDialogs({ translator: this.translator }), this.translator);
  }

  /** Execute `code` unseen and put what it shows below the cell. */
  private async ask(kernel: Kernel.IKernelConnection, code: string, cell: CodeCell): Promise<Verdict | null> {
    let verdict: Verdict | null = null;
    const outputs = cell.outputArea.model;
    const future = kernel.requestExecute({ code, store_history: false, stop_on_error: false });
    future.onIOPub = message => {
      const output = asOutput(message);
      if (output !== null) {
        outputs.add(output);
        const data = (output as { data?: Record<string, unknown> }).data;
        verdict = (data?.[REPORT] as Verdict | undefined) ?? verdict;
      }
    };
    await future.done;
    cell.outputArea.node.lastElementChild?.scrollIntoView({ block: 'nearest', behavior: 'smooth' });
    return verdict;
  }
}

function isCode(cell: Cell | null): cell is CodeCell {
  return cell?.model.type === 'code';
}

/** A cell with its text: an edited cell has to be run again. */
function key(cell: CodeCell): string {
  return `${cell.model.id}\n${cell.model.sharedModel.getSource()}`;
}

function kernelOf(notebook: Notebook): Kernel.IKernelConnection | null {
  const panel = notebook.parent as NotebookPanel | null;
  return panel?.sessionContext?.session?.kernel ?? null;
}

/** The cell whose kernel is meant: the solution of a puzzle's notebook, or else the active code cell. */
function target(notebook: Notebook, puzzle: string | null): CodeCell | null {
  const active = notebook.activeCell;
  if (puzzle === null || (isCode(active) && (solves(active) || defines(active)))) {
    return isCode(active) ? active : null;
  }
  return notebook.widgets.find((c): c is CodeCell => isCode(c) && solves(c)) ?? (isCode(active) ? active : null);
}

/** Make a cell the active one and bring it into sight: Check may be pressed far from it. */
function show(notebook: Notebook, cell: Cell): void {
  if (notebook.activeCell !== cell) {
    const index = notebook.widgets.indexOf(cell);
    notebook.deselectAll();
    notebook.activeCellIndex = index;
    void notebook.scrollToItem(index, 'smart');
  }
}

function solves(cell: Cell): boolean {
  const mark = cell.model.getMetadata('tilelab') as CellMark | undefined;
  const nbgrader = cell.model.getMetadata('nbgrader') as { solution?: boolean } | undefined;
  return mark?.role === 'solution' || nbgrader?.solution === true;
}

function defines(cell: CodeCell): boolean {
  return /^\s*@\s*(tilelang|tl|T)\.(jit|prim_func)\b/m.test(cell.model.sharedModel.getSource());
}

/** A Python string literal. JSON's escapes mean the same in Python, but for lone surrogates, which Python takes as they are. */
function literal(text: string): string {
  return JSON.stringify(text);
}

const SHOWN = new Set(['display_data', 'execute_result', 'stream', 'error']);

function asOutput(message: KernelMessage.IIOPubMessage): IOutput | null {
  const type = message.header.msg_type;
  if (!SHOWN.has(type)) {
    return null;
  }
  const { transient: _, ...content } = message.content as unknown as Record<string, unknown>;
  return { output_type: type, ...content } as unknown as IOutput;
}
