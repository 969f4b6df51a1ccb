"""The fixed words of the views, in English and Chinese. The front ends get this table generated."""

from __future__ import annotations

from collections.abc import Mapping

from tilelab.views.words_pipeline import PIPELINE_WORDS
from tilelab.views.words_program import PROGRAM_WORDS
from tilelab.views.words_resources import RESOURCE_WORDS
from tilelab.views.words_trace import TRACE_WORDS

#: key → (English, Chinese). ``{name}`` is filled in.
WORDS: Mapping[str, tuple[str, str]] = {
    "fragment": ("fragment", "寄存器片段"),
    "shared": ("shared memory", "共享内存"),
    "loop": ("parallel loop", "并行循环"),
    "threads": ("threads", "线程"),
    "thread": ("thread", "线程"),
    "warp": ("warp", "线程束"),
    "lane": ("lane", "通道"),
    "register": ("register", "寄存器"),
    "registers": ("registers", "寄存器"),
    "element": ("element", "元素"),
    "elements": ("elements", "元素"),
    "iteration": ("iteration", "迭代"),
    "address": ("address", "地址"),
    "bank": ("bank", "存储体"),
    "banks": ("banks", "存储体"),
    "line": ("line", "行"),
    "value": ("value", "值"),
    "tile": ("Tile", "数据块"),
    "tile_hint": ("colour: owner thread", "颜色：所属线程"),
    "threads_title": ("Threads", "线程"),
    "threads_hint": ("hue: warp, depth: lane", "色相：线程束，深浅：通道"),
    "registers_of": ("Registers of thread {thread}", "线程 {thread} 的寄存器"),
    "registers_hint": ("the element each holds", "每个寄存器持有的元素"),
    "through": ("Through {name}", "经由 {name}"),
    "through_hint": ("its 128-byte lines × 32 banks, colour: the thread that finds its element there",
                     "其 128 字节行 × 32 个存储体，颜色：在此取元素的线程"),
    "through_line": ("{fragment} through {shared}: register by register a warp takes at most {worst} passes over the banks (mean {mean})",
                     "{fragment} 经由 {shared}：逐寄存器访问时一个线程束最多 {worst} 遍（平均 {mean}）"),
    "through_pick": ("through", "经由"),
    "bank_if_row_major": ("(row-major: bank {bank})", "（行优先时：存储体 {bank}）"),
    "before": ("Row-major", "行优先"),
    "after": ("As stored", "实际存放"),
    "memory": ("Shared memory", "共享内存"),
    "memory_hint": ("128-byte lines × 32 banks, colour: column of the tile", "128 字节一行 × 32 个存储体，颜色：所在列"),
    "value_hint": ("colour: value", "颜色：值"),
    "bank_hint": ("colour: bank", "颜色：存储体"),
    "replicas": ("copies of each element", "每个元素的副本"),
    "replica": ("copy", "副本"),
    "holds": ("thread {thread} holds {count} of {total}", "线程 {thread} 持有 {total} 个中的 {count} 个"),
    "corner": ("The first {rows}×{columns}", "开头的 {rows}×{columns}"),
    "conflicts": ("Bank conflicts of one warp", "一个线程束的存储体冲突"),
    "pattern": ("access", "访问"),
    "row": ("32 elements of a row", "一行中的 32 个元素"),
    "column": ("32 elements of a column", "一列中的 32 个元素"),
    "ldmatrix": ("ldmatrix: 8 rows × 16 bytes", "ldmatrix：8 行 × 16 字节"),
    "wavefronts_hint": ("passes over the banks, worst over the tile", "访问存储体的遍数，取整块中最坏者"),
    "wavefronts": ("wavefronts", "波前数"),
    "ideal": ("ideal", "理想"),
    "column_read": ("Lanes of a column read that hit each bank", "按列读取时落到各存储体的通道数"),
    "one_to_one": ("one-to-one", "一一对应"),
    "not_one_to_one": ("not one-to-one", "非一一对应"),
    "replicated": ("one-to-one, {count} copies", "一一对应，{count} 份副本"),
    "row_major": ("row-major", "行优先"),
    "column_major": ("column-major", "列优先"),
    "padded": ("padded: {count} elements unused", "有填充：{count} 个元素未用"),
    "blocked": ("blocked", "分块"),
    "swizzle": ("{bytes}-byte swizzle", "{bytes} 字节重排"),
    "irregular": ("irregular", "不规则"),
    "made_of": ("made of {atom} tiles", "由 {atom} 拼成"),
    "table": ("Table", "表格"),
    "show_table": ("The same as a table", "以表格显示"),
    "colour_by": ("colour", "着色"),
    "rows_axis": ("rows", "行轴"),
    "columns_axis": ("columns", "列轴"),
    "zoom_in": ("Zoom in", "放大"),
    "zoom_out": ("Zoom out", "缩小"),
    "fit": ("Fit", "适应"),
    "pinned": ("pinned", "已固定"),
    "unpin": ("Unpin", "取消固定"),
    "buffer": ("buffer", "缓冲区"),
    "hint": ("Hover or use the arrow keys; click or Enter pins, Escape frees, + and − zoom.",
             "悬停或用方向键移动；单击或回车固定，Esc 取消，+ 和 − 缩放。"),
    "padding": ("padding: no element lies here", "填充：此处没有元素"),
    "previous": ("Previous", "上一页"),
    "next": ("Next", "下一页"),
    "more": ("and {count} more", "另有 {count} 个"),
    "target": ("target", "目标"),
    "language": ("中文", "English"),
    **PROGRAM_WORDS,
    **PIPELINE_WORDS,
    **RESOURCE_WORDS,
    **TRACE_WORDS,
}  # fmt: skip


def word(key: str, lang: str = "en", **fill: object) -> str:
    """Return the word for ``key`` in ``lang`` (``"en"`` or ``"zh"``), filled in."""
    english, chinese = WORDS[key]
    text = chinese if lang.startswith("zh") else english
    return text.format(**fill) if fill else text
