import { Link } from '@tanstack/react-router';
import { formatDuration, formatTime } from '../../lib/format';
import type { TimelineRow } from '../../lib/timeline';
import { Dialog } from '../../ui/dialog';
import { PreviewView } from '../../ui/diff';
import { ArgsView, JSONView } from '../../ui/json';
import { Button, Facts } from '../../ui/kit';
import { Id, Inert } from '../../ui/text';

/** StepDialog shows one step of a run. */
export function StepDialog({ row, onClose }: { row: TimelineRow; onClose: () => void }) {
  return (
    <Dialog title={row.label} wide onClose={onClose}>
      <Facts
        facts={[
          ['At', formatTime(new Date(row.start).toISOString())],
          ['Duration', row.end === undefined ? 'still open' : formatDuration(row.end - row.start)],
          ['Tries', row.attempts > 1 ? String(row.attempts) : ''],
          [
            'Error',
            row.isFailed && (
              <span className="minus">
                <Inert text={row.detail} />
              </span>
            ),
          ],
          [
            'Operation',
            row.operation && (
              <Link key="o" to="/operations/$id" params={{ id: row.operation }}>
                explain, undo <Id id={row.operation} />
              </Link>
            ),
          ],
        ]}
      />
      {row.text && (
        <>
          <h3>{row.kind === 'call' ? 'Arguments' : 'Text'}</h3>
          {row.kind === 'call' ? <ArgsView args={row.text} /> : <JSONView text={row.text} label="Text" />}
        </>
      )}
      {row.result && (
        <>
          <h3>Result</h3>
          {/^--- /m.test(row.result) && /^\+\+\+ /m.test(row.result) ? (
            <PreviewView preview={row.result} />
          ) : (
            <JSONView text={row.result} label="Result" />
          )}
        </>
      )}
      <div className="actions">
        <Button onClick={onClose}>Close</Button>
      </div>
    </Dialog>
  );
}
