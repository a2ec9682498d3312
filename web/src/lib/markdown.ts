/** Inline is a piece of a line of Markdown. */
export type Inline =
  | { kind: 'text' | 'code'; text: string }
  | { kind: 'strong' | 'em' | 'del'; parts: Inline[] }
  | { kind: 'link'; href: string; parts: Inline[] };

/** Block is a paragraph, heading, list, quote, table or piece of code. */
export type Block =
  | { kind: 'p'; parts: Inline[] }
  | { kind: 'h'; level: number; parts: Inline[] }
  | { kind: 'code'; language: string; text: string }
  | { kind: 'list'; isOrdered: boolean; start: number; items: Block[][] }
  | { kind: 'quote'; blocks: Block[] }
  | { kind: 'table'; head: Inline[][]; rows: Inline[][][] }
  | { kind: 'rule' };

const INLINE =
  /(`+)([^`]|[^`][\s\S]*?[^`])\1(?!`)|\*\*([\s\S]+?)\*\*|\*(?![\s*])([^*]+?)\*|(?<![\w])_(?![\s_])([^_]+?)_(?![\w])|~~([^~]+)~~|!?\[([^\]]*)\]\(([^()\s]+)\)|\\([\\`*_{}[\]()#+\-.!~|>])/g;

/** parseInline reads emphasis, code and links. HTML and images stay text. */
export function parseInline(text: string, depth = 0): Inline[] {
  if (depth > 6) return [{ kind: 'text', text }];
  const out: Inline[] = [];
  let at = 0;
  for (const m of text.matchAll(INLINE)) {
    if (m.index > at) out.push({ kind: 'text', text: text.slice(at, m.index) });
    if (m[2] !== undefined) out.push({ kind: 'code', text: m[2].trim() });
    else if (m[3] !== undefined) out.push({ kind: 'strong', parts: parseInline(m[3], depth + 1) });
    else if (m[4] !== undefined || m[5] !== undefined)
      out.push({ kind: 'em', parts: parseInline(m[4] ?? m[5] ?? '', depth + 1) });
    else if (m[6] !== undefined) out.push({ kind: 'del', parts: parseInline(m[6], depth + 1) });
    else if (m[8] !== undefined) {
      const isLink = /^(https?:|mailto:)/i.test(m[8]) && !m[0].startsWith('!');
      out.push(
        isLink ? { kind: 'link', href: m[8], parts: parseInline(m[7] ?? '', depth + 1) } : { kind: 'text', text: m[0] },
      );
    } else if (m[9] !== undefined) out.push({ kind: 'text', text: m[9] });
    at = m.index + m[0].length;
  }
  if (at < text.length) out.push({ kind: 'text', text: text.slice(at) });
  return out;
}

const BULLET = /^(\s*)([-*+]|\d{1,9}[.)])\s+/;

/** parseMarkdown reads the blocks of a Markdown text. It never yields HTML. */
export function parseMarkdown(text: string, depth = 0): Block[] {
  const lines = text.replaceAll('\r\n', '\n').split('\n');
  const out: Block[] = [];
  for (let i = 0; i < lines.length;) {
    const line = lines[i] ?? '';
    if (line.trim() === '') {
      i++;
      continue;
    }
    const fence = /^\s*(```+|~~~+)\s*([\w+-]*)/.exec(line);
    if (fence) {
      const end = fence[1] ?? '```';
      const body: string[] = [];
      for (i++; i < lines.length && !(lines[i] ?? '').trim().startsWith(end); i++) body.push(lines[i] ?? '');
      i++;
      out.push({ kind: 'code', language: fence[2] ?? '', text: body.join('\n') });
      continue;
    }
    const heading = /^(#{1,6})\s+(.*?)\s*#*$/.exec(line);
    if (heading) {
      out.push({ kind: 'h', level: heading[1]?.length ?? 1, parts: parseInline(heading[2] ?? '') });
      i++;
      continue;
    }
    if (/^\s*([-*_])(\s*\1){2,}\s*$/.test(line)) {
      out.push({ kind: 'rule' });
      i++;
      continue;
    }
    if (/^\s*>/.test(line) && depth < 6) {
      const body: string[] = [];
      for (; i < lines.length && /^\s*>/.test(lines[i] ?? ''); i++) body.push((lines[i] ?? '').replace(/^\s*>\s?/, ''));
      out.push({ kind: 'quote', blocks: parseMarkdown(body.join('\n'), depth + 1) });
      continue;
    }
    if (
      line.includes('|') &&
      /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/.test(lines[i + 1] ?? '') &&
      (lines[i + 1] ?? '').includes('-')
    ) {
      const rows: Inline[][][] = [];
      const head = cells(line);
      for (i += 2; i < lines.length && (lines[i] ?? '').includes('|'); i++) rows.push(cells(lines[i] ?? ''));
      out.push({ kind: 'table', head, rows });
      continue;
    }
    const bullet = BULLET.exec(line);
    if (bullet && depth < 6) {
      const isOrdered = /\d/.test(bullet[2] ?? '');
      const indent = bullet[1]?.length ?? 0;
      const items: string[][] = [];
      for (; i < lines.length; i++) {
        const l = lines[i] ?? '';
        const b = BULLET.exec(l);
        if (b && (b[1]?.length ?? 0) <= indent && /\d/.test(b[2] ?? '') === isOrdered)
          items.push([l.slice(b[0].length)]);
        else if (b && (b[1]?.length ?? 0) <= indent) break;
        else if (l.trim() !== '' && (b || /^\s{2,}/.test(l)))
          items.at(-1)?.push(l.slice(Math.min(indent + 2, l.length - l.trimStart().length)));
        else if (l.trim() === '' && /^\s*([-*+]|\d+[.)])\s|^\s{2,}\S/.test(lines[i + 1] ?? '')) items.at(-1)?.push('');
        else break;
      }
      out.push({
        kind: 'list',
        isOrdered,
        start: parseInt(bullet[2] ?? '1', 10) || 1,
        items: items.map((it) => parseMarkdown(it.join('\n'), depth + 1)),
      });
      continue;
    }
    const body: string[] = [];
    for (; i < lines.length; i++) {
      const l = lines[i] ?? '';
      if (l.trim() === '' || (body.length > 0 && (/^\s*(```|~~~|>|#{1,6}\s)/.test(l) || BULLET.test(l)))) break;
      body.push(l);
    }
    out.push({ kind: 'p', parts: parseInline(body.join('\n')) });
  }
  return out;
}

function cells(line: string): Inline[][] {
  return line
    .trim()
    .replace(/^\||\|$/g, '')
    .split('|')
    .map((c) => parseInline(c.trim()));
}
