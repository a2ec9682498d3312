import { useMemo, useRef, useState } from 'react';
import { useQuery } from '@tanstack/react-query';
import { useVirtualizer } from '@tanstack/react-virtual';
import { api, ok } from '../api/client';
import { compareArgs, parsePreview, type DiffLine } from '../lib/diff';
import { Button, Tag } from './kit';
import { Failure } from './states';
import { Inert } from './text';

const SIGN: Record<DiffLine['kind'], string> = { same: ' ', add: '+', del: '-', hunk: '', note: '' };

/** LINE_HEIGHT is the height of a line of a diff in pixels; see .diff-line. */
const LINE_HEIGHT = 19;

/** Lines shows the lines of a diff. Only the lines in view are in the page, since a diff can be megabytes long. */
function Lines({ lines }: { lines: DiffLine[] }) {
  const scroller = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: lines.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => LINE_HEIGHT,
    overscan: 40,
    initialRect: { width: 800, height: 500 },
  });
  const widest = useMemo(() => lines.reduce((most, l) => Math.max(most, Math.min(l.text.length, 20_000)), 0), [lines]);
  return (
    <div className="lines" ref={scroller} tabIndex={0} role="group" aria-label="Changed lines">
      <div className="line-space" style={{ height: virtual.getTotalSize(), minWidth: `calc(${widest + 2}ch + 7rem)` }}>
        {virtual.getVirtualItems().map((item) => {
          const line = lines[item.index];
          return (
            line && (
              <div
                key={item.key}
                className={`diff-line ${line.kind}`}
                style={{ transform: `translateY(${item.start}px)` }}
              >
                <span className="no">{line.old}</span>
                <span className="no">{line.new}</span>
                <span className="text">
                  {SIGN[line.kind]}
                  <Inert text={line.text} />
                </span>
              </div>
            )
          );
        })}
      </div>
    </div>
  );
}

/** LONGEST_LINE is how many characters a line of LongText has at most. */
const LONGEST_LINE = 400;

/** LongText shows a text of any length. Only the lines in view are in the page. */
export function LongText({ text }: { text: string }) {
  const lines = useMemo(() => {
    const out: DiffLine[] = [];
    text.split('\n').forEach((line, i) => {
      for (let at = 0; at === 0 || at < line.length; at += LONGEST_LINE) {
        out.push({ kind: 'same', text: line.slice(at, at + LONGEST_LINE), new: at === 0 ? i + 1 : undefined });
      }
    });
    return out;
  }, [text]);
  return (
    <div className="diff">
      <header>{text.length.toLocaleString('en')} characters</header>
      <Lines lines={lines} />
    </div>
  );
}

const CUT = /\n?\[the change is truncated; read the rest before you decide: reeve output ([0-9a-f]{64})\]$/;

/** PreviewView shows what a call would change: notes, then a diff for each file. It can load a change that was cut. */
export function PreviewView({ preview }: { preview: string }) {
  const hash = CUT.exec(preview)?.[1];
  const [isWhole, setWhole] = useState(false);
  const whole = useQuery({
    queryKey: ['output', hash],
    enabled: isWhole && hash !== undefined,
    queryFn: ({ signal }) => readOutput(hash ?? '', signal),
  });
  return (
    <div className="stack tight">
      {hash && !whole.data && (
        <div className="row wrap small">
          <Tag tone="wait">cut</Tag>
          <span>This is the beginning of a large change. Read the rest before you decide.</span>
          <Button disabled={isWhole && whole.isFetching} onClick={() => setWhole(true)}>
            {isWhole && whole.isFetching ? 'Loading…' : 'Show the whole change'}
          </Button>
        </div>
      )}
      {whole.isError && <Failure error={whole.error} retry={() => void whole.refetch()} />}
      <Change preview={whole.data ?? preview.replace(CUT, '')} />
    </div>
  );
}

async function readOutput(hash: string, signal: AbortSignal): Promise<string> {
  const parts: string[] = [];
  for (let offset = 0; ;) {
    const part = await ok(
      api.GET('/api/outputs/{hash}', { params: { path: { hash }, query: { offset, limit: 1 << 20 } }, signal }),
    );
    parts.push(part.content);
    const next = part.next_offset;
    if (!next || next <= offset) return parts.join('');
    offset = next;
  }
}

function Change({ preview }: { preview: string }) {
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

/** CompareView shows the difference between the arguments of two calls. */
export function CompareView({ before, after, title }: { before: string; after: string; title: string }) {
  const lines = useMemo(() => compareArgs(before, after), [before, after]);
  return (
    <div className="diff">
      <header>{title}</header>
      <Lines lines={lines} />
    </div>
  );
}
