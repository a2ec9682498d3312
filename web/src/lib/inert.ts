/** Piece is plain text, or a hidden character: one that is invisible or changes how the text around it looks. */
export type Piece = { text: string } | { control: string; name: string };

const CONTROLS =
  // bidirectional marks, zero-width characters, escape and other controls except tab and line ends
  // eslint-disable-next-line no-control-regex
  /\u001b\[[0-9;?]*[ -/]*[@-~]|[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u061c\u115f\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]|[\u{e0000}-\u{e007f}]/gu;

const NAMES: Record<string, string> = {
  '\u202a': 'LRE',
  '\u202b': 'RLE',
  '\u202c': 'PDF',
  '\u202d': 'LRO',
  '\u202e': 'RLO',
  '\u2066': 'LRI',
  '\u2067': 'RLI',
  '\u2068': 'FSI',
  '\u2069': 'PDI',
  '\u200e': 'LRM',
  '\u200f': 'RLM',
  '\u200b': 'ZWSP',
  '\u200d': 'ZWJ',
  '\u200c': 'ZWNJ',
  '\ufeff': 'BOM',
  '\u00ad': 'SHY',
  '\u0000': 'NUL',
  '\u001b': 'ESC',
};

/** splitControls splits text so that hidden characters can be shown as marks. */
export function splitControls(text: string): Piece[] {
  const out: Piece[] = [];
  let at = 0;
  for (const match of text.matchAll(CONTROLS)) {
    if (match.index > at) out.push({ text: text.slice(at, match.index) });
    const first = match[0][0] ?? '';
    const code = (match[0].codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0');
    const name = match[0].length > 2 ? `ESC${match[0].slice(1)}` : (NAMES[first] ?? `U+${code}`);
    out.push({ control: match[0], name });
    at = match.index + match[0].length;
  }
  if (at < text.length || out.length === 0) out.push({ text: text.slice(at) });
  return out;
}

/** hasControls reports whether text has hidden characters. */
export function hasControls(text: string): boolean {
  return splitControls(text).some((piece) => 'control' in piece);
}

/** removeControls returns text without its hidden characters. */
export function removeControls(text: string): string {
  return splitControls(text).map((piece) => ('text' in piece ? piece.text : '')).join('');
}
