/** The plugins of TileLab. Whatever the host may lack (Notebook 7 has no layout restorer, a page may have no notebooks) is optional. */
import { ILabShell, ILayoutRestorer, type JupyterFrontEnd, type JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette, Notification } from '@jupyterlab/apputils';
import { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { IStatusBar } from '@jupyterlab/statusbar';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { Token } from '@lumino/coreutils';
import css from '../style/index.css';
import { Api, type Language, type Puzzle } from './api';
import { CannotCheck, checkable, Checker, puzzleOf, type Verdict } from './check';
import { checkIcon, tilesIcon } from './icons';
import { say, type Message } from './messages';
import { Course } from './model';
import { PuzzlePanel } from './panel';
import { ProgressItem } from './status';

const ICourse = new Token<Course>('tilelab:ICourse', 'The puzzles and how far the learner is with them.');

const COMMANDS = { check: 'tilelab:check', open: 'tilelab:open', show: 'tilelab:show-panel' } as const;

/** The course, its side panel, the language. */
const plugin: JupyterFrontEndPlugin<Course> = {
  id: 'tilelab:plugin',
  description: 'The list of TileLab puzzles in a side panel.',
  autoStart: true,
  provides: ICourse,
  optional: [ISettingRegistry, ITranslator, ICommandPalette, ILayoutRestorer, ILabShell, INotebookTracker],
  activate(
    app: JupyterFrontEnd,
    registry: ISettingRegistry | null,
    translator: ITranslator | null,
    palette: ICommandPalette | null,
    restorer: ILayoutRestorer | null,
    lab: ILabShell | null,
    notebooks: INotebookTracker | null
  ): Course {
    addStyle();
    const course = new Course(new Api(app.serviceManager.serverSettings));
    const followed = languageOf(translator?.languageCode ?? 'en');
    course.setLanguage(followed);
    let settings: ISettingRegistry.ISettings | null = null;

    const open = async (puzzle: Puzzle): Promise<void> => {
      try {
        await course.open(puzzle, path => app.commands.execute('docmanager:open', { path, factory: 'Notebook' }));
      } catch (error) {
        const what = say(course.language, 'openFailed', { number: puzzle.number });
        Notification.error(`${what}: ${error instanceof Error ? error.message : String(error)}`);
      }
    };
    const switchLanguage = (): void => {
      const language: Language = course.language === 'zh' ? 'en' : 'zh';
      course.setLanguage(language);
      void settings?.set('language', language);
    };
    const panel = new PuzzlePanel(course, { open: puzzle => void open(puzzle), switchLanguage });
    app.shell.add(panel, 'left', { rank: 150, type: 'TileLab' });
    restorer?.add(panel, panel.id);

    app.commands.addCommand(COMMANDS.show, {
      label: () => say(course.language, 'showPanel'),
      icon: tilesIcon,
      execute: () => app.shell.activateById(panel.id)
    });
    app.commands.addCommand(COMMANDS.open, {
      label: args => `${args.puzzle ?? ''}`,
      execute: async args => {
        const wanted = String(args.puzzle);
        const puzzle = course.puzzles?.find(p => p.id === wanted || String(p.number) === wanted);
        await (puzzle ? open(puzzle) : Promise.reject(new Error(`No puzzle ${wanted}`)));
      }
    });
    palette?.addItem({ command: COMMANDS.show, category: 'TileLab' });

    const begin = async (): Promise<void> => {
      if (registry) {
        try {
          settings = await registry.load(plugin.id);
          const apply = (): void => {
            const chosen = settings?.composite.language;
            course.setLanguage(chosen === 'en' || chosen === 'zh' ? chosen : followed);
          };
          settings.changed.connect(apply);
          apply();
        } catch (error) {
          console.warn('TileLab: its settings could not be loaded', error);
        }
      }
      await Promise.all([course.refresh(), app.restored]);
      if (settings?.composite.openPanelAtStart === true) {
        app.shell.activateById(panel.id);
      }
    };
    void begin();

    const follow = (): void => {
      const front = lab ? lab.currentWidget : notebooks?.currentWidget ?? null;
      const panel = front instanceof NotebookPanel ? front : null;
      course.setCurrent(panel?.context.isReady ? puzzleOf(panel.content) : null);
      if (panel && !panel.context.isReady) {
        void panel.context.ready.then(follow);
      }
    };
    lab?.currentChanged.connect(follow);
    notebooks?.currentChanged.connect(follow);
    return course;
  }
};

/** The Check button. */
const check: JupyterFrontEndPlugin<void> = {
  id: 'tilelab:check',
  description: 'A button that checks the kernel of a cell in the simulator.',
  autoStart: true,
  requires: [ICourse, INotebookTracker],
  optional: [ITranslator, ICommandPalette],
  activate(app: JupyterFrontEnd, course: Course, notebooks: INotebookTracker, translator: ITranslator | null, palette: ICommandPalette | null): void {
    const checker = new Checker(translator ?? nullTranslator);
    const live = liveRegion();
    const { commands } = app;
    const applies = (): boolean => notebooks.currentWidget !== null && checkable(notebooks.currentWidget.content);

    const run = async (): Promise<Verdict | null> => {
      const panel = notebooks.currentWidget;
      if (panel === null || course.activity === 'checking') {
        return null;
      }
      course.setActivity('checking');
      commands.notifyCommandChanged(COMMANDS.check);
      const tell = (key: Message, values = {}): void => {
        live.textContent = say(course.language, key, values);
      };
      tell('checking');
      try {
        const verdict = await checker.check(panel, course.language);
        if (verdict?.passed === true && verdict.score !== null) {
          tell('passed', { score: verdict.score, max: verdict.max ?? 100 });
        } else {
          tell('failed');
        }
        return verdict;
      } catch (error) {
        const said = error instanceof CannotCheck ? say(course.language, error.why) : error instanceof Error ? error.message : String(error);
        Notification.warning(`TileLab: ${said}`, { autoClose: 6000 });
        return null;
      } finally {
        course.setActivity('idle');
        commands.notifyCommandChanged(COMMANDS.check);
        void course.refresh();
      }
    };

    commands.addCommand(COMMANDS.check, {
      label: () => say(course.language, course.activity === 'checking' ? 'checking' : 'check'),
      caption: () => {
        const panel = notebooks.currentWidget;
        return say(course.language, panel && puzzleOf(panel.content) !== null ? 'checkPuzzle' : 'checkCaption');
      },
      // With an icon a toolbar would leave the word out; there the style sheet draws it.
      icon: args => (args.toolbar === true ? undefined : checkIcon),
      iconClass: args => (args.toolbar === true ? 'tl-CheckIcon' : ''),
      isVisible: applies,
      isEnabled: () => applies() && course.activity !== 'checking',
      execute: run
    });
    palette?.addItem({ command: COMMANDS.check, category: 'TileLab' });

    const refresh = (): void => commands.notifyCommandChanged(COMMANDS.check);
    notebooks.currentChanged.connect(refresh);
    notebooks.activeCellChanged.connect(refresh);
    notebooks.widgetAdded.connect((_, panel) => {
      void panel.context.ready.then(refresh);
    });
    course.changed.connect(refresh);
  }
};

/** How far the learner is, at the foot of the window. */
const status: JupyterFrontEndPlugin<void> = {
  id: 'tilelab:status',
  description: 'The progress of the learner in the status bar.',
  autoStart: true,
  requires: [ICourse],
  optional: [IStatusBar],
  activate(app: JupyterFrontEnd, course: Course, bar: IStatusBar | null): void {
    const item = bar && new ProgressItem(course, () => void app.commands.execute(COMMANDS.show));
    if (bar && item) {
      bar.registerStatusItem(status.id, { item, align: 'left', rank: 4, isActive: () => (course.puzzles?.length ?? 0) > 0, activeStateChanged: course.changed });
    }
  }
};

function languageOf(code: string): Language {
  return /^zh\b|^zh_/i.test(code) ? 'zh' : 'en';
}

function addStyle(): void {
  const style = document.createElement('style');
  style.dataset.tilelab = 'labextension';
  style.textContent = css;
  document.head.append(style);
}

/** A region that screen readers speak when its text changes. */
function liveRegion(): HTMLElement {
  const region = document.createElement('div');
  region.className = 'tl-sr';
  region.setAttribute('role', 'status');
  region.setAttribute('aria-live', 'polite');
  document.body.append(region);
  return region;
}

export default [plugin, check, status];
