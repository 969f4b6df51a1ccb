/** Elements without ceremony. */
type Child = Node | string | null | undefined | false;
type Props = Record<string, string | number | boolean | ((e: never) => void) | undefined>;

/** `h("button", { class: "x", onclick: f, "aria-label": "…" }, "text")`; false and undefined leave an attribute out. */
export function h<K extends keyof HTMLElementTagNameMap>(tag: K, props: Props = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const el = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (typeof value === "function") el.addEventListener(name.slice(2), value as unknown as EventListener);
    else if (value === true) el.setAttribute(name, "");
    else if (value !== false && value !== undefined) el.setAttribute(name, String(value));
  }
  el.append(...children.filter((c): c is Node | string => c !== null && c !== undefined && c !== false));
  return el;
}

/** A `<select>` with its label. */
export function choice(label: string, options: readonly (readonly [string, string])[], value: string, change: (v: string) => void): HTMLElement {
  const select = h("select", { "aria-label": label, onchange: () => change(select.value) });
  for (const [key, text] of options) select.append(h("option", { value: key, selected: key === value }, text));
  return h("label", {}, h("span", {}, label), select);
}
