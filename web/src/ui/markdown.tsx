import { Fragment, useMemo, type ReactNode } from 'react';
import { parseMarkdown, type Block, type Inline } from '../lib/markdown';
import { Inert } from './text';

/** Markdown shows the answer of an agent. HTML and images in it stay text; links open in a new tab, without a referrer. */
export function Markdown({ text }: { text: string }) {
  const blocks = useMemo(() => parseMarkdown(text), [text]);
  return (
    <div className="md">
      {blocks.map((b, i) => (
        <BlockView key={i} block={b} />
      ))}
    </div>
  );
}

function BlockView({ block }: { block: Block }): ReactNode {
  switch (block.kind) {
    case 'p':
      return <p className="break">{inline(block.parts)}</p>;
    case 'h':
      return <p className="strong">{inline(block.parts)}</p>;
    case 'code':
      return (
        <pre className="code" tabIndex={0} role="group" aria-label="Code">
          <Inert text={block.text} />
        </pre>
      );
    case 'rule':
      return <hr />;
    case 'quote':
      return (
        <blockquote>
          {block.blocks.map((b, i) => (
            <BlockView key={i} block={b} />
          ))}
        </blockquote>
      );
    case 'list': {
      const items = block.items.map((item, i) => (
        <li key={i}>
          {item.map((b, j) =>
            b.kind === 'p' ? <Fragment key={j}>{inline(b.parts)}</Fragment> : <BlockView key={j} block={b} />,
          )}
        </li>
      ));
      return block.isOrdered ? <ol start={block.start}>{items}</ol> : <ul>{items}</ul>;
    }
    case 'table':
      return (
        <div className="scroll" tabIndex={0} role="group" aria-label="Table">
          <table>
            <thead>
              <tr>
                {block.head.map((c, i) => (
                  <th key={i} scope="col">
                    {inline(c)}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {block.rows.map((r, i) => (
                <tr key={i}>
                  {r.map((c, j) => (
                    <td key={j}>{inline(c)}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      );
  }
}

function inline(parts: Inline[]): ReactNode[] {
  return parts.map((p, i) => {
    switch (p.kind) {
      case 'text':
        return <Inert key={i} text={p.text} />;
      case 'code':
        return (
          <code key={i}>
            <Inert text={p.text} />
          </code>
        );
      case 'strong':
        return <strong key={i}>{inline(p.parts)}</strong>;
      case 'em':
        return <em key={i}>{inline(p.parts)}</em>;
      case 'del':
        return <del key={i}>{inline(p.parts)}</del>;
      case 'link':
        return (
          <a key={i} href={p.href} target="_blank" rel="noreferrer noopener" title={p.href}>
            {inline(p.parts)}
          </a>
        );
    }
  });
}
