/** The side panel: the course as a list, and how far the learner is. */
import { ReactWidget, UseSignal } from '@jupyterlab/ui-components';
import * as React from 'react';
import type { Puzzle } from './api';
import { tilesIcon } from './icons';
import { say, type Message } from './messages';
import type { Course } from './model';

export interface PanelActions {
  open(puzzle: Puzzle): void;
  switchLanguage(): void;
}

export class PuzzlePanel extends ReactWidget {
  constructor(
    private readonly course: Course,
    private readonly actions: PanelActions
  ) {
    super();
    this.id = 'tilelab-panel';
    this.addClass('tl-Panel');
    this.title.icon = tilesIcon;
    this.node.setAttribute('role', 'region');
    this.relabel();
    course.changed.connect(this.relabel, this);
  }

  protected override render(): React.ReactElement {
    return <UseSignal signal={this.course.changed}>{() => <Content course={this.course} actions={this.actions} />}</UseSignal>;
  }

  private relabel(): void {
    const label = say(this.course.language, 'panel');
    this.title.caption = label;
    this.node.setAttribute('aria-label', label);
    this.node.lang = this.course.language === 'zh' ? 'zh-CN' : 'en';
  }
}

interface Props {
  readonly course: Course;
  readonly actions: PanelActions;
}

function Content({ course, actions }: Props): React.ReactElement {
  const [text, setText] = React.useState('');
  const language = course.language;
  const puzzles = course.puzzles;
  if (puzzles === null) {
    return course.error === null ? <p className="tl-Note">{say(language, 'loading')}</p> : <Failure course={course} />;
  }
  const shown = puzzles.filter(p => matches(p, text));
  return (
    <>
      <header className="tl-Head">
        <Title course={course} actions={actions} />
        <Progress course={course} />
        <Next course={course} actions={actions} />
        <input
          className="tl-Filter"
          type="search"
          value={text}
          placeholder={say(language, 'filter')}
          aria-label={say(language, 'filter')}
          onChange={event => setText(event.target.value)}
        />
      </header>
      {course.error !== null && <Failure course={course} />}
      {shown.length > 0 ? (
        <Parts course={course} puzzles={shown} open={actions.open} />
      ) : (
        <p className="tl-Note">{say(language, 'nothing', { text })}</p>
      )}
    </>
  );
}

function Title({ course, actions }: Props): React.ReactElement {
  const language = course.language;
  const toChinese = language === 'en';
  return (
    <div className="tl-Title">
      <h2>TileLab</h2>
      <button
        type="button"
        className="tl-Plain"
        title={say(language, 'switch')}
        aria-label={say(language, 'switch')}
        lang={toChinese ? 'zh-CN' : 'en'}
        onClick={() => actions.switchLanguage()}
      >
        {toChinese ? '中文' : 'EN'}
      </button>
      <button
        type="button"
        className="tl-Plain"
        title={say(language, 'refresh')}
        aria-label={say(language, 'refresh')}
        onClick={() => void course.refresh()}
      >
        <svg viewBox="0 0 16 16" width="14" height="14" aria-hidden="true">
          <path
            d="M13.2 8a5.2 5.2 0 1 1-1.6-3.8M13.4 1.8v3.1h-3.1"
            fill="none"
            stroke="currentColor"
            strokeWidth="1.5"
            strokeLinecap="round"
            strokeLinejoin="round"
          />
        </svg>
      </button>
    </div>
  );
}

/** One small tile a puzzle, in the order of the course. */
function Progress({ course }: { course: Course }): React.ReactElement {
  const puzzles = course.puzzles ?? [];
  const values = { solved: course.solved, total: puzzles.length };
  const label = say(course.language, 'progress', values);
  return (
    <div className="tl-Progress">
      <div className="tl-Progress-tiles" role="img" aria-label={label}>
        {puzzles.map(p => (
          <span key={p.id} data-state={p.state} />
        ))}
      </div>
      <span className="tl-Progress-text" aria-hidden="true">
        {label}
      </span>
    </div>
  );
}

function Next({ course, actions }: Props): React.ReactElement | null {
  const next = course.next;
  const language = course.language;
  if (next === null) {
    return <p className="tl-Done">{say(language, 'allDone', { total: course.puzzles?.length ?? 0 })}</p>;
  }
  if (next.id === course.current) {
    return null; // it lies open already
  }
  const untouched = course.puzzles?.every(p => p.state === 'new') ?? false;
  return (
    <button type="button" className="tl-Next" onClick={() => actions.open(next)}>
      <span className="tl-Next-verb">{say(language, untouched ? 'start' : 'next')}</span>
      <span className="tl-Next-title">
        {next.number} · {next.title}
      </span>
      <span aria-hidden="true">→</span>
    </button>
  );
}

interface PartsProps {
  readonly course: Course;
  readonly puzzles: readonly Puzzle[];
  readonly open: (puzzle: Puzzle) => void;
}

/** The list by parts. Tab enters it at one puzzle; the arrows, Home and End go on from there. */
function Parts({ course, puzzles, open }: PartsProps): React.ReactElement {
  const list = React.useRef<HTMLDivElement>(null);
  const [focused, setFocused] = React.useState<string | null>(null);
  const entry = [focused, course.current].find(id => puzzles.some(p => p.id === id)) ?? puzzles[0]?.id;

  const onKeyDown = (event: React.KeyboardEvent): void => {
    const rows = [...(list.current?.querySelectorAll<HTMLButtonElement>('button.tl-Puzzle') ?? [])];
    const at = rows.indexOf(event.target as HTMLButtonElement);
    const goal: Record<string, number> = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1 };
    const row = rows[goal[event.key] ?? -1];
    if (row) {
      event.preventDefault();
      event.stopPropagation();
      row.focus();
    }
  };

  return (
    <div className="tl-Parts" ref={list} onKeyDown={onKeyDown}>
      {byPart(puzzles).map(([part, title, members]) => (
        <section key={part} aria-labelledby={`tl-part-${part}`}>
          <h3 id={`tl-part-${part}`}>
            <span className="tl-Part-letter" aria-hidden="true">
              {part}
            </span>
            <span className="tl-sr">{say(course.language, 'part', { part })}: </span>
            {title}
            <span className="tl-Part-count" aria-hidden="true">
              {members.filter(p => p.state === 'solved').length}/{members.length}
            </span>
          </h3>
          <ul>
            {members.map(p => (
              <li key={p.id}>
                <Row puzzle={p} course={course} tabbable={p.id === entry} onFocus={() => setFocused(p.id)} onClick={() => open(p)} />
              </li>
            ))}
          </ul>
        </section>
      ))}
    </div>
  );
}

interface RowProps {
  readonly puzzle: Puzzle;
  readonly course: Course;
  readonly tabbable: boolean;
  readonly onFocus: () => void;
  readonly onClick: () => void;
}

function Row({ puzzle, course, tabbable, onFocus, onClick }: RowProps): React.ReactElement {
  const language = course.language;
  const current = puzzle.id === course.current;
  const scored = puzzle.score !== null && puzzle.state !== 'new';
  const score = scored ? say(language, 'score', { score: puzzle.score ?? 0, max: puzzle.max }) : '';
  const state = say(language, puzzle.state satisfies Message);
  return (
    <button
      type="button"
      className="tl-Puzzle"
      data-puzzle={puzzle.id}
      data-state={puzzle.state}
      tabIndex={tabbable ? 0 : -1}
      aria-current={current ? 'page' : undefined}
      aria-label={[`${puzzle.number}. ${puzzle.title}`, state, score].filter(Boolean).join(', ')}
      aria-description={puzzle.idea}
      title={[state, score].filter(Boolean).join(' · ')}
      onFocus={onFocus}
      onClick={onClick}
    >
      <span className="tl-Tile" aria-hidden="true">
        {puzzle.number}
      </span>
      <span className="tl-Puzzle-words" aria-hidden="true">
        <span className="tl-Puzzle-title">{puzzle.title}</span>
        {puzzle.idea && <span className="tl-Puzzle-idea">{puzzle.idea}</span>}
      </span>
      {scored && (
        <span className="tl-Puzzle-score" aria-hidden="true">
          {puzzle.score}
        </span>
      )}
    </button>
  );
}

function Failure({ course }: { course: Course }): React.ReactElement {
  const language = course.language;
  return (
    <div className="tl-Failure" role="alert">
      <strong>{say(language, 'unavailable')}</strong>
      <p>{course.error}</p>
      <p>{say(language, 'remedy')}</p>
      <button type="button" className="tl-Plain" onClick={() => void course.refresh()}>
        {say(language, 'retry')}
      </button>
    </div>
  );
}

function matches(puzzle: Puzzle, text: string): boolean {
  const words = text.toLocaleLowerCase().split(/\s+/).filter(Boolean);
  const hay = `${puzzle.number} ${puzzle.id} ${puzzle.title} ${puzzle.idea} ${puzzle.partTitle}`.toLocaleLowerCase();
  return words.every(word => hay.includes(word));
}

function byPart(puzzles: readonly Puzzle[]): [string, string, Puzzle[]][] {
  const parts = new Map<string, [string, string, Puzzle[]]>();
  for (const puzzle of puzzles) {
    const part = parts.get(puzzle.part);
    if (part) {
      part[2].push(puzzle);
    } else {
      parts.set(puzzle.part, [puzzle.part, puzzle.partTitle, [puzzle]]);
    }
  }
  return [...parts.values()];
}
