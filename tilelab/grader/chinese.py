# ruff: noqa: E501 (a sentence and its translation stand in one line)
"""Reports in Chinese: the grader's sentences by template. What comes from TileLang or a learner stays as it is.

The English sentence is what is recorded and compared; this turns it, sentence by sentence, when a report is shown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache

#: English template → Chinese template; ``{x}`` is anything, ``{x!}`` is turned as well.
SENTENCES: Mapping[str, str] = {
    # headings and words of a report
    "passed": "通过",
    "not passed yet": "尚未通过",
    "points": "分",
    "first wrong element": "第一个错误元素",
    "findings": "发现的问题",
    "counts": "计数",
    "to gain the next points": "如何再得分",
    "look at": "看看这些图",
    "basis": "依据",
    "code": "代号",
    "line": "行",
    "what": "问题",
    "what to try": "可以试试",
    "count": "计数",
    "yours": "你的",
    "best known": "目前最好",
    "Where the output is wrong": "输出错在哪里",
    # checks
    "lowers for {arch}": "可为 {arch} 编译",
    "clean": "干净",
    "speed": "速度",
    "as it is": "唯一的情形",
    "capture: {reason}": "捕获：{reason}",
    "{got} of {most} points": "{got} / {most} 分",
    # messages
    "{out}[{at}]: expected {want}, got {got} ({n} of {all} elements are wrong)": "{out}[{at}]：应为 {want}，得到 {got}（{all} 个元素中错了 {n} 个）",
    "{out}[{at}]: expected {want}, got {got}, block {b}, thread {t}, line {l} of the cell; {n} of {all} elements are wrong":
        "{out}[{at}]：应为 {want}，得到 {got}；块 {b}，线程 {t}，单元格第 {l} 行；{all} 个元素中错了 {n} 个",
    "{out}[{at}]: expected {want}, got {got}, block {b}, line {l} of the cell; {n} of {all} elements are wrong":
        "{out}[{at}]：应为 {want}，得到 {got}；块 {b}，单元格第 {l} 行；{all} 个元素中错了 {n} 个",
    "{out}[{at}]: expected {want}, got {got}, block {b}, thread {t}, {where}; {n} of {all} elements are wrong":
        "{out}[{at}]：应为 {want}，得到 {got}；块 {b}，线程 {t}，{where}；{all} 个元素中错了 {n} 个",
    "{out}[{at}]: expected {want}, got {got}, block {b}, {where}; {n} of {all} elements are wrong":
        "{out}[{at}]：应为 {want}，得到 {got}；块 {b}，{where}；{all} 个元素中错了 {n} 个",
    "{out}[{at}]: expected {want}, got {got}; {n} of {all} elements are wrong": "{out}[{at}]：应为 {want}，得到 {got}；{all} 个元素中错了 {n} 个",
    "{out} is never written (all {n} elements are wrong)": "{out} 从未写过（{n} 个元素全错）",
    "not run: it does not end for {case}": "未运行：{case} 时它不会结束",
    "it is {value}; at most {most} is right": "为 {value}；最多 {most} 才对",
    "it is {value}; at least {least} is right": "为 {value}；至少 {least} 才对",
    "compulsory work was skipped": "省去了必须做的工作",
    "below the compulsory minimum": "低于必需的最小值",
    "not measured yet": "尚未测量",
    "not measured here": "此处无法测量",
    "not graded here": "此处不计分",
    "measured": "实测",
    "−{n}: {codes}": "扣 {n} 分：{codes}",
    "{entry} uses {name}, which this puzzle does not allow": "{entry} 用了 {name}，本题不允许",
    "{entry} does not use {name}, which this puzzle is about": "{entry} 没有用 {name}，而本题正是要用它",
    "{entry} launches {n} kernels; this puzzle allows {m}": "{entry} 启动了 {n} 个内核；本题允许 {m} 个",
    "{entry} takes {have}; it should have {want}": "{entry} 的参数是 {have}；应为 {want}",
    "{entry} returns {have}; it should have {want}": "{entry} 返回 {have}；应为 {want}",
    "{entry} returns a layout of {have}; it should be {want}": "{entry} 返回 {have} 的布局；应为 {want}",
    "{entry} returns {have}; it should be {want}": "{entry} 返回 {have}；应为 {want}",
    "{entry}: {name} is {have}; it should be {want}": "{entry}：{name} 是 {have}；应为 {want}",
    "it defines no kernel named {name}": "没有定义名为 {name} 的内核",
    "it returned {kind}, which is no layout": "它返回了 {kind}，不是布局",
    "it is {kind}, not a function of the sizes": "它是 {kind}，不是以尺寸为参数的函数",
    "running it raised {error}: {text}": "运行时抛出 {error}：{text}",
    "it did not finish within {n} s": "{n} 秒内没有结束",
    "it used more memory than a submission may": "用的内存超过了限额",
    "it tried what a submission may not do: {what}": "它做了不允许的事：{what}",
    "{ratio} of the baseline's speed ({more})": "速度为基准的 {ratio} 倍（{more}）",
    # advice
    "Try {case} first, the smallest case that fails.": "先试 {case}，这是失败的最小情形。",
    'Stuck? tilelab.puzzle("{n}").hint(1) gives the first of {m} hints; it costs nothing.':
        '卡住了？tilelab.puzzle("{n}").hint(1) 给出 {m} 条提示中的第一条；看提示不扣分。',
    "{name} is {value}, the best known is {best}: {points} points more.": "{name} 为 {value}，目前最好为 {best}：还可多得 {points} 分。",
    "The fix changes {n} statements, the smallest known {m}: {points} points more. Start from the broken kernel again and change only what is wrong.":
        "修改了 {n} 条语句，已知最少为 {m} 条：还可多得 {points} 分。从有错的内核重新开始，只改错的地方。",
    "It runs at {ratio} of the baseline's speed, all points begin at {full}: {points} points more.":
        "速度为基准的 {ratio} 倍，达到 {full} 倍得满分：还可多得 {points} 分。",
    "{name}: it is {value}; at most {most} is right.": "{name}：为 {value}；最多 {most} 才对。",
    "{name}: it is {value}; at least {least} is right.": "{name}：为 {value}；至少 {least} 才对。",
    "run the file by itself first": "先单独运行这个文件",
    # basis
    "simulated at tile level, counts predicted for {arch}": "在分块层面模拟，计数按 {arch} 预测",
    "run on {gpu} and simulated at tile level, {more!}": "在 {gpu} 上运行，并在分块层面模拟，{more}",
    "counts predicted for {arch}": "计数按 {arch} 预测",
    "speed measured against the baseline in the same run": "速度与基准在同一次运行中实测",
    "isolation: none, the kernel is this process's own": "隔离：无，内核属于本进程",
    "isolation: {guards}": "隔离：{guards}",
    "lowering is not possible on this machine, so counts are not graded and 75 is the most": "本机无法编译，故不计算计数分，满分为 75",
    "its counts are not measured yet, so counts are not graded and 75 is the most": "计数尚不能测量，故不计算计数分，满分为 75",
    # pictures
    "the layout of {name}": "{name} 的布局",
    "step through the block": "逐步运行这个块",
    "its pipeline": "它的流水线",
    "its resources": "它的资源",
    "its memory accesses": "它的访存",
    "its program": "它的程序",
    "yours beside the target": "你的与目标并排",
}  # fmt: skip

#: finding code → what it is
CODES: Mapping[str, str] = {
    "TL101": "越界", "TL102": "被屏蔽的访问", "TL103": "读取未初始化的值", "TL104": "输出未写", "TL105": "向量访问未对齐", "TL106": "下标在 int32 中溢出",
    "TL201": "数据竞争", "TL202": "缺少或放错了屏障", "TL203": "屏障处于分歧的条件下", "TL204": "缺少异步等待或等待太弱", "TL205": "屏障的相位、计数或字节数不对",
    "TL206": "死锁", "TL207": "缺少代理栅栏", "TL208": "浮点原子操作依赖顺序", "TL209": "手写的调度破坏了依赖", "TL301": "最早的 NaN 或 Inf", "TL302": "转换时溢出", "TL303": "整数除以零",
    "TL401": "线程读取了不归它所有的片段元素", "TL402": "布局冲突", "TL403": "此形状和线程数没有布局", "TL404": "布局不是一一对应",
    "TL501": "共享内存超限", "TL502": "线程数超限", "TL503": "寄存器超限", "TL504": "所选 GPU 没有这条指令", "TL505": "块数超限",
    "TL601": "每个线程都重复同样的工作", "TL602": "存储体冲突", "TL603": "浪费的扇区", "TL604": "省去了必须做的工作",
    "TL701": "操作数的形状或类型不合", "TL702": "TileLang 拒绝", "TL703": "尚不能模拟", "TL801": "两个层面的结果不一致", "TL802": "TileLang 编译出了别的东西", "TL901": "编译的内核比它捕获的全局变量旧", "TL902": "设备上的断言失败",
}  # fmt: skip


def translated(text: str, lang: str) -> str:
    """Return ``text`` in ``lang``; what no template fits stays English, except that a leading finding code gets its name."""
    if not lang.startswith("zh") or not text:
        return text
    for pattern, turn in _patterns():
        match = pattern.fullmatch(text)
        if match:
            return turn(match)
    if "; " in text:
        parts = [translated(p, lang) for p in text.split("; ")]
        if parts != text.split("; "):
            return "；".join(parts)
    code = re.match(r"(TL\d{3})(?: \(line (\d+)\))?: ", text)
    if code:
        line = f"（第 {code[2]} 行）" if code[2] else ""
        return f"{code[1]} {CODES.get(code[1], '')}{line}：{text[code.end() :]}"
    return text


@cache
def _patterns() -> list[tuple[re.Pattern[str], Callable[[re.Match[str]], str]]]:
    return [(_pattern(english), _turn(english, chinese)) for english, chinese in SENTENCES.items()]


def _pattern(template: str) -> re.Pattern[str]:
    parts = re.split(r"\{(\w+)!?\}", template)
    any_ = ".+?" if ";" in template else "[^;]+?"  # a sentence ends where the next begins
    out = "".join(re.escape(p) if i % 2 == 0 else f"(?P<{p}>{any_})" for i, p in enumerate(parts))
    return re.compile(out, re.DOTALL)


def _turn(english: str, chinese: str) -> Callable[[re.Match[str]], str]:
    again = set(re.findall(r"\{(\w+)!\}", english))

    def turn(m: re.Match[str]) -> str:
        values = {k: translated(v, "zh") if k in again else v for k, v in m.groupdict().items()}
        return re.sub(r"\{(\w+)\}", lambda x: values[x[1]], chinese)

    return turn
