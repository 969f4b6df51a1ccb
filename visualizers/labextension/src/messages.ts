/** Every sentence of the extension in both languages. `{name}` is filled in by {@link say}. */
import type { Language } from './api';

const MESSAGES = {
  panel: ['TileLab puzzles', 'TileLab 题目'],
  showPanel: ['Show TileLab Puzzles', '显示 TileLab 题目'],
  puzzles: ['Puzzles', '题目'],
  part: ['Part {part}', '第 {part} 部分'],
  filter: ['Filter puzzles', '筛选题目'],
  nothing: ['No puzzle matches “{text}”.', '没有与“{text}”匹配的题目。'],
  progress: ['{solved} of {total} solved', '已完成 {solved} / {total}'],
  allDone: ['All {total} solved. Well done!', '全部 {total} 题已完成，真棒！'],
  start: ['Start', '开始'],
  next: ['Continue', '继续'],
  loading: ['Loading the puzzles…', '正在加载题目…'],
  unavailable: ['The puzzles cannot be listed', '无法列出题目'],
  remedy: [
    'Is the server extension enabled? Run “jupyter server extension enable tilelab.lab”, restart and try again.',
    '服务器扩展启用了吗？请运行 “jupyter server extension enable tilelab.lab”，重启后再试。'
  ],
  retry: ['Try again', '重试'],
  refresh: ['Refresh the list', '刷新列表'],
  switch: ['Switch to Chinese', '切换到英文'],
  new: ['not started', '未开始'],
  started: ['in progress', '进行中'],
  solved: ['solved', '已完成'],
  score: ['{score} of {max} points', '得分 {score} / {max}'],
  openFailed: ['Puzzle {number} could not be opened', '无法打开第 {number} 题'],
  check: ['Check', '检查'],
  checkCaption: ['Check this cell in the simulator', '在模拟器中检查此单元格'],
  checkPuzzle: ['Check your solution of this puzzle', '检查你对本题的解答'],
  checking: ['Checking…', '正在检查…'],
  passed: ['Passed: {score} of {max} points', '通过：得分 {score} / {max}'],
  failed: ['Not yet: see the report below the cell', '尚未通过：请看单元格下方的报告'],
  noCell: ['There is no code cell to check. Select one and press Check.', '没有可检查的代码单元格。请选中一个，再按“检查”。'],
  noKernel: ['This notebook has no running kernel. Start one and press Check.', '此笔记本没有运行中的内核。请启动内核后再按“检查”。'],
  notPython: ['The kernel of this notebook is not Python.', '此笔记本的内核不是 Python。']
} as const satisfies Record<string, readonly [string, string]>;

export type Message = keyof typeof MESSAGES;

/** Return the sentence `key` in `language`, with the named values in place. */
export function say(language: Language, key: Message, values: Record<string, string | number> = {}): string {
  return MESSAGES[key][language === 'zh' ? 1 : 0].replace(/\{(\w+)\}/g, (_, name: string) => String(values[name] ?? ''));
}
