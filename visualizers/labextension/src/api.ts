/** The REST interface of `tilelab.lab`, the half of the extension that runs in the Jupyter server. */
import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';

export type Language = 'en' | 'zh';

/** How far the learner is with a puzzle. */
export type State = 'new' | 'started' | 'solved';

export interface Puzzle {
  /** The folder's name, `1_copy`. */
  id: string;
  number: number;
  title: string;
  /** The one new idea of the puzzle, a short sentence. */
  idea: string;
  /** The letter of its part of the course and that part's title. */
  part: string;
  partTitle: string;
  state: State;
  score: number | null;
  max: number;
  /** The learner's copy, relative to the server's root; null until it is opened once. */
  path: string | null;
}

export interface PuzzleList {
  schema: 'tilelab.lab.puzzles';
  version: 1;
  /** The learner's folder, relative to the server's root. */
  folder: string;
  puzzles: Puzzle[];
}

export interface Opened {
  id: string;
  path: string;
  /** False when the learner's copy was there and was left as it is. */
  created: boolean;
}

/** What the server answered instead of a result: one sentence, fit to show. */
export class ApiError extends Error {}

async function request<T>(path: string, init: RequestInit, settings: ServerConnection.ISettings): Promise<T> {
  const url = URLExt.join(settings.baseUrl, 'tilelab', 'api', path);
  let response: Response;
  try {
    response = await ServerConnection.makeRequest(url, init, settings);
  } catch (error) {
    throw new ApiError(String(error));
  }
  const text = await response.text();
  let data: unknown;
  try {
    data = JSON.parse(text);
  } catch {
    data = undefined;
  }
  if (!response.ok) {
    const said = (data as { message?: unknown } | undefined)?.message;
    throw new ApiError(typeof said === 'string' && said ? said : `${response.status} ${response.statusText}`);
  }
  return data as T;
}

export class Api {
  constructor(private readonly settings: ServerConnection.ISettings) {}

  puzzles(language: Language): Promise<PuzzleList> {
    return request(`puzzles?lang=${language}`, { method: 'GET' }, this.settings);
  }

  open(id: string, language: Language): Promise<Opened> {
    return request('open', { method: 'POST', body: JSON.stringify({ puzzle: id, lang: language }) }, this.settings);
  }
}
