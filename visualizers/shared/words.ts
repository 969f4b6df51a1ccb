/** The fixed words in the reader's language. */
import { WORDS, type Fact } from "./generated.ts";

export type Lang = "en" | "zh";
export type Key = keyof typeof WORDS;

export function word(key: string, lang: Lang, fill: Record<string, unknown> = {}): string {
  const pair = (WORDS as Record<string, readonly [string, string]>)[key];
  if (!pair) return key;
  return pair[lang === "zh" ? 1 : 0].replace(/\{(\w+)\}/g, (_, name: string) => String(fill[name]));
}

export const factText = (fact: Fact, lang: Lang): string => word(fact.key, lang, fact.fill);

export const langOf = (text: string | undefined): Lang => (text?.startsWith("zh") ? "zh" : "en");
