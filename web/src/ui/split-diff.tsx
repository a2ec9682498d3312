import { useMemo, useSyncExternalStore } from 'react';
import { parsePreview, type DiffLine, type FileDiff } from '../lib/diff';
import { plainPatch, splitLines } from '../lib/split';
import { PreviewView } from './diff';
import { Inert } from './text';

const narrow = window.matchMedia('(max-width: 60rem)');

function useNarrow(): boolean {
  return useSyncExternalStore(
    (onChange) => {
      narrow.addEventListener('change', onChange);
      return () => narrow.removeEventListener('change', onChange);
    },
    () => narrow.matches,
  );
}

/**
 * SplitDiff shows a patch side by side, one box for each file: before on the left, after on the right. In a narrow
 * window it shows removed and added lines one below the other.
 */
export function SplitDiff({ patch }: { patch: string }) {
  const isNarrow = useNarrow();
  const { files, notes } = useMemo(() => parsePreview(patch), [patch]);
  if (isNarrow) return <PreviewView preview={plainPatch(patch)} />;
  return (
    <div className="stack tight">
      {files.length === 0 && (
        <div className="code">
          <Inert text={notes.join('\n')} />
        </div>
      )}
      {files.map((file, i) => (
        <FileBox key={i} file={file} />
      ))}
    </div>
  );
}

const name = (path: string) => path.replace(/^[ab]\//, '');

function FileBox({ file }: { file: FileDiff }) {
  const rows = useMemo(
    () =>
      splitLines(
        file.lines.filter(
          (l) => !l.text.startsWith('diff --git ') && !/^(index |new file mode|deleted file mode)/.test(l.text),
        ),
      ),
    [file],
  );
  const path = name(file.to === '/dev/null' ? file.from : file.to);
  return (
    <section className="diff split" aria-label={path}>
      <header>
        <span className="grow break">
          <Inert text={path} />
        </span>
        {file.from === '/dev/null' && <span className="plus">new file</span>}
        {file.to === '/dev/null' && <span className="minus">deleted</span>}
        <span>
          <span className="plus">+{file.added}</span> <span className="minus">−{file.removed}</span>
        </span>
      </header>
      <div className="lines" tabIndex={0} role="group" aria-label={`Changed lines of ${path}`}>
        <table>
          <colgroup>
            <col className="no" />
            <col />
            <col className="no" />
            <col />
          </colgroup>
          <thead className="hide">
            <tr>
              <th scope="col">Line before</th>
              <th scope="col">Before</th>
              <th scope="col">Line after</th>
              <th scope="col">After</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row, i) =>
              row.note !== undefined ? (
                <tr key={i} className="note">
                  <td colSpan={4}>
                    <Inert text={row.note} />
                  </td>
                </tr>
              ) : (
                <tr key={i}>
                  <Side line={row.left} number={row.left?.old} />
                  <Side line={row.right} number={row.right?.new} />
                </tr>
              ),
            )}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Side({ line, number }: { line?: DiffLine; number?: number }) {
  const kind = line ? line.kind : 'gap';
  return (
    <>
      <td className={`no ${kind}`}>{number}</td>
      <td className={kind}>{line && <Inert text={line.text} />}</td>
    </>
  );
}
