/** The status item: solved of all, or that a check runs; a click shows the panel. */
import { ReactWidget, UseSignal } from '@jupyterlab/ui-components';
import * as React from 'react';
import { tilesIcon } from './icons';
import { say } from './messages';
import type { Course } from './model';

export class ProgressItem extends ReactWidget {
  constructor(
    private readonly course: Course,
    private readonly onPress: () => void
  ) {
    super();
    this.addClass('tl-Status');
    this.addClass('jp-mod-highlighted');
  }

  protected override render(): React.ReactElement {
    return <UseSignal signal={this.course.changed}>{() => this.item()}</UseSignal>;
  }

  private item(): React.ReactElement {
    const { course } = this;
    const values = { solved: course.solved, total: course.puzzles?.length ?? 0 };
    const busy = course.activity === 'checking';
    const text = busy ? say(course.language, 'checking') : `${values.solved}/${values.total}`;
    const label = busy ? text : say(course.language, 'progress', values);
    return (
      <button type="button" className="tl-Status-button" title={`TileLab: ${label}`} aria-label={`TileLab: ${label}`} onClick={this.onPress}>
        <tilesIcon.react tag="span" className="tl-Status-icon" />
        <span aria-hidden="true">{text}</span>
      </button>
    );
  }
}
