import { expect, test } from 'vitest';
import { ApiError, type Api, type Language, type Puzzle, type PuzzleList, type State } from './api';
import { say } from './messages';
import { Course } from './model';

function puzzle(number: number, state: State): Puzzle {
  const id = `${number}_p`;
  return { id, number, title: id, idea: '', part: 'A', partTitle: 'Tiles', state, score: null, max: 100, path: null };
}

function list(...puzzles: Puzzle[]): PuzzleList {
  return { schema: 'tilelab.lab.puzzles', version: 1, folder: '', puzzles };
}

/** A server whose answers come when the test says so. */
class Server {
  readonly asked: { language: Language; answer: (list: PuzzleList) => void; refuse: (error: Error) => void }[] = [];
  readonly api = {
    puzzles: (language: Language) => new Promise<PuzzleList>((answer, refuse) => this.asked.push({ language, answer, refuse })),
    open: async (id: string) => ({ id, path: `${id}.ipynb`, created: true })
  } as unknown as Api;
}

test('the next puzzle is the first that is not solved', async () => {
  const server = new Server();
  const course = new Course(server.api);
  const done = course.refresh();
  server.asked[0]!.answer(list(puzzle(1, 'solved'), puzzle(7, 'started'), puzzle(25, 'new')));
  await done;
  expect([course.next?.number, course.solved]).toEqual([7, 1]);
});

test('of two questions under way the later one wins, whichever answer comes first', async () => {
  const server = new Server();
  const course = new Course(server.api);
  const first = course.refresh();
  course.setLanguage('zh');
  server.asked[1]!.answer(list(puzzle(2, 'new')));
  server.asked[0]!.answer(list(puzzle(1, 'new')));
  await first;
  await Promise.resolve();
  expect(server.asked.map(a => a.language)).toEqual(['en', 'zh']);
  expect(course.puzzles?.map(p => p.number)).toEqual([2]);
});

test('a failure keeps the list that was there, and says why', async () => {
  const server = new Server();
  const course = new Course(server.api);
  let done = course.refresh();
  server.asked[0]!.answer(list(puzzle(1, 'new')));
  await done;
  done = course.refresh();
  server.asked[1]!.refuse(new ApiError('503 gone'));
  await done;
  expect([course.puzzles?.length, course.error]).toEqual([1, '503 gone']);
});

test('changes are told once, and only changes', () => {
  const course = new Course(new Server().api);
  let told = 0;
  course.changed.connect(() => told++);
  course.setCurrent('1_p');
  course.setCurrent('1_p');
  expect(told).toBe(1);
});

test('sentences are filled in, in both languages', () => {
  expect(say('en', 'progress', { solved: 1, total: 3 })).toBe('1 of 3 solved');
  expect(say('zh', 'progress', { solved: 1, total: 3 })).toBe('已完成 1 / 3');
});

test('puzzles open in the order asked for, and one that fails holds up nobody', async () => {
  const answers: Record<string, (path: string) => void> = {};
  const api = {
    puzzles: async () => list(),
    open: (id: string) =>
      id === 'puzzle_2' ? Promise.reject(new ApiError('no such puzzle')) : new Promise(done => (answers[id] = path => done({ id, path, created: true })))
  } as unknown as Api;
  const course = new Course(api);
  const shown: string[] = [];
  const show = async (path: string): Promise<void> => void shown.push(path);
  const [slow, wrong, last] = [1, 2, 3].map(n => course.open({ ...puzzle(n, 'new'), id: `puzzle_${n}` }, show));
  await Promise.resolve();
  answers['puzzle_1']!('first.ipynb');
  await slow;
  await expect(wrong).rejects.toThrow('no such puzzle');
  await new Promise(done => setTimeout(done));
  answers['puzzle_3']!('last.ipynb');
  await last;
  expect(shown).toEqual(['first.ipynb', 'last.ipynb']);
});
