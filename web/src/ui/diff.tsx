import { useMemo } from 'react';
import { diffLines, parsePreview, prettyJSON, type DiffLine } from '../lib/diff';
import { Inert } from './text';

const SIGN: Record<DiffLine['kind'], string> = { same: ' ', add: '+', del: '-', hunk: '', note: '' };

function Lines({ lines }: { lines: DiffLine[] }) {
  return (
    <div className="lines" tabIndex={0} role="group" aria-label="Changed lines">
      <table>
        <tbody>
          {lines.map((line, i) => (
            <tr key={i} className={line.kind}>
              <td className="no">{line.old}</td>
              <td className="no">{line.new}</td>
              <td>
                {SIGN[line.kind]}
                <Inert text={line.text} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** PreviewView shows what a call would change: notes, then a diff for each file. */
export function PreviewView({ preview }: { preview: string }) {
  const parsed = useMemo(() => parsePreview(preview), [preview]);
  return (
    <div className="stack tight">
      {parsed.notes.length > 0 && (
        <div className="code">
          <Inert text={parsed.notes.join('\n')} />
        </div>
      )}
      {parsed.files.map((file, i) => (
        <div className="diff" key={i}>
          <header>
            <span className="grow break">
              <Inert text={file.to === '/dev/null' ? file.from : file.to} />
            </span>
            {file.from === '/dev/null' && <span className="plus">new file</span>}
            {file.to === '/dev/null' && <span className="minus">deleted</span>}
            <span>
              <span className="plus">+{file.added}</span> <span className="minus">−{file.removed}</span>
            </span>
          </header>
          <Lines lines={file.lines} />
        </div>
      ))}
    </div>
  );
}

/** CompareView shows the difference of two JSON texts. */
export function CompareView({ before, after, title }: { before: string; after: string; title: string }) {
  const lines = useMemo(() => diffLines(prettyJSON(before), prettyJSON(after)), [before, after]);
  return (
    <div className="diff">
      <header>{title}</header>
      <Lines lines={lines} />
    </div>
  );
}
