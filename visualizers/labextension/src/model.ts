/** The state that the panel, the status item and the check share: the puzzles, the language and what runs now. */
import { Signal, type ISignal } from '@lumino/signaling';
import { ApiError, type Api, type Language, type Puzzle } from './api';

export type Activity = 'idle' | 'checking';

export class Course {
  private readonly _changed = new Signal<this, void>(this);
  private _puzzles: readonly Puzzle[] | null = null;
  private _language: Language = 'en';
  private _error: string | null = null;
  private _current: string | null = null;
  private _activity: Activity = 'idle';
  private _asked = 0;
  private _opening: Promise<void> = Promise.resolve();

  constructor(private readonly api: Api) {}

  /** Emitted after anything below has changed. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** The puzzles in the order of the course; null before the first answer. */
  get puzzles(): readonly Puzzle[] | null {
    return this._puzzles;
  }

  /** Why the list could not be had, or null. */
  get error(): string | null {
    return this._error;
  }

  get language(): Language {
    return this._language;
  }

  /** The id of the puzzle whose notebook is in front, or null. */
  get current(): string | null {
    return this._current;
  }

  get activity(): Activity {
    return this._activity;
  }

  get solved(): number {
    return this._puzzles?.filter(p => p.state === 'solved').length ?? 0;
  }

  /** What to do next: the first puzzle of the course that is not solved. */
  get next(): Puzzle | null {
    return this._puzzles?.find(p => p.state !== 'solved') ?? null;
  }

  setLanguage(language: Language): void {
    if (language === this._language) {
      return;
    }
    this._language = language;
    this._changed.emit();
    void this.refresh();
  }

  setCurrent(id: string | null): void {
    if (id !== this._current) {
      this._current = id;
      this._changed.emit();
    }
  }

  setActivity(activity: Activity): void {
    this._activity = activity;
    this._changed.emit();
  }

  /** Ask the server for the list; of two answers under way the later question wins. */
  async refresh(): Promise<void> {
    const asked = ++this._asked;
    try {
      const list = await this.api.puzzles(this._language);
      if (asked !== this._asked) {
        return;
      }
      this._puzzles = list.puzzles;
      this._error = null;
    } catch (error) {
      if (asked !== this._asked) {
        return;
      }
      this._error = error instanceof ApiError ? error.message : String(error);
    }
    this._changed.emit();
  }

  /**
   * Make sure that the learner has a copy of the puzzle, and show it. Puzzles open in the order in which they were asked for,
   * so that the last one asked for ends in front, however long each takes.
   */
  open(puzzle: Puzzle, show: (path: string) => Promise<unknown>): Promise<void> {
    const turn = this._opening.then(async () => {
      const { path } = await this.api.open(puzzle.id, this._language);
      void this.refresh();
      await show(path);
    });
    this._opening = turn.catch(() => undefined); // one that fails holds up nobody
    return turn;
  }
}
