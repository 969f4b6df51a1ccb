"""The look that every lowering shares: colours of paper and ink, light and dark, as CSS custom properties."""

from __future__ import annotations

from collections.abc import Mapping

#: property → (light, dark)
TOKENS: Mapping[str, tuple[str, str]] = {
    "paper": ("#ffffff", "#14181e"),
    "panel": ("#f5f7fa", "#1b2129"),
    "ink": ("#161b22", "#e8edf3"),
    "soft": ("#566270", "#9aa7b5"),
    "line": ("#d9dfe6", "#303a46"),
    "accent": ("#0a58ca", "#7db4ff"),
    "mark": ("#10151c", "#ffffff"),
    "halo": ("#ffffff", "#10151c"),
    "good": ("#0a7a4b", "#5fd39b"),
    "bad": ("#b3261e", "#ff8a7d"),
    "here": ("#fff1c2", "#3d3413"),
    "ran": ("#b9c4d0", "#4a5766"),
}

SANS = 'system-ui, -apple-system, "Segoe UI", "Noto Sans", "Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", sans-serif'
MONO = 'ui-monospace, "SF Mono", "Cascadia Mono", "DejaVu Sans Mono", Menlo, Consolas, monospace'

# What says "light" or "dark" louder than the system: JupyterLab, sphinx-book-theme, VS Code, and our own attribute.
_LIGHT = ('[data-jp-theme-light="true"]', '[data-theme="light"]', ".vscode-light")
_DARK = ('[data-jp-theme-light="false"]', '[data-theme="dark"]', ".vscode-dark")


def theme_css(selector: str) -> str:
    """Return the rules that set ``--tl-…`` on ``selector``, following the system's colours and then the page's theme."""

    def block(which: int) -> str:
        return "{" + ";".join(f"--tl-{name}:{pair[which]}" for name, pair in TOKENS.items()) + "}"

    def under(ancestors: tuple[str, ...]) -> str:
        return ",".join(f"{a} {selector}" for a in ancestors)

    return (
        f"{selector}{block(0)}@media (prefers-color-scheme:dark){{{selector}{block(1)}}}{under(_LIGHT)}{block(0)}{under(_DARK)}{block(1)}"
    )
